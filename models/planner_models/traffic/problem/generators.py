"""Presets: well-known and synthetic problems of system `traffic`.

Workloads are demands between the hosts of a network.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Final, Literal

import numpy as np
import pandas as pd
from pydantic import Field

from planner.errors import InputError
from planner_models.traffic.problem import topologies
from planner_models.traffic.problem.problem import Traffic
from planner_models.traffic.problem.readers import topohub
from planner_models.traffic.problem.readers.table_building import keep_largest
from planner_models.traffic.problem.topologies import Topology

Pattern = Literal["permutation", "stride", "gravity"]


Seed = Annotated[int, Field(ge=0, description="seed of the demands")]
Peak = Annotated[
    float, Field(gt=0, description="utilization of the busiest link when demands take their shortest paths")
]
Ports = Annotated[int, Field(ge=2, le=64, description="ports of each switch, even")]
Rate = Annotated[
    float, Field(gt=0, description="rate of each host's demand, Mbit/s; under gravity, on average")
]
Capacity = Annotated[float, Field(gt=0, description="capacity of every link, Mbit/s")]
Workload = Annotated[
    Pattern,
    Field(
        description="permutation: each host to one other, at random; stride: host i to host i + stride; "
        "gravity: every pair by the masses of its ends"
    ),
]
Stride = Annotated[
    Annotated[int, Field(gt=0)] | None,
    Field(description="of workload stride: distance to a host's target, in hosts; default: half of them"),
]
Pairs = Annotated[
    Annotated[int, Field(gt=0)] | None,
    Field(description="of workload gravity: number of demands, the largest; default: all"),
]


def abilene(*, peak_utilization: Peak = 1.0) -> Traffic:
    """Return the Abilene research network of SNDlib: 12 nodes, its demands, classed capacities."""
    return Traffic.from_tables(
        topohub.read("sndlib/abilene", weight="hops", peak_utilization=peak_utilization)
    )


def germany50(*, peak_utilization: Peak = 1.0) -> Traffic:
    """Return the German backbone of SNDlib: 50 nodes, its demands, classed capacities."""
    return Traffic.from_tables(
        topohub.read("sndlib/germany50", weight="hops", peak_utilization=peak_utilization)
    )


def fat_tree(
    *,
    k: Ports = 4,
    capacity_mbps: Capacity = 1_000.0,
    rate_mbps: Rate = 1_000.0,
    workload: Workload = "permutation",
    stride: Stride = None,
    pairs: Pairs = None,
    seed: Seed = 0,
) -> Traffic:
    """Build a fat tree of k-port switches with k^3/4 hosts: the optimum serves any permutation.

    source  Sen et al. 2013, sections 3.3 and 7.1
    """
    network = topologies.fat_tree(k=k, capacity_mbps=capacity_mbps)
    return _build_problem(network, workload, rate_mbps, stride, pairs, seed)


def oversubscribed_fat_tree(
    *,
    k: Ports = 8,
    ratio: Annotated[
        float, Field(gt=0, description="hosts under an edge switch for each of its uplinks")
    ] = 4.0,
    capacity_mbps: Capacity = 1_000.0,
    rate_mbps: Rate = 1_000.0,
    workload: Workload = "permutation",
    stride: Stride = None,
    pairs: Pairs = None,
    seed: Seed = 0,
) -> Traffic:
    """Build a fat tree with more hosts than uplinks under each edge switch, by default 4 to 1 and 512 hosts.

    source  Sen et al. 2013, section 7.1
    """
    hosts = max(1, round(ratio * k / 2))
    network = topologies.fat_tree(k=k, hosts_per_edge=hosts, capacity_mbps=capacity_mbps)
    return _build_problem(network, workload, rate_mbps, stride, pairs, seed)


def vl2(
    *,
    tors: Annotated[int, Field(gt=0, description="top-of-rack switches")] = 50,
    aggregations: Annotated[int, Field(ge=2, description="aggregation switches")] = 20,
    intermediates: Annotated[int, Field(gt=0, description="intermediate switches")] = 5,
    hosts_per_tor: Annotated[int, Field(gt=0, description="hosts of each top-of-rack switch")] = 20,
    host_mbps: Annotated[float, Field(gt=0, description="capacity of a host's link, Mbit/s")] = 1_000.0,
    speedup: Annotated[
        float, Field(gt=0, description="capacity of a link between switches, in links of a host")
    ] = 10.0,
    rate_mbps: Rate = 1_000.0,
    workload: Workload = "permutation",
    stride: Stride = None,
    pairs: Pairs = None,
    seed: Seed = 0,
) -> Traffic:
    """Build a VL2 network, by default of 1,000 hosts: top-of-rack, aggregation and intermediate switches.

    source  Sen et al. 2013, sections 3.3 and 7.1
    """
    network = topologies.vl2(
        tors=tors,
        aggregations=aggregations,
        intermediates=intermediates,
        hosts_per_tor=hosts_per_tor,
        host_mbps=host_mbps,
        switch_mbps=host_mbps * speedup,
    )
    return _build_problem(network, workload, rate_mbps, stride, pairs, seed)


def _build_problem(
    network: Topology, workload: Pattern, rate_mbps: float, stride: int | None, pairs: int | None, seed: int
) -> Traffic:
    demands = build_demands(
        network.hosts,
        workload=workload,
        rate_mbps=rate_mbps,
        stride=stride,
        pairs=pairs,
        random=np.random.default_rng(seed),
    )
    return Traffic(nodes=network.nodes, links=network.links, demands=demands)


def sample() -> Traffic:
    """Return a tiny problem, with equal paths and one overloaded link, that runs every design's kernels."""
    ring = [("a", "b", 4.0), ("b", "c", 4.0), ("c", "d", 1.0), ("d", "a", 4.0)]
    ends = pd.DataFrame(ring, columns=["tail", "head", "capacity_mbps"])
    back = ends.rename(columns={"tail": "head", "head": "tail"})
    demands = [("a", "c", 2.0), ("b", "d", 2.0), ("c", "d", 2.0)]
    return Traffic.from_tables(
        {
            "links": pd.concat([ends, back], ignore_index=True),
            "demands": pd.DataFrame(demands, columns=["source", "target", "rate_mbps"]),
        }
    )


