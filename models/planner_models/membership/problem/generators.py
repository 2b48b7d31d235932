"""Presets: made-up problems of system `membership`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Final

import numpy as np
import pandas as pd
from pydantic import Field

from planner_models.membership.problem.problem import Membership

FAILURES: Final = {
    "host": (0.3, 1_800.0),
    "zone": (0.2, 3_000.0),
    "region": (0.02, 14_400.0),
    "provider": (0.005, 6_000.0),
}
"""Failures in a month and time to repair, s, by kind of site: assumed."""
PRICE: Final = 50.0
Seed = Annotated[int, Field(ge=0, description="seed of the random numbers")]
KM_PER_MS: Final = 200.0
DETOUR: Final = 1.6
"""Length of cables over the distance of their ends."""


def site_row(site: str, kind: str, parent: str = "", **cells: float) -> dict[str, object]:
    """Return a row of `sites` with the assumed failures of its kind."""
    rate, repair = FAILURES[kind]
    row: dict[str, object] = {
        "site": site,
        "kind": kind,
        "parent": parent,
        "fails_per_month": rate,
        "repair_s": repair,
        "price_per_month": PRICE if kind == "host" else 0.0,
        "hosts": np.nan,
    }
    return row | cells


def service_row(service: str = "store", **cells: object) -> dict[str, object]:
    """Return a row of `services`: a majority that tolerates two faults, with a failover of 300 ms."""
    row: dict[str, object] = {
        "service": service,
        "protocol": "majority",
        "faults": 2,
        "failover_s": 0.3,
        "down_cost_per_s": 1.0,
    }
    return row | cells


def regions(
    *,
    providers: Annotated[int, Field(ge=1, le=10, description="number of providers")] = 1,
    regions: Annotated[int, Field(ge=1, le=200, description="number of regions, in random places")] = 3,
    zones: Annotated[int, Field(ge=1, le=10, description="zones of each region")] = 3,
    hosts: Annotated[int, Field(ge=1, le=1000, description="hosts of each zone")] = 3,
    faults: Annotated[int, Field(ge=0, le=7, description="members that may fail")] = 2,
    loss: Annotated[float, Field(ge=0, lt=1, description="share of heartbeats that are lost")] = 0.01,
    commit_ms: Annotated[
        float | None,
        Field(gt=0, le=1e6, description="longest time until a quorum decides, ms; default: none"),
    ] = None,
    managers: Annotated[
        int, Field(ge=0, le=31, description="managers that decide who is up, for designs with reports")
    ] = 0,
    seed: Seed = 0,
) -> Membership:
    """Build regions in random places of a square of 4,000 km, with zones and hosts, and one service."""
    random = np.random.default_rng(seed)
    position = random.uniform(0.0, 4_000.0, (regions, 2))
    rows = [site_row(f"provider {number + 1}", "provider") for number in range(providers)]
    for number in range(regions):
        region = f"region {number + 1}"
        rows.append(site_row(region, "region", f"provider {number % providers + 1}"))
        for zone in "abcdefghij"[:zones]:
            rows.append(site_row(f"{region}{zone}", "zone", region))
            rows.append(site_row(f"{region}{zone} hosts", "host", f"{region}{zone}", hosts=float(hosts)))
    pairs = [(first, other) for first in range(regions) for other in range(first, regions)]
    distance = np.array([np.hypot(*(position[first] - position[other])) for first, other in pairs])
    rtt = np.maximum(2 * DETOUR * distance / KM_PER_MS, 1.0)
    delays = pd.DataFrame(
        {
            "from": [f"region {first + 1}" for first, _ in pairs],
            "to": [f"region {other + 1}" for _, other in pairs],
            "rtt_ms": rtt,
            "p99_ms": 1.3 * rtt,
            "loss": loss,
        }
    )
    service = service_row(faults=float(faults), managers=float(managers) or np.nan)
    if commit_ms is not None:
        service["most_commit_ms"] = commit_ms
    return Membership(sites=pd.DataFrame(rows), delays=delays, services=pd.DataFrame([service]))


def small() -> Membership:
    """Return a tiny problem with every table: two regions, three zones, and one service of three members."""
    sites = pd.DataFrame(
        [
            site_row("cloud", "provider"),
            site_row("east", "region", "cloud", latitude=40.7, longitude=-74.0),
            site_row("west", "region", "cloud", latitude=37.8, longitude=-122.4),
            site_row("east a", "zone", "east", hosts=2.0, price_per_month=40.0),
            site_row("east b", "zone", "east", hosts=2.0, price_per_month=45.0),
            site_row("west a", "zone", "west", hosts=1.0, price_per_month=50.0),
        ]
    )
    return Membership(
        sites=sites,
        delays=pd.DataFrame(
            [("east", "east", 1.0, 2.0, 0.001), ("east", "west", 65.0, 80.0, 0.01)],
            columns=["from", "to", "rtt_ms", "p99_ms", "loss"],
        ),
        services=pd.DataFrame(
            [
                service_row(
                    faults=1.0, most_commit_ms=100.0, most_price_per_month=200.0, managers=3.0, targets=30.0
                )
            ]
        ),
        **_small_options(),
    )


def _small_options() -> dict[str, pd.DataFrame]:
    """Return the optional tables of the tiny problem."""
    return {
        "shared_risks": pd.DataFrame(
            [("power", "east a", 0.1, 3_600.0), ("power", "east b", 0.1, 3_600.0)],
            columns=["risk", "site", "fails_per_month", "repair_s"],
        ),
        "pauses": pd.DataFrame([("cloud", 4_000.0, 0.2)], columns=["site", "per_month", "mean_s"]),
        "watchers": pd.DataFrame(
            [("heartbeat", 100.0, 1_000.0, np.nan, 100.0), ("lease", 1_333.0, 4_000.0, 50.0, 100.0)],
            columns=["kind", "interval_ms", "timeout_ms", "capacity_per_s", "bytes"],
        ),
        "current": pd.DataFrame(
            [
                ("store", "east a", "leader", 1.0),
                ("store", "east a", "member", 1.0),
                ("store", "east b", "member", 1.0),
            ],
            columns=["service", "site", "role", "count"],
        ),
        "ports": pd.DataFrame(
            [
                ("rack", "host 1", "host", 3.0, 1.0, 9.0, 8.0, 0.5),
                ("rack", "host 2", "host", 2.0, 1.0, 4.0, 8.0, 0.5),
                ("core", "rack", "switch", 4.0, 2.0, 13.0, 20.0, 1.0),
            ],
            columns=[
                "switch",
                "port",
                "to",
                "applications",
                "epochs",
                "processes",
                "rule_capacity",
                "rule_ms",
            ],
        ),
        "events": pd.DataFrame(
            [
                (100.0, "east a", "down"),
                (3_700.0, "east a", "up"),
                (20_000.0, "east b", "pause"),
                (20_002.0, "east b", "up"),
            ],
            columns=["at_s", "site", "what"],
        ),
        "gossip": pd.DataFrame(
            [(4.0, 1.0, 3.0, 200.0, 4.0, 2.0, 50.0, 0.01, "")],
            columns=[
                "members",
                "seeds",
                "fan_out",
                "interval_ms",
                "retransmit",
                "joins_per_s",
                "syncs_per_s",
                "loss",
                "start",
            ],
        ),
        "contacts": pd.DataFrame(
            [("p", "q"), ("q", "r"), ("r", "s"), ("s", "p")], columns=["member", "knows"]
        ),
        "naming": pd.DataFrame(
            [(3.0, 10.0, 3.0, 40.0, 2.0, 4.0, 1.0, 1.0)],
            columns=[
                "bits_of_epoch",
                "bits_of_app",
                "bits_of_local",
                "processes",
                "life_days",
                "partitions_per_month",
                "ports_per_cut",
                "retries",
            ],
        ),
    }


PRESETS: Final[dict[str, Callable[..., Membership]]] = {"regions": regions, "small": small}
