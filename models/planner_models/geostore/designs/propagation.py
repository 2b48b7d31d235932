"""Ways of copies: the cheapest arborescence over the replicas, within a limit of time."""

from __future__ import annotations

from itertools import product
from typing import Final

import numpy as np

from planner.arrays import Floats, Ints

MOST_ENUMERATED: Final = 5
"""Replicas beside the origin up to which all ways are tried; local search for more."""


def cheapest_ways(
    origin: int, targets: Ints, price: Floats, time_ms: Floats, limit_ms: float
) -> list[tuple[int, int, int]]:
    """Return origin, source and target of each copy: each replica gets it from one that has it.

    Every replica has the copy within the limit, or as soon as the origin sends it straight.

    price, time_ms  (N, N) of a copy from one region to another
    """
    nodes = [origin, *targets.tolist()]
    limits = [max(limit_ms, float(time_ms[origin, node])) for node in nodes]
    parents = [0] * len(nodes)
    if len(targets) <= MOST_ENUMERATED:
        best = _cost(nodes, parents, price)
        for tail in product(range(len(nodes)), repeat=len(targets)):
            trial = [0, *tail]
            cost = _cost(nodes, trial, price)
            if cost < best and _is_tree(nodes, trial, time_ms, limits):
                best, parents = cost, trial
    else:
        parents = _search(nodes, parents, price, time_ms, limits)
    return [(origin, nodes[parents[row]], nodes[row]) for row in range(1, len(nodes))]


def _cost(nodes: list[int], parents: list[int], price: Floats) -> float:
    return float(sum(price[nodes[parents[row]], nodes[row]] for row in range(1, len(nodes))))


def _is_tree(nodes: list[int], parents: list[int], time_ms: Floats, limits: list[float]) -> bool:
    """Return whether each replica gets the copy from the origin, over others, within its limit."""
    for row in range(1, len(nodes)):
        time, node, steps = 0.0, row, 0
        while node:
            time += float(time_ms[nodes[parents[node]], nodes[node]])
            node, steps = parents[node], steps + 1
            if steps > len(nodes):
                return False
        if time > limits[row]:
            return False
    return True


def _search(
    nodes: list[int], parents: list[int], price: Floats, time_ms: Floats, limits: list[float]
) -> list[int]:
    """Return sources after local search: one replica at a time gets the copy from a cheaper one."""
    is_better = True
    while is_better:
        is_better = False
        for row in range(1, len(nodes)):
            for source in np.argsort(price[nodes, nodes[row]], kind="stable").tolist():
                if price[nodes[source], nodes[row]] >= price[nodes[parents[row]], nodes[row]]:
                    break
                trial = [*parents[:row], source, *parents[row + 1 :]]
                if source != row and _is_tree(nodes, trial, time_ms, limits):
                    parents, is_better = trial, True
                    break
    return parents
