"""Synthetic months of traffic and contracts. No number here is a claim about a real CDN."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Final

import numpy as np
import pandas as pd
from pydantic import Field

from planner.arrays import Floats
from planner.contract.parameters import spread
from planner_models.contracts.problem.problem import MEAN, PEAK, PERCENTILE, Month

MEAN_MBPS: Final = 1.6  # of a client, as in system brokering
NIGHT: Final = 0.25  # traffic of the quietest hour over that of the busiest
WEEKEND: Final = 1.12  # traffic of a weekend over a weekday
NOISE: Final = 0.03  # standard deviation of the logarithm of a window's traffic
EVENTS_PER_WEEK: Final = 1.5  # broadcasts that add traffic for two hours
EVENT_SIZE: Final = 0.35  # of the busiest hour's traffic, mean

Clients = Annotated[
    int, Field(ge=1, le=1_000_000_000, description="clients at the busiest hour, in all regions together")
]
Cdns = Annotated[int, Field(ge=1, le=100, description="CDNs; each has a contract in every region")]
Days = Annotated[int, Field(ge=1, le=92, description="days")]
WindowMinutes = Annotated[int, Field(ge=1, le=1440, description="minutes of a window")]
Regions = Annotated[
    int, Field(ge=1, le=50, description="regions, each with its own contracts and time of day")
]
Capacity = Annotated[
    float, Field(gt=0, description="capacity of all contracts of a region over its busiest hour's traffic")
]
Committed = Annotated[
    float, Field(ge=0, le=1, description="commitments of all contracts of a region over its mean traffic")
]
Tiers = Annotated[
    int, Field(ge=0, le=5, description="price steps of each contract, each cheaper than the last")
]
Seed = Annotated[int, Field(ge=0, description="seed of all random draws")]


@dataclass(frozen=True, kw_only=True)
class MonthSettings:
    """Traffic and contracts of a generated month."""

    clients: Clients = 33_400
    cdns: Cdns = 14
    days: Days = 30
    window_minutes: WindowMinutes = 5
    regions: Regions = 1
    capacity: Capacity = 1.8
    committed: Committed = 0.6
    tiers: Tiers = 0
    seed: Seed = 0


@spread(settings=MonthSettings())
def month(*, settings: MonthSettings) -> Month:
    """Generate a month of daily traffic with events, and contracts of all three billing rules.

    Two of three contracts are billed by the 95th percentile, one in six by the mean, the others by the peak.
    """
    random = np.random.default_rng(settings.seed)
    windows = settings.days * 24 * 60 // settings.window_minutes
    share = random.dirichlet(np.full(settings.regions, 4.0)) if settings.regions > 1 else np.ones(1)
    names = [f"region{row + 1}" for row in range(settings.regions)] if settings.regions > 1 else ["world"]
    traffic, contracts, steps = [], [], []
    for name, region_share in zip(names, share, strict=True):
        mbps = (
            settings.clients * region_share * MEAN_MBPS * draw_days(random, windows, settings.window_minutes)
        )
        traffic.append(
            pd.DataFrame({"window": np.arange(1.0, windows + 1), "region": name, "traffic_mbps": mbps})
        )
        size = random.dirichlet(np.full(settings.cdns, 3.0))
        price = random.lognormal(0.0, 0.25, size=settings.cdns)
        sizes = size * random.uniform(0.5, 1.5, size=settings.cdns)
        for row in range(settings.cdns):
            rule = MEAN if row % 6 == 4 else PEAK if row % 6 == 5 else PERCENTILE
            base = {MEAN: 1.9, PEAK: 0.8, PERCENTILE: 1.0}[rule] * float(price[row])
            ceiling = settings.capacity * settings.clients * region_share * MEAN_MBPS * float(size[row])
            commitment = min(
                settings.committed * float(mbps.mean()) * float(sizes[row] / sizes.sum()), ceiling
            )
            cdn = f"cdn{row + 1}"
            contracts.append((cdn, name, rule, round(base, 3), round(ceiling, 1), round(commitment, 1)))
            steps += [
                (
                    cdn,
                    name,
                    round(ceiling * (step + 1) / (settings.tiers + 2), 1),
                    round(base * 0.9 ** (step + 1), 4),
                )
                for step in range(settings.tiers)
            ]
    columns = ["cdn", "region", "billing", "price_per_mbps", "capacity_mbps", "commitment_mbps"]
    table = pd.DataFrame(steps, columns=["cdn", "region", "above_mbps", "price_per_mbps"])
    return Month(
        traffic=pd.concat(traffic, ignore_index=True).round({"traffic_mbps": 3}),
        contracts=pd.DataFrame(contracts, columns=columns),
        tiers=table if settings.tiers else None,
    )


def draw_days(random: np.random.Generator, windows: int, window_minutes: int) -> Floats:
    """Draw the traffic of each window over that of the busiest hour of a weekday without events, (W,)."""
    hour = np.arange(windows) * window_minutes / 60
    start = random.uniform(0, 24)
    daily = 0.5 - 0.5 * np.cos(2 * np.pi * (hour + start) / 24)
    level = NIGHT + (1 - NIGHT) * daily**1.3
    level = level * np.where((hour // 24).astype(int) % 7 >= 5, WEEKEND, 1.0)
    for _ in range(random.poisson(EVENTS_PER_WEEK * windows * window_minutes / (7 * 24 * 60))):
        event_hour = random.uniform(0, hour[-1] + 1e-9)
        level = level + EVENT_SIZE * random.exponential() * np.exp(-(((hour - event_hour) / 1.0) ** 2))
    return np.asarray(level * random.lognormal(0.0, NOISE, size=windows))


def small(*, seed: Seed = 0) -> Month:
    """Generate a day in windows of an hour, with three CDNs in two regions."""
    return month(clients=1_000, cdns=3, days=1, window_minutes=60, regions=2, tiers=1, seed=seed)


def limited_day() -> Month:
    """Generate the small month with little switching between windows, for the kernels of the designs.

    With none at all the optimum takes three times as long.
    """
    problem = small()
    limits = pd.DataFrame({"region": problem.regions, "max_moved_percent": 20.0})
    return replace(problem, switching=limits)


PRESETS: Final = {"month": month, "small": small}
