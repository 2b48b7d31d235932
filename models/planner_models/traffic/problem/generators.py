"""Presets: well-known and synthetic problems of system `traffic`.

Topologies of data centres are fat trees, also oversubscribed, and VL2, with workloads between their hosts.
Links come in pairs, one each way: first all that lead up from the hosts, then their opposites.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Annotated, Final, Literal

import numpy as np
import pandas as pd
from pydantic import Field

from planner.contract.parameters import spread
from planner.errors import InputError
from planner_models.traffic.problem.problem import Traffic
from planner_models.traffic.problem.readers import topohub
from planner_models.traffic.problem.readers.table_building import keep_largest

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
    Annotated[int, Field(gt=0, le=10**9)] | None,
    Field(description="of workload stride: distance to a host's target, in hosts; default: half of them"),
]
Pairs = Annotated[
    Annotated[int, Field(gt=0, le=10**9)] | None,
    Field(description="of workload gravity: number of demands, the largest; default: all"),
]
Places = dict[str, tuple[float, float, str]]
"""Place of each node in a drawing, x and y, and its group."""
POD_GAP: Final = 0.4  # between pods, in widths of a rack
RACK_TIER: Final = 0.08  # heights of tiers, in widths of the drawing
AGGREGATION_TIER: Final = 0.22
TOP_TIER: Final = 0.4


@dataclass(frozen=True, kw_only=True)
class HostDemands:
    """Demands between the hosts of a made-up network."""

    rate_mbps: Rate = 1_000.0
    workload: Workload = "permutation"
    stride: Stride = None
    pairs: Pairs = None
    seed: Seed = 0

    def over(self, network: Topology) -> Traffic:
        """Return the problem of these demands over a network."""
        demands = build_demands(
            network.hosts,
            workload=self.workload,
            rate_mbps=self.rate_mbps,
            stride=self.stride,
            pairs=self.pairs,
            random=np.random.default_rng(self.seed),
        )
        return Traffic(nodes=network.nodes, links=network.links, demands=demands)


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


@spread(demands=HostDemands())
def fat_tree(
    *,
    k: Ports = 4,
    capacity_mbps: Capacity = 1_000.0,
    demands: HostDemands,
) -> Traffic:
    """Build a fat tree of k-port switches with k^3/4 hosts: the optimum serves any permutation.

    source  Sen et al. 2013, sections 3.3 and 7.1
    """
    network = build_fat_tree(k=k, capacity_mbps=capacity_mbps)
    return demands.over(network)


@spread(demands=HostDemands())
def oversubscribed_fat_tree(
    *,
    k: Ports = 8,
    ratio: Annotated[
        float, Field(gt=0, description="hosts under an edge switch for each of its uplinks")
    ] = 4.0,
    capacity_mbps: Capacity = 1_000.0,
    demands: HostDemands,
) -> Traffic:
    """Build a fat tree with more hosts than uplinks under each edge switch, by default 4 to 1 and 512 hosts.

    source  Sen et al. 2013, section 7.1
    """
    hosts = max(1, round(ratio * k / 2))
    network = build_fat_tree(k=k, hosts_per_edge=hosts, capacity_mbps=capacity_mbps)
    return demands.over(network)


@spread(demands=HostDemands())
def vl2(
    *,
    tors: Annotated[int, Field(gt=0, le=10_000, description="top-of-rack switches")] = 50,
    aggregations: Annotated[int, Field(ge=2, le=1_000, description="aggregation switches")] = 20,
    intermediates: Annotated[int, Field(gt=0, le=1_000, description="intermediate switches")] = 5,
    hosts_per_tor: Annotated[int, Field(gt=0, le=1_000, description="hosts of each top-of-rack switch")] = 20,
    host_mbps: Annotated[float, Field(gt=0, description="capacity of a host's link, Mbit/s")] = 1_000.0,
    speedup: Annotated[
        float, Field(gt=0, description="capacity of a link between switches, in links of a host")
    ] = 10.0,
    demands: HostDemands,
) -> Traffic:
    """Build a VL2 network, by default of 1,000 hosts: top-of-rack, aggregation and intermediate switches.

    source  Sen et al. 2013, sections 3.3 and 7.1
    """
    network = build_vl2(
        tors=tors,
        aggregations=aggregations,
        intermediates=intermediates,
        hosts_per_tor=hosts_per_tor,
        host_mbps=host_mbps,
        switch_mbps=host_mbps * speedup,
    )
    return demands.over(network)


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


@dataclass(frozen=True, kw_only=True, eq=False)
class Topology:
    """Nodes and links of a network, and its hosts.

    hosts  names, in the order in which workloads number them: neighbours under one switch first
    nodes  the table `nodes`; links  the table `links`
    """

    hosts: tuple[str, ...]
    nodes: pd.DataFrame
    links: pd.DataFrame


def build_fat_tree(*, k: int, hosts_per_edge: int | None = None, capacity_mbps: float) -> Topology:
    """Build a fat tree of k-port switches: k pods of k/2 edge and k/2 aggregation switches, (k/2)^2 cores.

    Nodes are host-P-E-H, edge-P-E, aggregation-P-A and core-G-C, for pod P and the group G of core
    switches to which aggregation switch G of each pod connects. With more than k/2 hosts under an edge
    switch the tree is oversubscribed.

    source  Sen et al. 2013, section 3.3
    """
    if k % 2:
        raise InputError(f"problem.k is {k}, must be even")
    half = k // 2
    hosts_per_edge = half if hosts_per_edge is None else hosts_per_edge
    pods, halves = range(k), range(half)
    first = [
        (f"host-{p}-{e}-{h}", f"edge-{p}-{e}") for p, e, h in product(pods, halves, range(hosts_per_edge))
    ]
    second = [(f"edge-{p}-{e}", f"aggregation-{p}-{a}") for p, e, a in product(pods, halves, halves)]
    third = [(f"aggregation-{p}-{a}", f"core-{a}-{c}") for p, a, c in product(pods, halves, halves)]
    width = k * half + (k - 1) * POD_GAP  # of the drawing; an edge switch has 1
    positions: Places = {}
    for p, e in product(pods, halves):
        start, pod = p * (half + POD_GAP), f"pod {p}"
        hosts = [f"host-{p}-{e}-{h}" for h in range(hosts_per_edge)]
        positions |= _place_rack(f"edge-{p}-{e}", hosts, start + e + 0.5, width, pod)
        positions[f"aggregation-{p}-{e}"] = (start + e + 0.5, AGGREGATION_TIER * width, pod)
    cores = [f"core-{a}-{c}" for a, c in product(halves, halves)]
    positions |= _place_row(cores, width, "core")
    return _duplex_topology(
        [host for host, _ in first],
        [*first, *second, *third],
        np.full(len(first + second + third), capacity_mbps),
        positions,
    )


def build_vl2(
    *,
    tors: int,
    aggregations: int,
    intermediates: int,
    hosts_per_tor: int,
    host_mbps: float,
    switch_mbps: float,
) -> Topology:
    """Build VL2: each top-of-rack switch on two aggregation switches, each of these on all intermediate ones.

    Nodes are host-T-H, tor-T, aggregation-A and intermediate-I. ToR switches take pairs of aggregation
    switches in rotation, so that all have about the same number of ToR switches.

    source  Sen et al. 2013, sections 3.3 and 7.1; Greenberg et al. 2009 (VL2)
    """
    if aggregations < 2:
        raise InputError(f"problem.aggregations is {aggregations}, must be at least 2")
    first = [(f"host-{t}-{h}", f"tor-{t}") for t, h in product(range(tors), range(hosts_per_tor))]
    second = [
        (f"tor-{t}", f"aggregation-{(2 * t + side) % aggregations}")
        for t, side in product(range(tors), range(2))
    ]
    third = [
        (f"aggregation-{a}", f"intermediate-{i}")
        for a, i in product(range(aggregations), range(intermediates))
    ]
    capacity = np.r_[np.full(len(first), host_mbps), np.full(len(second) + len(third), switch_mbps)]
    positions, width = _place_racks_of_vl2(tors, aggregations, hosts_per_tor)
    positions |= _place_row([f"intermediate-{i}" for i in range(intermediates)], width, "intermediate")
    return _duplex_topology([host for host, _ in first], [*first, *second, *third], capacity, positions)


def _place_racks_of_vl2(tors: int, aggregations: int, hosts_per_tor: int) -> tuple[Places, float]:
    """Place racks by pods, with the aggregation switches above them; return the width of the drawing, too."""
    pods = aggregations // 2  # those with the same two aggregation switches, where these come in pairs
    is_paired = aggregations % 2 == 0
    by_pod = sorted(range(tors), key=lambda t: (t % pods, t)) if is_paired else list(range(tors))
    pod_of = [f"pod {t % pods}" if is_paired else "racks" for t in range(tors)]
    gaps = np.cumsum([0.0, *(POD_GAP * (pod_of[a] != pod_of[b]) for a, b in itertools.pairwise(by_pod))])
    width = tors + float(gaps[-1])
    positions: Places = {}
    for index, t in enumerate(by_pod):
        members = [f"host-{t}-{h}" for h in range(hosts_per_tor)]
        positions |= _place_rack(f"tor-{t}", members, index + gaps[index] + 0.5, width, pod_of[t])
    for a in range(aggregations):
        across, group = (a + 0.5) * width / aggregations, "aggregation"
        if is_paired:
            group, side = f"pod {a // 2}", 0.25 if a % 2 else -0.25
            below = _racks_below(a, tors, aggregations)
            across = float(np.mean([positions[f"tor-{t}"][0] for t in below])) + side if below else across
        positions[f"aggregation-{a}"] = (across, AGGREGATION_TIER * width, group)
    return positions, width


def _racks_below(aggregation: int, tors: int, aggregations: int) -> list[int]:
    """Return the racks that are connected to an aggregation switch."""
    return [t for t in range(tors) if aggregation in ((2 * t) % aggregations, (2 * t + 1) % aggregations)]


def _place_rack(switch: str, hosts: Sequence[str], across: float, width: float, group: str) -> Places:
    """Place a switch, and its hosts below it in rows that fill a square."""
    columns = len(hosts) if len(hosts) <= 4 else math.ceil(math.sqrt(len(hosts)))
    step = 0.8 / max(columns, 1)
    positions: Places = {switch: (across, RACK_TIER * width, group)}
    for number, host in enumerate(hosts):
        row, column = divmod(number, columns)
        positions[host] = (across - 0.4 + (column + 0.5) * step, -row * step, group)
    return positions


def _place_row(switches: Sequence[str], width: float, group: str) -> Places:
    """Place the switches of the top tier, one beside the other."""
    step = width / len(switches)
    return {switch: ((i + 0.5) * step, TOP_TIER * width, group) for i, switch in enumerate(switches)}


def _duplex_topology(
    hosts: list[str], up: Sequence[tuple[str, str]], capacity: np.ndarray, positions: Places
) -> Topology:
    """Return the topology of links that lead up, and of their opposites."""
    ends = pd.DataFrame([*up, *((head, tail) for tail, head in up)], columns=["tail", "head"])
    nodes = list(dict.fromkeys([*hosts, *(end for pair in up for end in pair)]))
    across, upwards, group = zip(*(positions[node] for node in nodes), strict=True)
    return Topology(
        hosts=tuple(hosts),
        nodes=pd.DataFrame({"node": nodes, "x": across, "y": upwards, "group": group}),
        links=ends.assign(capacity_mbps=np.r_[capacity, capacity], weight=1.0),
    )