PRESETS: Final[dict[str, Callable[..., Traffic]]] = {
    "abilene": abilene,
    "germany50": germany50,
    "fat_tree": fat_tree,
    "oversubscribed_fat_tree": oversubscribed_fat_tree,
    "vl2": vl2,
}


def build_demands(
    hosts: Sequence[str],
    *,
    workload: Pattern,
    rate_mbps: float,
    stride: int | None = None,
    pairs: int | None = None,
    random: np.random.Generator,
) -> pd.DataFrame:
    """Build the table `demands` of a workload by name.

    permutation  each host sends to one random other host, so that each receives from one
    stride       host i sends to host i + stride modulo their number; by default half of it
    gravity      every pair, in proportion to masses of its ends; hosts send `rate_mbps` on average

    pairs   of gravity: number of demands, the largest; default: all
    source  Sen et al. 2013, section 7.2.1 (permutation, stride)
    """
    if stride is not None and workload != "stride":
        raise InputError(
            f"problem.stride is {stride}, but problem.workload is '{workload}', must be 'stride'"
        )
    if pairs is not None and workload != "gravity":
        raise InputError(f"problem.pairs is {pairs}, but problem.workload is '{workload}', must be 'gravity'")
    if len(hosts) < 2:
        raise InputError(f"the network has {len(hosts)} host, a workload needs at least 2")
    match workload:
        case "permutation":
            return draw_permutation(hosts, rate_mbps=rate_mbps, random=random)
        case "stride":
            return stride_demands(hosts, rate_mbps=rate_mbps, stride=stride)
        case "gravity":
            return draw_gravity(hosts, rate_mbps=rate_mbps, pairs=pairs, random=random)


def draw_permutation(hosts: Sequence[str], *, rate_mbps: float, random: np.random.Generator) -> pd.DataFrame:
    """Draw demands in which every host sends to one other host and receives from one."""
    while True:
        target = random.permutation(len(hosts))
        if (target != np.arange(len(hosts))).all():
            return _table(hosts, np.arange(len(hosts)), target, np.full(len(hosts), rate_mbps))


def stride_demands(hosts: Sequence[str], *, rate_mbps: float, stride: int | None = None) -> pd.DataFrame:
    """Build demands from each host i to host i + stride modulo their number; by default half of it."""
    step = len(hosts) // 2 if stride is None else stride
    if step % len(hosts) == 0:
        raise InputError(f"problem.stride is {step}: with {len(hosts)} hosts, each would send to itself")
    source = np.arange(len(hosts))
    return _table(hosts, source, (source + step) % len(hosts), np.full(len(hosts), rate_mbps))


def draw_gravity(
    hosts: Sequence[str], *, rate_mbps: float, pairs: int | None = None, random: np.random.Generator
) -> pd.DataFrame:
    """Draw demands in proportion to masses of their ends, lognormal and separate for each direction.

    The demands that are kept add up to `rate_mbps` for each host, on average.
    """
    count = len(hosts)
    sent, received = random.lognormal(size=count), random.lognormal(size=count)
    source, target = np.nonzero(~np.eye(count, dtype=bool))
    rate = sent[source] * received[target]
    largest = keep_largest(rate, pairs)
    source, target, rate = source[largest], target[largest], rate[largest]
    return _table(hosts, source, target, rate * (rate_mbps * count / rate.sum()))


def _table(hosts: Sequence[str], source: np.ndarray, target: np.ndarray, rate: np.ndarray) -> pd.DataFrame:
    names = np.array(hosts, dtype=object)
    return pd.DataFrame({"source": names[source], "target": names[target], "rate_mbps": rate})
