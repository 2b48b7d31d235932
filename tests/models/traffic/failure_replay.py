"""Failures of lines replayed on the tables of a plan, step by step in plain Python: an oracle for tests."""

from __future__ import annotations

import itertools
import json
from collections import defaultdict
from collections.abc import Iterator

import networkx as nx
import pandas as pd

from planner_models.traffic import Routing, Traffic

Pair = tuple[str, str]
Line = frozenset[str]


def list_lines(problem: Traffic) -> list[Line]:
    """Return the lines of a network without parallel links: both directions together."""
    ends = zip(problem.links["tail"], problem.links["head"], strict=True)
    return sorted({frozenset(pair) for pair in ends}, key=sorted)


def list_failures(problem: Traffic, at_once: int) -> Iterator[set[Line]]:
    """Yield all sets of up to `at_once` lines."""
    lines = list_lines(problem)
    for size in range(at_once + 1):
        yield from (set(selected) for selected in itertools.combinations(lines, size))


def has_path(problem: Traffic, down: set[Line], pair: Pair) -> bool:
    """Return whether a path is left from source to target."""
    graph = nx.DiGraph()
    graph.add_nodes_from(problem.nodes["node"])
    ends = zip(problem.links["tail"], problem.links["head"], strict=True)
    graph.add_edges_from(link for link in ends if frozenset(link) not in down)
    return bool(nx.has_path(graph, *pair))


def replay_split(problem: Traffic, plan: Routing, down: set[Line]) -> tuple[dict[Pair, float], float]:
    """Return what each demand sends over its routes that are left, and the largest utilization of a link.

    A source sends its normal rate, or what is reserved where that is less, in proportion to reservations.
    """
    assert plan.routes is not None
    routes: dict[Pair, list[tuple[list[Pair], float]]] = defaultdict(list)
    normal: dict[Pair, float] = defaultdict(float)
    for row in plan.routes.itertuples():
        pair = (row.source, row.target)
        nodes = json.loads(row.path)
        normal[pair] += row.rate_mbps
        routes[pair].append((list(itertools.pairwise(nodes)), row.reserved_mbps))
    load: dict[Pair, float] = defaultdict(float)
    arrives: dict[Pair, float] = {}
    for pair, several in routes.items():
        remaining = [
            (hops, upper) for hops, upper in several if not any(frozenset(hop) in down for hop in hops)
        ]
        total = sum(upper for _, upper in remaining)
        arrives[pair] = min(normal[pair], total)
        for hops, upper in remaining:
            for hop in hops:
                load[hop] += arrives[pair] * upper / total
    capacity = {(row.tail, row.head): row.capacity_mbps for row in pd.DataFrame(problem.links).itertuples()}
    return arrives, max((amount / capacity[hop] for hop, amount in load.items()), default=0.0)
