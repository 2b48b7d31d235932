"""Presets: made-up problems of system `geostore`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Final, Literal

import numpy as np
import pandas as pd
from pydantic import Field

from planner.arrays import Floats
from planner.contract.parameters import spread
from planner_models import geonames
from planner_models.geostore.problem.problem import Geostore
from planner_models.geostore.problem.routes import EARTH_KM, FIBRE_KM_PER_MS
from planner_models.geostore.problem.schema import DEFAULT_PROTOCOL, JOIN, MAX_USD
from planner_models.globe import distance_km

Seed = Annotated[int, Field(ge=0, description="seed of the random numbers")]
DETOUR: Final = 1.5
"""Length of a way over that of the great circle."""
EGRESS_USD: Final = {"NA": 0.02, "EU": 0.02, "AS": 0.08, "OC": 0.1, "SA": 0.14, "AF": 0.15}
"""Price of a GB that leaves a region, by its continent; made up, as large as those of public price lists."""
MOST_PER_COUNTRY: Final = 4
PROVIDERS: Final = ("north", "east", "south")


@dataclass(frozen=True, kw_only=True)
class Workload:
    """Groups of data, and who uses them."""

    groups: Annotated[int, Field(ge=1, le=100_000, description="number of groups")] = 100
    users: Annotated[int, Field(ge=1, le=1_000, description="largest number of regions that use a group")] = (
        10
    )
    reads_per_s: Annotated[
        float, Field(gt=0, allow_inf_nan=False, description="median of the reads a second of a region")
    ] = 100.0
    write_share: Annotated[float, Field(ge=0, lt=1, description="share of writes in all operations")] = 0.1
    gb: Annotated[float, Field(gt=0, allow_inf_nan=False, description="median size of a group, GB")] = 100.0
    object_bytes: Annotated[
        float, Field(gt=0, allow_inf_nan=False, description="size of a column's value, bytes")
    ] = 1000.0
    limit_ms: Annotated[
        float | None, Field(gt=0, description="limit of a page's reads and writes, ms; default: none")
    ] = 100.0
    failures: Annotated[int, Field(ge=0, le=10, description="regions that may fail at once")] = 1
    consistency: Annotated[
        Literal["eventual", "causal", "quorum", "leader", "coded", "any"],
        Field(description="consistency of all groups"),
    ] = "causal"
    chain: Annotated[
        int,
        Field(ge=1, le=1_000, description="groups that depend on each other: each on one before; 1: on none"),
    ] = 1


@spread(workload=Workload())
def world(
    *,
    regions: Annotated[int, Field(ge=2, le=200, description="number of regions, in large cities")] = 60,
    workload: Workload,
    seed: Seed = 0,
) -> Geostore:
    """Build regions in the largest cities, with made-up prices by continent, and random groups.

    Round-trip times are those of light in fibre on a way that is half as long again as the great circle.
    Regions use groups in proportion to the people of their city; rates and sizes are lognormal.
    """
    random = np.random.default_rng(seed)
    cities = largest_cities(regions)
    position = cities["latitude"].to_numpy(float), cities["longitude"].to_numpy(float)
    km = distance_km(*position, *position, radius_km=EARTH_KM)
    continent = [geonames.continent_by_country()[country] for country in cities["country"]]
    egress = np.array([EGRESS_USD[name] for name in continent])
    names = cities["name"].to_numpy(object)
    source, target = np.nonzero(~np.eye(regions, dtype=bool))
    dear = np.where(egress > 0.05, 1.3, 1.0)
    frame = pd.DataFrame(
        {
            "region": names,
            "storage_usd_gb_month": np.round(0.02 * dear * random.uniform(1.0, 1.3, regions), 4),
            "put_usd": np.round(5e-6 * dear, 9),
            "get_usd": np.round(4e-7 * dear, 10),
            "zones": 3.0,
            "provider": [PROVIDERS[row % len(PROVIDERS)] for row in range(regions)],
            "latitude": position[0],
            "longitude": position[1],
        }
    )
    links = pd.DataFrame(
        {
            "source": names[source],
            "target": names[target],
            "rtt_ms": np.round(1.0 + 2 * DETOUR * km[source, target] / FIBRE_KM_PER_MS, 2),
            "usd_per_gb": egress[source],
        }
    )
    weights = cities["population"].to_numpy(float)
    return Geostore(
        regions=frame, links=links, **draw_workload(workload, names, weights / weights.sum(), random)
    )


def largest_cities(number: int) -> pd.DataFrame:
    """Return the largest cities of the world, at most four of a country, each name once."""
    cities = geonames.cities().sort_values("population", ascending=False, kind="stable")
    cities = cities[cities["country"].map(geonames.continent_by_country()).isin(list(EGRESS_USD))]
    rank = cities.groupby("country").cumcount()
    cities = cities[rank < MOST_PER_COUNTRY].drop_duplicates("name")
    return cities.head(number).reset_index(drop=True)


def draw_workload(
    workload: Workload, regions: object, weights: Floats, random: np.random.Generator
) -> dict[str, pd.DataFrame]:
    """Return the tables groups, access and, where groups depend on each other, depends.

    weights  (N,) probability with which a region uses a group
    """
    count, names = workload.groups, np.asarray(regions, dtype=object)
    labels = [f"g{row + 1}" for row in range(count)]
    gb = workload.gb * random.lognormal(0.0, 1.0, count)
    groups = pd.DataFrame({"group": labels, "size_gb": gb, "object_bytes": workload.object_bytes})
    groups["class"] = workload.consistency
    groups["failures"] = float(min(workload.failures, len(names) - 1))
    if workload.limit_ms is not None:
        groups["read_ms"] = groups["write_ms"] = workload.limit_ms
    rows = []
    for label in labels:
        number = int(random.integers(min(2, workload.users), workload.users + 1))
        used = random.choice(len(names), min(number, len(names)), replace=False, p=weights)
        rate = workload.reads_per_s * random.lognormal(0.0, 1.5, len(used))
        writes = rate * workload.write_share / (1 - workload.write_share)
        rows += [
            (label, names[region], read, write)
            for region, read, write in zip(used.tolist(), rate.tolist(), writes.tolist(), strict=True)
        ]
    tables = {
        "groups": groups,
        "access": pd.DataFrame(rows, columns=["group", "region", "reads_per_s", "writes_per_s"]),
    }
    pairs = [
        (labels[row], labels[int(random.integers(row - row % workload.chain, row))])
        for row in range(count)
        if row % workload.chain
    ]
    if pairs:
        tables["depends"] = pd.DataFrame(pairs, columns=["group", "on"])
    return tables


def vicci(
    *,
    limit_ms: Annotated[
        float | None, Field(gt=0, description="limit of a page's reads and writes, ms; default: none")
    ] = None,
    write_share: Annotated[float, Field(ge=0, lt=1, description="share of writes in all operations")] = 0.1,
) -> Geostore:
    """Build the testbed of Lloyd et al. 2013, 7.3: Princeton, Stanford and Washington, 88, 84, 20 ms apart.

    Prices are made up; operations are those of the dynamic workload generator (Table 3).
    """
    names = ["Princeton", "Stanford", "Washington"]
    pairs = {
        ("Princeton", "Stanford"): 88.0,
        ("Princeton", "Washington"): 84.0,
        ("Stanford", "Washington"): 20.0,
    }
    links = [(a, b, ms, 0.02) for (a, b), ms in pairs.items()]
    links += [(b, a, ms, usd) for a, b, ms, usd in links]
    groups = pd.DataFrame({"group": ["default"], "size_gb": [100.0], "object_bytes": [128.0]})
    groups["class"] = "causal"
    if limit_ms is not None:
        groups["read_ms"] = groups["write_ms"] = limit_ms
    return Geostore(
        regions=pd.DataFrame(
            {
                "region": names,
                "storage_usd_gb_month": 0.02,
                "put_usd": 5e-6,
                "get_usd": 4e-7,
                "latitude": [40.34, 37.43, 47.65],
                "longitude": [-74.65, -122.17, -122.31],
            }
        ),
        links=pd.DataFrame(links, columns=["source", "target", "rtt_ms", "usd_per_gb"]),
        groups=groups,
        access=pd.DataFrame(
            {
                "group": "default",
                "region": names,
                "reads_per_s": 1000.0 * (1 - write_share),
                "writes_per_s": 1000.0 * write_share,
                "keys_per_op": 5.0,
                "columns_per_key": 5.0,
                "write_transactions": 0.5,
            }
        ),
    )


@spread(workload=Workload())
def fleet(
    *,
    regions: Annotated[int, Field(ge=2, le=200, description="number of regions, in large cities")] = 30,
    limited: Annotated[
        int, Field(ge=0, le=200, description="regions with few servers: those with the most operations")
    ] = 8,
    capacity_share: Annotated[
        float,
        Field(
            gt=0,
            le=100,
            description="operations that the servers of such a region carry, over those of its own users",
        ),
    ] = 0.7,
    server_kops: Annotated[
        float, Field(gt=0, le=1e6, description="operations of a server, thousands a second")
    ] = 10.0,
    server_usd_month: Annotated[
        float, Field(ge=0, le=MAX_USD, description="price of a server, USD a month")
    ] = 150.0,
    workload: Workload,
    seed: Seed = 0,
) -> Geostore:
    """Build the regions and groups of preset `world`, with servers that are few where most users are."""
    problem = world(regions=regions, seed=seed, **vars(workload))
    operations = np.bincount(problem.user_region, problem.requests_per_s, len(problem.regions))
    busiest = np.argsort(-operations, kind="stable")[:limited]
    largest = np.full(len(operations), np.nan)
    largest[busiest] = np.ceil(capacity_share * operations[busiest] / (1000.0 * server_kops))
    return replace(
        problem,
        regions=problem.regions.assign(
            server_usd_month=server_usd_month,
            server_kops=server_kops,
            least_servers=0.0,
            most_servers=largest,
        ),
    )


SMALL_REGIONS: Final = {
    "region": ["oregon", "virginia", "ireland", "tokyo"],
    "storage_usd_gb_month": [0.023, 0.023, 0.025, 0.03],
    "put_usd": [5e-6, 5e-6, 5.5e-6, 6e-6],
    "get_usd": [4e-7, 4e-7, 4.4e-7, 5e-7],
    "server_usd_month": [200.0, 180.0, 220.0, 260.0],
    "server_kops": [10.0, 10.0, 10.0, 10.0],
    "least_servers": [0.0, 0.0, 0.0, 0.0],
    "most_servers": [4.0, np.nan, 4.0, np.nan],
    "zones": [3.0, 3.0, 3.0, 2.0],
    "provider": ["one", "two", "three", "two"],
    "latitude": [45.8, 38.9, 53.3, 35.7],
    "longitude": [-119.7, -77.4, -6.3, 139.7],
}
SMALL_RTT_MS: Final = {(0, 1): 60.0, (0, 2): 130.0, (0, 3): 100.0, (1, 2): 70.0, (1, 3): 150.0, (2, 3): 220.0}
SMALL_EGRESS_USD: Final = (0.02, 0.02, 0.03, 0.09)
SMALL_GROUPS: Final = {
    "group": ["users", "posts", "likes", "orders", "stock"],
    "size_gb": [50.0, 400.0, 80.0, 20.0, 5.0],
    "object_bytes": [200.0, 1000.0, 16.0, 500.0, 100.0],
    "class": ["causal", "causal", "eventual", "leader", "any"],
    "invariant": ["no", "no", "no", "yes", "yes"],
    "counter": [0.0, 0.0, 0.9, 0.0, 0.0],
    "survive": ["region", "none", "zone", "region", "provider"],
    "failures": [1.0, 0.0, 0.0, 1.0, 1.0],
    "read_ms": [120.0, 80.0, 160.0, 200.0, 200.0],
    "write_ms": [120.0, 120.0, 160.0, 300.0, 300.0],
    "failover_ms": [180.0, 250.0, 250.0, 300.0, 300.0],
    "stale_ms": [200.0, 200.0, 300.0, 400.0, 400.0],
}
SMALL_ACCESS: Final = (
    ("users", "oregon", 200.0, 20.0),
    ("users", "ireland", 300.0, 30.0),
    ("posts", "oregon", 500.0, 40.0),
    ("posts", "ireland", 400.0, 60.0),
    ("posts", "tokyo", 100.0, 5.0),
    ("likes", "virginia", 900.0, 300.0),
    ("likes", "tokyo", 50.0, 80.0),
    ("orders", "virginia", 50.0, 25.0),
    ("orders", "ireland", 40.0, 20.0),
    ("stock", "virginia", 30.0, 30.0),
    ("stock", "oregon", 10.0, 5.0),
)
SMALL_RANGES: Final = {
    "range": ["a-f", "g-l", "m-r", "s-z"],
    "kops": [1.2, 0.4, 0.3, 0.8],
    "size_gb": [200.0, 80.0, 60.0, 140.0],
    "server": ["first", "first", "second", ""],
}
SMALL_PROTOCOL: Final = {**DEFAULT_PROTOCOL, "service_ms": 0.1, "replication_load": 0.8}


def small() -> Geostore:
    """Return a tiny problem with every table: four regions, five groups of all classes."""
    names = [str(name) for name in pd.DataFrame(SMALL_REGIONS)["region"]]
    links = [
        (names[source], names[target], ms, SMALL_EGRESS_USD[source])
        for pair, ms in SMALL_RTT_MS.items()
        for source, target in (pair, pair[::-1])
    ]
    return Geostore(
        regions=pd.DataFrame(SMALL_REGIONS),
        links=pd.DataFrame(links, columns=["source", "target", "rtt_ms", "usd_per_gb"]),
        groups=pd.DataFrame(SMALL_GROUPS),
        access=pd.DataFrame(SMALL_ACCESS, columns=["group", "region", "reads_per_s", "writes_per_s"]).assign(
            keys_per_op=2.0, columns_per_key=1.0, write_transactions=0.1, operations_per_page=1.0
        ),
        depends=pd.DataFrame({"group": ["posts"], "on": ["users"], "share": [0.9], "per_write": [2.0]}),
        protocol=pd.DataFrame(SMALL_PROTOCOL, index=[0]),
        placed=pd.DataFrame({"group": ["posts"], "region": ["virginia"]}),
        pinned=pd.DataFrame({"group": ["users"], "region": ["ireland"]}),
        forbidden=pd.DataFrame({"group": ["orders"], "region": ["tokyo"]}),
        ranges=pd.DataFrame(SMALL_RANGES),
        scans=pd.DataFrame({"first": ["a-f"], "last": ["m-r"], "per_s": [5.0]}),
        transactions=pd.DataFrame(
            {"ranges": [JOIN.join(("a-f", "s-z")), JOIN.join(("g-l", "m-r"))], "per_s": [20.0, 10.0]}
        ),
        servers=pd.DataFrame({"server": ["first", "second"], "kops": [2.0, 2.0]}),
    )
