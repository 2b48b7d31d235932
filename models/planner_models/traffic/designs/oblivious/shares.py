"""Shares of demands on links, and shortest paths under lengths of each demand's own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import scipy.sparse as sp

from planner.arrays import Floats
from planner.compiled import njit, run_small_in_python
from planner.search.tolerances import FEASIBILITY
from planner_models.graphs.shortest_path_trees import allocate, dijkstra

FULL_TOLERANCE: Final = FEASIBILITY  # relative; links within it of the busiest one show their worst matrix


@dataclass(frozen=True, kw_only=True, eq=False)
class Shares:
    """Shares (K, E) of each demand on each link, and their proof.

    utilization  of the busiest link under the worst matrix; bound: no shares have a smaller one
    matrices     (R, K) matrices that load links the most, with their names
    """

    share: sp.csr_array
    utilization: float
    bound: float
    matrices: Floats
    names: list[str]


def better_shares(
    best: Shares | None, share: sp.csr_array, utilization: Floats, matrices: Floats, names: list[str]
) -> Shares:
    """Return the better one of the best shares so far and others with their worst matrices of each link."""
    worst = float(utilization.max(initial=0.0))
    if best is not None and worst >= best.utilization:
        return best
    is_full = utilization >= worst * (1 - FULL_TOLERANCE)
    return Shares(
        share=share,
        utilization=worst,
        bound=0.0,
        matrices=matrices[is_full],
        names=[name for name, full in zip(names, is_full.tolist(), strict=True) if full],
    )


@run_small_in_python(max_elements=1_000)
@njit(cache=True)
def shortest_paths(graph, length, requested, source, target):  # type: ignore[no-untyped-def]
    """Return the shortest path of each demand under lengths of its own: length, start, links."""
    work, parent = allocate(graph.nodes), np.empty(graph.nodes, np.int32)
    value, start = np.empty(len(requested)), np.zeros(len(requested) + 1, np.int64)
    link = np.empty(len(requested) * graph.nodes, np.int64)
    for i in range(len(requested)):
        k = requested[i]
        dijkstra(graph, length[k], target[k], work, parent)
        value[i] = work.distance[source[k]]
        position, v = start[i], source[k]
        while v != target[k]:
            link[position] = parent[v]
            v = graph.head[parent[v]]
            position += 1
        start[i + 1] = position
    return value, start, link[: start[len(requested)]]
