"""Synthetic stores after the experiments of Pisces. No number here is a claim about a real store."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Final, Literal

import numpy as np
import pandas as pd
from pydantic import Field

from planner.arrays import Floats, Ints
from planner.contract.parameters import spread
from planner.errors import InputError
from planner_models.fairshare.problem.problem import SharedStore
from planner_models.fairshare.problem.schema import MOST_PARTITIONS

KEYS: Final = 100_000
EXPONENT: Final = 0.99
HOT_KEYS: Final = 2_000  # hashed one by one; the others are many and alike, and are spread evenly
RATE_KOPS: Final = 100.0
KEY_GB: Final = 1e-6  # objects of 1 kB

Tenants = Annotated[int, Field(ge=1, le=100_000, description="tenants")]
Partitions = Annotated[int, Field(ge=1, le=10_000, description="partitions of each tenant")]
Nodes = Annotated[int, Field(ge=1, le=5_000, description="nodes, all alike")]
Count = Annotated[int, Field(ge=1, le=10, description="copies of each partition")]
Load = Annotated[
    float, Field(gt=0, le=100, description="demand of a tenant over its fair share, in the median")
]
Spread = Annotated[
    float, Field(ge=0, le=3, description="standard deviation of the logarithm of tenants' demands")
]
Mix = Annotated[
    Literal["elastic", "fixed"],
    Field(description="elastic: partitions are served alone; fixed: requests keep their proportions"),
]
Weights = Annotated[
    Literal["equal", "classes"], Field(description="classes: 1 in 16 weighs 100, 5 in 16 weigh 10, others 1")
]
Memory = Annotated[float, Field(ge=1, description="memory of all nodes over that of all replicas")]
MostNodes = Annotated[
    int, Field(ge=0, le=1_000_000, description="nodes that a tenant may be on; 0: any number")
]
Domains = Annotated[int, Field(ge=0, le=1_000_000, description="racks that nodes are spread over; 0: none")]
Placed = Annotated[
    Literal["none", "random", "balanced"],
    Field(
        description="replicas at the start: none; on random nodes; balanced by demand, before demand shifts"
    ),
]
Shift = Annotated[
    float,
    Field(
        ge=0, le=3, description="standard deviation of the logarithm by which each demand shifts afterwards"
    ),
]
Seed = Annotated[int, Field(ge=0, description="seed of all random draws")]


@dataclass(frozen=True, kw_only=True)
class Store:
    """Tenants of a store and their demand, its nodes, and where replicas are at the start."""

    tenants: Tenants = 40
    partitions: Partitions = 16
    nodes: Nodes = 10
    replicas: Count = 2
    load: Load = 1.3
    spread: Spread = 0.3
    mix: Mix = "fixed"
    weights: Weights = "classes"
    memory: Memory = 1.5
    most_nodes: MostNodes = 0
    domains: Domains = 0
    placed: Placed = "none"
    shift: Shift = 0.0
    seed: Seed = 0


@spread(store=Store())
def zipf(*, store: Store) -> SharedStore:
    """Generate tenants with 100,000 keys each, of Zipf popularity 0.99, hashed to their partitions."""
    if store.tenants * store.partitions > MOST_PARTITIONS:
        raise InputError(
            f"partitions: {store.partitions:,} for each of {store.tenants:,} tenants are "
            f"{store.tenants * store.partitions:,}, must be up to {MOST_PARTITIONS:,}"
        )
    random = np.random.default_rng(store.seed)
    heavy, middle = max(store.tenants // 16, 1), 5 * store.tenants // 16
    weight = np.ones(store.tenants)
    if store.weights == "classes":
        weight[:heavy], weight[heavy : heavy + middle] = 100.0, 10.0
    fair = weight / weight.sum() * store.nodes * RATE_KOPS
    asked = fair * store.load
    if store.spread:
        asked *= random.lognormal(0.0, store.spread, size=store.tenants)
    demand = (asked[:, None] * draw_popularity(random, store.tenants, store.partitions)).ravel()
    size = KEYS * KEY_GB / store.partitions
    count = min(store.replicas, store.nodes)
    owner = np.repeat(np.arange(store.tenants), store.partitions)
    names, labels, servers = (
        np.array([f"{letter}{row + 1}" for row in range(number)], dtype=object)
        for letter, number in (("t", store.tenants), ("p", store.partitions), ("n", store.nodes))
    )
    on = None
    if store.placed != "none":
        node = _place(random, demand, store.nodes, count, store.placed == "balanced")
        rows = np.repeat(np.arange(len(demand)), count)
        on = pd.DataFrame(
            {
                "tenant": names[owner[rows]],
                "partition": np.tile(labels, store.tenants)[rows],
                "node": servers[node],
            }
        )
    if store.shift:
        factor = random.lognormal(0.0, store.shift, size=len(demand))
        total = np.bincount(owner, weights=demand)
        demand = demand * factor
        demand *= (total / np.bincount(owner, weights=demand))[owner]
    frame = pd.DataFrame({"node": servers, "rate_kops": RATE_KOPS})
    frame["memory_gb"] = max(
        store.memory * size * count * len(demand) / store.nodes, size * np.ceil(store.memory)
    )
    if store.domains:
        frame["domain"] = [f"rack{row % store.domains + 1}" for row in range(store.nodes)]
    people = pd.DataFrame(
        {
            "tenant": names,
            "weight": weight,
            "mix": store.mix,
            "replicas": float(min(count, store.domains or count)),
        }
    )
    if store.most_nodes:
        people["most_nodes"] = float(max(store.most_nodes, count))
    return SharedStore(
        nodes=frame,
        tenants=people,
        partitions=pd.DataFrame(
            {
                "tenant": names[owner],
                "partition": np.tile(labels, store.tenants),
                "demand_kops": np.maximum(demand.round(6), 1e-6),
                "size_gb": size,
            }
        ),
        placed=on,
    )


def draw_popularity(random: np.random.Generator, tenants: int, partitions: int) -> Floats:
    """Draw the share of each partition in its tenant's requests, (tenants, partitions).

    The 2,000 most popular keys are hashed one by one, the others are spread evenly.
    """
    popularity = np.arange(1, KEYS + 1, dtype=float) ** -EXPONENT
    popularity /= popularity.sum()
    share = np.full((tenants, partitions), popularity[HOT_KEYS:].sum() / partitions)
    for t in range(tenants):
        partition_of = random.integers(partitions, size=HOT_KEYS)
        share[t] += np.bincount(partition_of, weights=popularity[:HOT_KEYS], minlength=partitions)
    return share


def _place(random: np.random.Generator, demand: Floats, nodes: int, count: int, is_balanced: bool) -> Ints:
    """Return distinct nodes for the replicas of each partition, by partition, (partitions x count,).

    Balanced: the partition with the most demand first, on the nodes with the least. Random: on consecutive
    nodes of random orders, so that all nodes have the same number but for one.
    """
    if is_balanced:
        node = np.zeros((len(demand), count), dtype=np.int64)
        waiting = [(0.0, n) for n in range(nodes)]
        for p in np.argsort(-demand, kind="stable").tolist():
            taken = [heapq.heappop(waiting) for _ in range(count)]
            node[p] = [n for _, n in taken]
            for load, n in taken:
                heapq.heappush(waiting, (load + float(demand[p]) / count, n))
        return node.ravel()
    rounds = -(-len(demand) * count // (nodes // count * count))
    orders = [random.permutation(nodes)[: nodes // count * count] for _ in range(rounds)]
    return np.concatenate(orders)[: len(demand) * count].astype(np.int64)


def figure_3(
    *,
    isolation: Annotated[bool, Field(description="whether every second tenant has twice the demand")] = False,
    partitions: Partitions = 64,
    replicas: Count = 1,
    load: Load = 1.2,
    seed: Seed = 0,
) -> SharedStore:
    """Generate the 8 tenants of equal weight on 8 nodes of Figure 3, top row or (isolation) bottom row."""
    store = zipf(
        tenants=8, partitions=partitions, nodes=8, replicas=replicas, load=load, spread=0.0, weights="equal",
        seed=seed,
    )  # fmt: skip
    return _double_half(store) if isolation else store


def _double_half(store: SharedStore) -> SharedStore:
    return store.with_demand(store.demand_kops * np.where(store.tenant % 2 == 0, 2.0, 1.0))


def figure_4a(*, partitions: Partitions = 8, load: Load = 1.2, seed: Seed = 0) -> SharedStore:
    """Generate the 64 tenants of Figure 4a: weights 100, 10 and 1, each on 4 of 8 nodes."""
    return zipf(
        tenants=64, partitions=partitions, nodes=8, replicas=1, load=load, spread=0.0, most_nodes=4, seed=seed
    )


def figure_4b(*, partitions: Partitions = 12, load: Load = 1.2, seed: Seed = 0) -> SharedStore:
    """Generate the 100 tenants of Figure 4b, each on 6 of 20 nodes; the paper prints no weights."""
    return zipf(
        tenants=100,
        partitions=partitions,
        nodes=20,
        replicas=1,
        load=load,
        spread=0.0,
        most_nodes=6,
        seed=seed,
    )


def figure_5a(*, partitions: Partitions = 64, seed: Seed = 0) -> SharedStore:
    """Generate the tenants of Figure 5a: bursty and diurnal ones with changing demand, and constant ones.

    Demands are read from the text: at the peak all want more than they are due; before it and after 50 s,
    constant tenants want what others leave. The paper prints no rates.
    """
    store = zipf(
        tenants=8,
        partitions=partitions,
        nodes=8,
        replicas=2,
        load=1.0,
        spread=0.0,
        weights="equal",
        seed=seed,
    )
    weight = np.array([1.0, 1.0, 2.0, 2.0, 1.0, 1.0, 1.0, 1.0])
    names = np.array(["bursty1", "bursty2", "diurnal1", "diurnal2", *(f"constant{k}" for k in range(1, 5))])
    total_kops = 8 * RATE_KOPS
    due = weight / weight.sum() * total_kops
    start = np.array([0.1, 0.1, 0.2, 0.2, 1.6, 1.6, 1.6, 1.6]) * due
    ramp = [
        (at_s, name, (0.2 + 1.3 * at_s / 20.0) * due[t])
        for at_s in np.arange(2.0, 21.0, 2.0).tolist()
        for t, name in ((2, "diurnal1"), (3, "diurnal2"))
    ]
    burst = [
        (at_s, name, factor * due[t])
        for at_s, factor in ((18.0, 1.6), (50.0, 0.1), (70.0, 1.6))
        for t, name in ((0, "bursty1"), (1, "bursty2"))
    ]
    tail = [(50.0, name, 0.2 * due[t]) for t, name in ((2, "diurnal1"), (3, "diurnal2"))]
    events = pd.DataFrame(
        [(at_s, name, "*", round(float(kops), 6)) for at_s, name, kops in [*ramp, *burst, *tail]],
        columns=["at_s", "tenant", "partition", "demand_kops"],
    ).sort_values(["at_s", "tenant"], ignore_index=True)
    tenants = store.tenants.assign(tenant=names, weight=weight)
    return SharedStore(
        nodes=store.nodes,
        tenants=tenants,
        partitions=store.partitions.assign(
            tenant=names[store.tenant],
            demand_kops=np.maximum((store.share_of_tenant * start[store.tenant]).round(6), 1e-6),
        ),
        events=events,
    )


def figure_5b(
    *, partitions: Partitions = 64, replicas: Count = 2, load: Load = 1.2, seed: Seed = 0
) -> SharedStore:
    """Generate the tenants of Figure 5b: their keys' popularity is in another order from 50 to 110 s."""
    store = figure_3(partitions=partitions, replicas=replicas, load=load, seed=seed)
    other = figure_3(partitions=partitions, replicas=replicas, load=load, seed=seed + 1)
    frames = [
        source.partitions[["tenant", "partition", "demand_kops"]].assign(at_s=at_s)
        for at_s, source in ((50.0, other), (110.0, store))
    ]
    columns = ["at_s", "tenant", "partition", "demand_kops"]
    return store.with_events(pd.concat(frames, ignore_index=True)[columns])


