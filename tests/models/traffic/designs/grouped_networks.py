"""Networks whose nodes have groups, and the traffic that routers make hop by hop: a test's own simulation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise

import networkx as nx
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from planner_models.traffic import Traffic

NextHops = Callable[[str, str], Mapping[str, float]]
"""(router, target) -> share of each next hop; empty where it drops traffic."""


def grouped(
    groups: Mapping[str, str], links: Sequence[tuple[str, str, float]], demands: Sequence[tuple[str, str]]
) -> Traffic:
    """Return a network of links in both directions, of 10 Mbit/s, and demands of 1 Mbit/s each."""
    ends = [*links, *((head, tail, weight) for tail, head, weight in links)]
    return Traffic.from_tables(
        {
            "nodes": pd.DataFrame({"node": list(groups), "group": list(groups.values())}),
            "links": pd.DataFrame(ends, columns=["tail", "head", "weight"]).assign(capacity_mbps=10.0),
            "demands": pd.DataFrame(demands, columns=["source", "target"]).assign(rate_mbps=1.0),
        }
    )


def draw(seed: int, names: Sequence[str], *, between: Sequence[tuple[str, str]]) -> Traffic:
    """Return a network of groups of three nodes in a row with a chord, and drawn links between groups."""
    random = np.random.default_rng(seed)
    groups = {f"{name}{i}": name for name in names for i in range(3)}
    links: list[tuple[str, str, float]] = []
    for name in names:
        links += [(f"{name}{i}", f"{name}{j}", float(random.integers(1, 5))) for i, j in pairwise(range(3))]
        if random.random() < 0.5:
            links.append((f"{name}0", f"{name}2", float(random.integers(1, 5))))
    for first, second in between:
        pairs = {(int(random.integers(3)), int(random.integers(3))) for _ in range(2)}
        links += [(f"{first}{i}", f"{second}{j}", float(random.integers(1, 5))) for i, j in sorted(pairs)]
    nodes = list(groups)
    return grouped(groups, links, [(a, b) for a in nodes for b in nodes if a != b])


def graph_of(problem: Traffic, keep: Callable[[str, str], bool]) -> nx.DiGraph:
    """Return the graph of all nodes and of those links that `keep` says to keep."""
    graph = nx.DiGraph()
    graph.add_nodes_from(problem.nodes["node"])
    for tail, head, weight in problem.links[["tail", "head", "weight"]].itertuples(index=False):
        if keep(tail, head):
            graph.add_edge(tail, head, weight=weight)
    return graph


def distance(graph: nx.DiGraph, source: str, target: str) -> float:
    """Return the weight of the shortest path, inf without one."""
    try:
        return float(nx.dijkstra_path_length(graph, source, target))
    except nx.NetworkXNoPath:
        return np.inf


def first_hops(graph: nx.DiGraph, source: str, target: str) -> set[str]:
    """Return the next hops on all shortest paths."""
    if source == target or not nx.has_path(graph, source, target):
        return set()
    return {path[1] for path in nx.all_shortest_paths(graph, source, target, weight="weight")}


def evenly(hops: set[str]) -> dict[str, float]:
    """Return equal shares."""
    return {hop: 1 / len(hops) for hop in sorted(hops)}


def simulate(problem: Traffic, next_hops: NextHops) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the share of each demand that arrives, (K,), and the load of arriving traffic, (E,)."""
    link_of = {
        (tail, head): row for row, (tail, head) in enumerate(problem.links[["tail", "head"]].to_numpy())
    }
    load, arrived = np.zeros(len(problem.links)), np.zeros(len(problem.demands))
    for demand, (source, target) in enumerate(problem.demands[["source", "target"]].to_numpy()):
        stack: list[tuple[tuple[str, ...], float]] = [((source,), 1.0)]
        while stack:
            path, share = stack.pop()
            if path[-1] == target:
                arrived[demand] += share
                for hop in pairwise(path):
                    load[link_of[hop]] += share
                continue
            assert len(set(path)) == len(path), f"traffic circles: {path}"
            stack += [((*path, hop), share * part) for hop, part in next_hops(path[-1], target).items()]
    return arrived, load
