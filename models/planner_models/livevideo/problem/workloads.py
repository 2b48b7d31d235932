"""Random requests after the traces of Mukerjee 2018 (4.7.1): Average Day, Large Event and Heavy-Tail."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
import pandas as pd

from planner.arrays import Floats, Ints

Priority = Literal["quality", "balanced", "quantity"]


@dataclass(frozen=True, kw_only=True)
class Workload:
    """Published properties of a trace.

    bitrates_kbps, mean_kbps  requested bitrates, and their mean over requests
    head, head_share          fraction of the channels that are most popular, and its share of the requests
    """

    bitrates_kbps: tuple[float, ...]
    mean_kbps: float
    head: float
    head_share: float


HEAVY_TAIL: Final = Workload(
    bitrates_kbps=(400.0, 1_000.0, 4_500.0, 30_000.0), mean_kbps=6_850.0, head=0.01, head_share=0.4
)
AVERAGE_DAY: Final = Workload(  # bitrates are not printed: these are common ones
    bitrates_kbps=(400.0, 1_000.0, 2_500.0, 4_500.0, 6_000.0), mean_kbps=2_725.0, head=0.07, head_share=0.5
)


@dataclass(frozen=True, kw_only=True, eq=False)
class Demand:
    """Requests as arrays, one row a client: channel, rung of the bitrate ladder, group, arrival.

    weight  number of clients that the row stands for
    """

    channel: Ints
    rung: Ints
    group: Ints
    arrival_s: Floats
    weight: Floats


def zipf_exponent(count: int, head: float, share: float) -> float:
    """Return the exponent of a Zipf law over `count` channels by which the most popular get `share`.

    head, share  fractions of channels and requests: 0.07 and 0.5 for Average Day, 0.01 and 0.4 for
                 Heavy-Tail
    """
    rank = np.arange(1, count + 1, dtype=float)
    first = max(1, round(head * count))

    def excess(exponent: float) -> float:
        weight = rank**-exponent
        return float(weight[:first].sum() / weight.sum()) - share

    if excess(0.0) >= 0:  # few channels: a uniform law gives the head more than its share
        return 0.0
    return _find_root(excess, 0.0, 8.0)


def ladder_shares(bitrates_kbps: tuple[float, ...], mean_kbps: float) -> Floats:
    """Return the share of each bitrate in the requests: maximum entropy for the given mean."""
    rates = np.asarray(bitrates_kbps) / max(bitrates_kbps)

    def shares(tilt: float) -> Floats:
        weight = np.exp(tilt * (rates - rates.max() * (tilt > 0)))
        return np.asarray(weight / weight.sum())

    target = mean_kbps / max(bitrates_kbps)
    return shares(_find_root(lambda tilt: float(shares(tilt) @ rates) - target, -200.0, 200.0))


def draw_demand(
    *,
    channels: int,
    clients: int,
    exponent: float,
    shares: Floats,
    group_share: Floats,
    window_s: float,
    random: np.random.Generator,
) -> Demand:
    """Draw clients independently: channel by rank, group by population, bitrate by its share."""
    weight = np.arange(1, channels + 1, dtype=float) ** -exponent
    return Demand(
        channel=random.choice(channels, clients, p=weight / weight.sum()),
        rung=random.choice(len(shares), clients, p=shares),
        group=random.choice(len(group_share), clients, p=group_share),
        arrival_s=np.sort(random.uniform(0.0, window_s, clients)),
        weight=np.ones(clients),
    )


def draw_crowd(
    *,
    channels: Ints,
    viewers: float,
    shares: Floats,
    group_share: Floats,
    window_s: float,
    random: np.random.Generator,
) -> Demand:
    """Draw viewers of popular channels: every group requests every bitrate, in proportion to its share."""
    groups, rungs = len(group_share), len(shares)
    weight = np.maximum(1.0, np.round(viewers * np.outer(group_share, shares)))
    count = len(channels) * groups * rungs
    order = random.permutation(count)
    return Demand(
        channel=np.repeat(channels, groups * rungs)[order],
        rung=np.tile(np.arange(rungs), len(channels) * groups)[order],
        group=np.tile(np.repeat(np.arange(groups), rungs), len(channels))[order],
        arrival_s=np.sort(random.uniform(0.0, window_s, count)),
        weight=np.tile(weight.ravel(), len(channels))[order],
    )


def merge_demand(first: Demand, other: Demand) -> Demand:
    """Merge two demands in the order of arrival."""
    columns = {name: np.concatenate([getattr(first, name), getattr(other, name)]) for name in vars(first)}
    order = np.argsort(columns["arrival_s"], kind="stable")
    return Demand(**{name: column[order] for name, column in columns.items()})


def build_tables(
    demand: Demand,
    *,
    groups: list[str],
    bitrates_kbps: tuple[float, ...],
    priority: Priority,
    lower_bitrates: bool = False,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the tables objects and requests: clients of one group and object make one request.

    lower_bitrates  whether channels exist at the bitrates below their highest requested one, too
    """
    rates = np.asarray(bitrates_kbps)
    frame = pd.DataFrame(
        {
            "group": demand.group,
            "channel": demand.channel,
            "rung": demand.rung,
            "arrival_s": demand.arrival_s,
            "clients": demand.weight,
        }
    )
    merged = (
        frame.groupby(["group", "channel", "rung"], sort=False)
        .agg(clients=("clients", "sum"), arrival_s=("arrival_s", "min"))
        .reset_index()
    )
    requested = merged[["channel", "rung"]].drop_duplicates().sort_values(["channel", "rung"])
    if lower_bitrates:
        highest = requested.groupby("channel")["rung"].max()
        rungs = [np.arange(rung + 1) for rung in highest]
        requested = pd.DataFrame(
            {"channel": np.repeat(highest.index, highest + 1), "rung": np.concatenate(rungs)}
        )
    objects = pd.DataFrame(
        {
            "channel": [f"v{c + 1}" for c in requested["channel"]],
            "bitrate_kbps": rates[requested["rung"]],
        }
    )
    objects["priority"] = priorities(objects["bitrate_kbps"].to_numpy(float), priority)
    requests = pd.DataFrame(
        {
            "group": np.array(groups, dtype=object)[merged["group"]],
            "channel": [f"v{c + 1}" for c in merged["channel"]],
            "bitrate_kbps": rates[merged["rung"]],
            "clients": merged["clients"].astype(float),
            "arrival_s": merged["arrival_s"].round(4),
        }
    )
    return objects, requests


def priorities(bitrate_kbps: Floats, scheme: Priority) -> Floats:
    """Return priorities by scheme (4.7.1): quality: bitrate in Mbit/s, balanced: 1, quantity: 1 over it."""
    mbps = bitrate_kbps / 1000.0
    if scheme == "quality":
        return mbps
    return 1.0 / mbps if scheme == "quantity" else np.ones(len(mbps))


def _find_root(function: Callable[[float], float], low: float, high: float) -> float:
    """Return a root of a function that has different signs at `low` and `high`."""
    from scipy.optimize import brentq  # slow to import

    return float(brentq(function, low, high))
