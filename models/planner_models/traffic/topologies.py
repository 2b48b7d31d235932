"""Data center networks by their rules: fat trees, oversubscribed ones, and VL2.

Links come in pairs, one each way; first all those that lead up from the hosts, then their ways back.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from planner.errors import InputError


@dataclass(frozen=True, kw_only=True, eq=False)
class Topology:
    """Nodes and links of a network, and which nodes are hosts.

    hosts  names, in the order in which workloads number them: neighbours under one switch first
    nodes  the table `nodes`; links  the table `links`
    """

    hosts: tuple[str, ...]
    nodes: pd.DataFrame
    links: pd.DataFrame


def fat_tree(*, k: int, hosts_per_edge: int | None = None, capacity_mbps: float) -> Topology:
    """Three levels of k-port switches: k pods of k/2 edge and k/2 aggregation switches, (k/2)^2 cores.

    Nodes are host-P-E-H, edge-P-E, aggregation-P-A and core-G-C, for pod P and the group G of core
    switches that aggregation switch G of each pod reaches. With more than k/2 hosts under an edge
    switch the tree is oversubscribed.

    source  Sen et al. 2013, section 3.3
    """
    if k % 2:
        raise InputError(f"problem.k is {k}, must be even")
    half = k // 2
    hosts_per_edge = half if hosts_per_edge is None else hosts_per_edge
    hosts = [f"host-{p}-{e}-{h}" for p in range(k) for e in range(half) for h in range(hosts_per_edge)]
    first = [
        (f"host-{p}-{e}-{h}", f"edge-{p}-{e}")
        for p in range(k)
        for e in range(half)
        for h in range(hosts_per_edge)
    ]
    second = [
        (f"edge-{p}-{e}", f"aggregation-{p}-{a}") for p in range(k) for e in range(half) for a in range(half)
    ]
    third = [
        (f"aggregation-{p}-{a}", f"core-{a}-{c}") for p in range(k) for a in range(half) for c in range(half)
    ]
    return _both_ways(hosts, [*first, *second, *third], np.full(len(first + second + third), capacity_mbps))


def vl2(
    *,
    tors: int,
    aggregations: int,
    intermediates: int,
    hosts_per_tor: int,
    host_mbps: float,
    switch_mbps: float,
) -> Topology:
    """VL2: each top-of-rack switch on two aggregation switches, each of these on every intermediate one.

    Nodes are host-T-H, tor-T, aggregation-A and intermediate-I. ToR switches take their two
    aggregation switches in turn, so that each of these has about as many.

    source  Sen et al. 2013, sections 3.3 and 7.1; Greenberg et al. 2009 (VL2)
    """
    if aggregations < 2:
        raise InputError(f"problem.aggregations is {aggregations}, must be at least 2")
    hosts = [f"host-{t}-{h}" for t in range(tors) for h in range(hosts_per_tor)]
    first = [(f"host-{t}-{h}", f"tor-{t}") for t in range(tors) for h in range(hosts_per_tor)]
    second = [
        (f"tor-{t}", f"aggregation-{(2 * t + side) % aggregations}") for t in range(tors) for side in range(2)
    ]
    third = [
        (f"aggregation-{a}", f"intermediate-{i}") for a in range(aggregations) for i in range(intermediates)
    ]
    capacity = np.r_[np.full(len(first), host_mbps), np.full(len(second) + len(third), switch_mbps)]
    return _both_ways(hosts, [*first, *second, *third], capacity)


def _both_ways(hosts: list[str], up: Sequence[tuple[str, str]], capacity: np.ndarray) -> Topology:
    ends = pd.DataFrame([*up, *((head, tail) for tail, head in up)], columns=["tail", "head"])
    nodes = [*hosts, *dict.fromkeys(end for pair in up for end in pair if end not in set(hosts))]
    return Topology(
        hosts=tuple(hosts),
        nodes=pd.DataFrame({"node": list(dict.fromkeys(nodes))}),
        links=ends.assign(capacity_mbps=np.r_[capacity, capacity], weight=1.0),
    )
