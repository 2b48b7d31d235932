"""Data center topologies: fat trees, also oversubscribed, and VL2.

Links come in pairs, one each way: first all that lead up from the hosts, then their opposites.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pandas as pd

from planner.errors import InputError

Places = dict[str, tuple[float, float, str]]
"""Place of each node in a drawing, x and y, and its group."""
POD_GAP: Final = 0.4  # between pods, in widths of a rack
RACK_TIER: Final = 0.08  # heights of tiers, in widths of the drawing
AGGREGATION_TIER: Final = 0.22
TOP_TIER: Final = 0.4


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
    width = k * half + (k - 1) * POD_GAP  # of the drawing; an edge switch has 1
    positions: Places = {}
    for p in pods:
        start, pod = p * (half + POD_GAP), f"pod {p}"
        for e in halves:
            hosts = [f"host-{p}-{e}-{h}" for h in range(hosts_per_edge)]
            positions |= _place_rack(f"edge-{p}-{e}", hosts, start + e + 0.5, width, pod)
            positions[f"aggregation-{p}-{e}"] = (start + e + 0.5, AGGREGATION_TIER * width, pod)
    cores = [f"core-{a}-{c}" for a in halves for c in halves]
    positions |= _place_row(cores, width, "core")
    return _duplex_topology(
        [host for host, _ in first],
        [*first, *second, *third],
        np.full(len(first + second + third), capacity_mbps),
        positions,
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
        near = [
            positions[f"tor-{t}"][0]
            for t in range(tors)
            if a in ((2 * t) % aggregations, (2 * t + 1) % aggregations)
        ]
        side = 0.25 if a % 2 else -0.25
        across = float(np.mean(near)) + side if near and is_paired else (a + 0.5) * width / aggregations
        group = f"pod {a // 2}" if is_paired else "aggregation"
        positions[f"aggregation-{a}"] = (across, AGGREGATION_TIER * width, group)
    positions |= _place_row([f"intermediate-{i}" for i in range(intermediates)], width, "intermediate")
    return _duplex_topology([host for host, _ in first], [*first, *second, *third], capacity, positions)


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
