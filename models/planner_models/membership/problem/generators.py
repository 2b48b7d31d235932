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
    "rack": (0.1, 3_600.0),
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
    services: Annotated[int, Field(ge=1, le=5_000, description="number of services, all alike")] = 1,
    group: Annotated[
        int | None,
        Field(ge=5, le=10_000_000, description="processes of a group that gossips; default: no group"),
    ] = None,
    joins_per_s: Annotated[
        float, Field(ge=0, le=1e6, description="processes that join the group in a second")
    ] = 10.0,
    seed: Seed = 0,
) -> Membership:
    """Build regions in random places of a square of 4,000 km, with zones and hosts, and some services."""
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
    return Membership(
        sites=pd.DataFrame(rows),
        delays=delays,
        services=_repeat(service, services),
        gossip=None
        if group is None
        else gossip_row(members=float(group), joins_per_s=joins_per_s, loss=loss),
    )


def _repeat(service: dict[str, object], count: int) -> pd.DataFrame:
    """Return the table of some services, all alike but for their names."""
    names = ["store"] if count == 1 else [f"store {number + 1}" for number in range(count)]
    return pd.DataFrame([{**service, "service": name} for name in names])


def gossip_row(**cells: object) -> pd.DataFrame:
    """Return the table of a group with memberlist's defaults; 20 joins a second at each of three seeds."""
    row: dict[str, object] = {
        "members": 100.0,
        "seeds": 3.0,
        "fan_out": 3.0,
        "interval_ms": 200.0,
        "retransmit": 4.0,
        "joins_per_s": 1.0,
        "syncs_per_s": 20.0,
    }
    return pd.DataFrame([row | cells])


def ternary_tree(
    *,
    hosts: Annotated[int, Field(ge=1, le=40, description="hosts of each of nine racks")] = 2,
    applications: Annotated[int, Field(ge=1, le=100, description="applications at each host")] = 3,
    rule_capacity: Annotated[int, Field(ge=1, le=100_000, description="rules of a switch")] = 1_500,
) -> Membership:
    """Build the complete ternary tree of 13 switches on which Albatross was measured: a root, three, nine."""
    racks = [[f"rack {3 * pod + number + 1}" for number in range(3)] for pod in range(3)]
    above = {f"pod {pod + 1}": [f"switch {pod + 1}"] for pod in range(3)}
    roots = ["root"]
    return _switched(racks, above, roots, (hosts, applications, rule_capacity))


def fat_tree(
    *,
    k: Annotated[int, Field(ge=2, le=16, multiple_of=2, description="ports of each switch, even")] = 4,
    applications: Annotated[int, Field(ge=1, le=100, description="applications at each host")] = 3,
    rule_capacity: Annotated[int, Field(ge=1, le=100_000, description="rules of a switch")] = 1_500,
) -> Membership:
    """Build a fat tree: k pods of k/2 racks with k/2 hosts each, so that a cut of a rack takes k/2 ports."""
    half = k // 2
    racks = [[f"rack {pod * half + number + 1}" for number in range(half)] for pod in range(k)]
    above = {f"pod {pod + 1}": [f"pod {pod + 1} switch {n + 1}" for n in range(half)] for pod in range(k)}
    roots = [f"core {number + 1}" for number in range(half * half)]
    return _switched(racks, above, roots, (half, applications, rule_capacity))


def _switched(
    racks: list[list[str]], above: dict[str, list[str]], roots: list[str], sizes: tuple[int, int, int]
) -> Membership:
    """Return racks below switches of pods, and these below roots, with fences at all ports down.

    above  switches of each pod by its name; roots reach each pod
    sizes  hosts of a rack, applications at a host, rules of a switch
    """
    hosts, applications, capacity = sizes
    sites = [site_row("data center", "region")]
    ports: list[tuple[object, ...]] = []
    for (pod, switches), names in zip(above.items(), racks, strict=True):
        sites.append(site_row(pod, "zone", "data center"))
        for rack in names:
            sites += [
                site_row(rack, "rack", pod),
                site_row(f"{rack} hosts", "host", rack, hosts=float(hosts)),
            ]
            ports += [_port(rack, f"host {n + 1}", "host", applications, 1, capacity) for n in range(hosts)]
            inside = hosts * applications
            ports += [_port(switch, rack, "switch", inside, 2, capacity) for switch in switches]
        inside = len(names) * hosts * applications
        ports += [_port(root, pod, "switch", inside, 3, capacity) for root in roots]
    count = sum(len(names) for names in racks) * hosts * applications
    per_cut = len(next(iter(above.values())))
    naming = {
        "bits_of_epoch": 3.0,
        "bits_of_app": 10.0,
        "bits_of_local": 3.0,
        "processes": float(count),
        "life_days": 1.0,
        "partitions_per_month": 6.0,
        "ports_per_cut": float(per_cut),
        "retries": 0.0,
    }
    columns = ("switch", "port", "to", "applications", "epochs", "processes", "rule_capacity", "rule_ms")
    return Membership(
        sites=pd.DataFrame(sites),
        services=pd.DataFrame([service_row(protocol="definitive", faults=1.0, managers=3.0)]),
        ports=pd.DataFrame(ports, columns=list(columns)),
        naming=pd.DataFrame([naming]),
    )


def _port(switch: str, port: str, to: str, processes: int, epochs: int, capacity: int) -> tuple[object, ...]:
    """Return a row of `ports`: each process behind it is an application of its own, up to 1,024."""
    applications = float(min(processes, 1_024))
    return (
        switch,
        port,
        to,
        applications,
        float(min(epochs, processes)),
        float(processes),
        float(capacity),
        0.5,
    )


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
        **_small_group(),
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


def _small_group() -> dict[str, pd.DataFrame]:
    """Return the group of the tiny problem: four processes, each of which knows the next one."""
    contacts = [("p", "q"), ("q", "r"), ("r", "s"), ("s", "p")]
    cells = {"members": 4.0, "seeds": 1.0, "joins_per_s": 2.0, "syncs_per_s": 50.0, "loss": 0.01, "start": ""}
    return {
        "gossip": gossip_row(**cells),
        "contacts": pd.DataFrame(contacts, columns=["member", "knows"]),
    }


PRESETS: Final[dict[str, Callable[..., Membership]]] = {
    "regions": regions,
    "testbed": ternary_tree,
    "fat_tree": fat_tree,
    "small": small,
}
