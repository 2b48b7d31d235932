"""Data center topologies: fat trees, also oversubscribed, and VL2.

Links come in pairs, one each way: first all that lead up from the hosts, then their opposites.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from planner.errors import InputError


@dataclass(frozen=True, kw_only=True, eq=False)
class Topology:
    """Nodes and links of a network, and its hosts.

    hosts  names, in the order in which workloads number them: neighbours under one switch first
    nodes  the table `nodes`; links  the table `links`
    """

    hosts: tuple[str, ...]
    nodes: pd.DataFrame
    links: pd.DataFrame


def fat_tree(*, k: int, hosts_per_edge: int | None = None, capacity_mbps: float) -> Topology:
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
        (f"host-{p}-{e}-{h}", f"edge-{p}-{e}") for p in pods for e in halves for h in range(hosts_per_edge)
    ]
    second = [(f"edge-{p}-{e}", f"aggregation-{p}-{a}") for p in pods for e in halves for a in halves]
    third = [(f"aggregation-{p}-{a}", f"core-{a}-{c}") for p in pods for a in halves for c in halves]
    return _duplex_topology(
        [host for host, _ in first],
        [*first, *second, *third],
        np.full(len(first + second + third), capacity_mbps),
    )


def vl2(
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
    first = [(f"host-{t}-{h}", f"tor-{t}") for t in range(tors) for h in range(hosts_per_tor)]
    second = [
        (f"tor-{t}", f"aggregation-{(2 * t + side) % aggregations}") for t in range(tors) for side in range(2)
    ]
    third = [
        (f"aggregation-{a}", f"intermediate-{i}") for a in range(aggregations) for i in range(intermediates)
    ]
    capacity = np.r_[np.full(len(first), host_mbps), np.full(len(second) + len(third), switch_mbps)]
    return _duplex_topology([host for host, _ in first], [*first, *second, *third], capacity)


def _duplex_topology(hosts: list[str], up: Sequence[tuple[str, str]], capacity: np.ndarray) -> Topology:
    ends = pd.DataFrame([*up, *((head, tail) for tail, head in up)], columns=["tail", "head"])
    nodes = dict.fromkeys([*hosts, *(end for pair in up for end in pair)])
    return Topology(
        hosts=tuple(hosts),
        nodes=pd.DataFrame({"node": list(nodes)}),
        links=ends.assign(capacity_mbps=np.r_[capacity, capacity], weight=1.0),
    )
