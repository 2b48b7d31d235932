"""Distances to many targets by weights of shortest paths, and nodes that traffic reaches along its flows."""

from __future__ import annotations

from typing import Final

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import dijkstra

from planner.arrays import Bools, Floats, Ints
from planner.compiled import njit

COMPILED_ENTRIES: Final = 1_000_000
"""Targets times links from which a compiled search is used; below, Dijkstra's algorithm takes 0.1 s."""
COMPILED_LINKS: Final = 500_000  # of flows, from which the search is compiled; NumPy takes 0.1 s below


def find_distances(weights: sp.csr_array, targets: Ints) -> Floats:
    """Return the weight of the shortest path from each node to each target, (D, N); inf without one.

    Where all links weigh the same, large networks are searched breadth first, in a tenth of the time.

    weights  (N, N) weight from tail to head
    """
    into = sp.csr_array(weights.T)
    if len(targets) * into.nnz < COMPILED_ENTRIES or (into.data != into.data[0]).any():
        distance: Floats = dijkstra(into, indices=targets)
        return distance
    distance = np.full((len(targets), into.shape[0]), np.inf)
    start, tail = into.indptr.astype(np.int64), into.indices.astype(np.int64)
    _search_breadth_first(start, tail, targets.astype(np.int64), float(into.data[0]), distance)
    return distance


@njit(cache=True)
def _search_breadth_first(start, tail, targets, weight, distance):  # type: ignore[no-untyped-def]
    """Write the distances; the links into node v are from tail[start[v] : start[v + 1]]."""
    queue = np.empty(distance.shape[1], dtype=np.int64)
    for row in range(len(targets)):
        to_target = distance[row]
        queue[0], size, index = targets[row], 1, 0
        to_target[targets[row]] = 0.0
        while index < size:
            v = queue[index]
            index += 1
            farther = to_target[v] + weight
            for i in range(start[v], start[v + 1]):
                if to_target[tail[i]] == np.inf:
                    to_target[tail[i]] = farther
                    queue[size] = tail[i]
                    size += 1


def extend_reached(flow_mbps: sp.csr_array, tail: Ints, head: Ints, reached: Bools) -> None:
    """Mark the nodes that flows (C, E) above 0 lead to from those marked in `reached`, (C, N), in place."""
    if flow_mbps.nnz >= COMPILED_LINKS:
        _extend(flow_mbps.indptr, flow_mbps.indices, flow_mbps.data, tail, head, reached)
        return
    flow = flow_mbps.tocoo()
    used = np.flatnonzero(flow.data > 0)
    row, tail, head = flow.row[used], tail[flow.col[used]], head[flow.col[used]]
    while (goes_on := reached[row, tail]).any():
        reached[row[goes_on], head[goes_on]] = True
        row, tail, head = row[~goes_on], tail[~goes_on], head[~goes_on]


@njit(cache=True)
def _extend(start, link, amount, tail, head, reached):  # type: ignore[no-untyped-def]
    longest = 0
    for c in range(len(reached)):
        longest = max(longest, start[c + 1] - start[c])
    ahead = np.empty(longest, dtype=np.int64)  # links that no node in reach sends on yet
    for c in range(len(reached)):
        size = 0
        for i in range(start[c], start[c + 1]):
            if amount[i] > 0.0:
                ahead[size] = link[i]
                size += 1
        before = size + 1
        while size < before:
            before, size = size, 0
            for i in range(before):
                if reached[c, tail[ahead[i]]]:
                    reached[c, head[ahead[i]]] = True
                else:
                    ahead[size] = ahead[i]
                    size += 1