def departments(
    *,
    departments: Annotated[int, Field(ge=1, le=1_000, description="departments")] = 3,
    teams: Annotated[int, Field(ge=1, le=1_000, description="teams of each department")] = 2,
    tenants: Annotated[int, Field(ge=1, le=1_000, description="tenants of each team")] = 3,
    partitions: Partitions = 4,
    nodes: Nodes = 6,
    replicas: Count = 2,
    mix: Mix = "elastic",
    load: Load = 1.3,
    reserved: Annotated[
        float, Field(ge=0, le=1, description="part of the store that the first tenants of teams reserve")
    ] = 0.3,
    limited: Annotated[
        float, Field(gt=0, le=1, description="limit of the last tenant of each team, over its demand")
    ] = 0.7,
    seed: Seed = 0,
) -> SharedStore:
    """Generate tenants in teams of departments: a department or team weighs 1, 2, 3, 1, 2, ... in turn."""
    count = departments * teams
    store = zipf(
        tenants=count * tenants, partitions=partitions, nodes=nodes, replicas=replicas, mix=mix, load=load,
        weights="equal", seed=seed,
    )  # fmt: skip
    names = [f"d{row // teams + 1}.{row % teams + 1}" for row in range(count)]
    tops = [f"d{row + 1}" for row in range(departments)]
    rows = np.arange(count * tenants)
    is_first, is_last = rows % tenants == 0, (rows % tenants == tenants - 1) & (tenants > 1)
    people = store.tenants.assign(
        group=np.array(names, dtype=object)[rows // tenants],
        reserved_kops=np.where(is_first, reserved * nodes * RATE_KOPS / count, np.nan).round(6),
        limit_kops=np.where(is_last, limited * store.requested_kops, np.nan).round(6),
    )
    weight = 1.0 + np.concatenate([np.arange(departments), np.arange(count) % teams]) % 3
    groups = pd.DataFrame(
        {
            "group": [*tops, *names],
            "parent": [*[""] * departments, *np.repeat(tops, teams).tolist()],
            "weight": weight,
        }
    )
    return SharedStore(
        nodes=store.nodes, tenants=people, partitions=store.partitions, groups=groups, placed=store.placed
    )


def drf(*, tenants: Tenants = 6, nodes: Nodes = 4, mix: Mix = "elastic", seed: Seed = 0) -> SharedStore:
    """Generate tenants with requests that use CPU and the network in different amounts."""
    store = zipf(
        tenants=tenants, partitions=4, nodes=nodes, replicas=min(2, nodes), weights="equal", mix=mix,
        load=3.0, seed=seed,
    )  # fmt: skip
    random = np.random.default_rng(seed)
    kinds = ("cpu", "bytes_out")
    return SharedStore(
        nodes=store.nodes,
        tenants=store.tenants,
        partitions=store.partitions,
        resources=pd.DataFrame(
            [(name, kind, 100.0) for name in store.node_names for kind in kinds],
            columns=["node", "resource", "capacity"],
        ),
        uses=pd.DataFrame(
            [
                (name, kind, round(float(random.uniform(*((0.2, 0.6) if (row + k) % 2 else (1.0, 3.0)))), 3))
                for row, name in enumerate(store.tenant_names)
                for k, kind in enumerate(kinds)
            ],
            columns=["tenant", "resource", "per_op"],
        ),
    )


def small(*, mix: Mix = "fixed", seed: Seed = 0) -> SharedStore:
    """Generate three tenants with three partitions each on three nodes."""
    return zipf(
        tenants=3,
        partitions=3,
        nodes=3,
        replicas=1,
        weights="equal",
        mix=mix,
        load=1.2,
        memory=1.4,
        seed=seed,
    )


def sample() -> SharedStore:
    """Generate a tiny store with replicas that must move, so that every compiled kernel is reached."""
    store = zipf(
        tenants=4,
        partitions=6,
        nodes=4,
        replicas=2,
        weights="equal",
        memory=2.0,
        placed="balanced",
        shift=1.0,
    )
    changes = [(10.0, "t1", "*", 50.0), (20.0, "t2", "p3", 10.0)]
    return store.with_events(pd.DataFrame(changes, columns=["at_s", "tenant", "partition", "demand_kops"]))


PRESETS: Final[Mapping[str, Callable[..., SharedStore]]] = {
    "zipf": zipf,
    "figure_3": figure_3,
    "figure_4a": figure_4a,
    "figure_4b": figure_4b,
    "figure_5a": figure_5a,
    "figure_5b": figure_5b,
    "departments": departments,
    "drf": drf,
    "small": small,
}
