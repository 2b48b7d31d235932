"""Maximum flow in a sparse network by Dinic's algorithm, with whole capacities.

Source: Dinic 1970. Networks of tenants, partitions and nodes have short paths, so that few phases are needed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from planner.arrays import Bools, Ints, Ints32
from planner.compiled import inner, njit, run_small_in_python


class _Residual(NamedTuple):
    """Residual arcs, those that leave a vertex side by side: starts[v] to starts[v + 1] are those of v.

    to        (2 A,) vertex that each leads to
    opposite  (2 A,) the arc back
    free      (2 A,) residual capacity
    forward   (A,) residual arc of each arc
    """

    starts: Ints32
    to: Ints32
    opposite: Ints32
    free: Ints
    forward: Ints32


@run_small_in_python(max_elements=500)
@njit(cache=True, nogil=True)
def find_flow(count: int, tail: Ints, head: Ints, capacity: Ints, enough: int) -> tuple[int, Ints, Bools]:
    """Return the largest flow from vertex 0 to vertex 1, that of each arc, and the smallest source side.

    count                 number of vertices
    tail, head, capacity  (A,) of the arcs, fewer than 2**30
    enough                flow at which the search may end; the source side is then vertex 0 alone
    """
    residual = _build_residual(count, tail, head, capacity)
    next_arc = np.empty(count, dtype=np.int32)
    distance = np.empty(count, dtype=np.int32)
    queue = np.empty(count, dtype=np.int32)
    path = np.empty(count + 1, dtype=np.int32)
    total = 0
    while total < enough:
        _measure_distances(residual, distance, queue)
        if distance[0] < 0:
            break
        next_arc[:] = residual.starts[:count]
        total += _find_blocking_flow(residual, distance, next_arc, path)
    flow = np.empty(len(tail), dtype=np.int64)
    for a in range(len(tail)):
        flow[a] = capacity[a] - residual.free[residual.forward[a]]
    inside = np.zeros(count, dtype=np.bool_)
    inside[0] = True
    if total < enough:
        _mark_reachable(residual, inside, queue)
    return total, flow, inside


@inner
def _build_residual(count: int, tail: Ints, head: Ints, capacity: Ints) -> _Residual:
    """Return the residual arcs of a network without flow."""
    arcs = len(tail)
    starts = np.zeros(count + 2, dtype=np.int32)
    for a in range(arcs):
        starts[tail[a] + 2] += 1
        starts[head[a] + 2] += 1
    for v in range(count):
        starts[v + 2] += starts[v + 1]
    to = np.empty(2 * arcs, dtype=np.int32)
    opposite = np.empty(2 * arcs, dtype=np.int32)
    free = np.zeros(2 * arcs, dtype=np.int64)
    forward_of = np.empty(arcs, dtype=np.int32)
    for a in range(arcs):
        forward, backward = starts[tail[a] + 1], starts[head[a] + 1]
        starts[tail[a] + 1] += 1
        starts[head[a] + 1] += 1
        to[forward], to[backward] = head[a], tail[a]
        opposite[forward], opposite[backward] = backward, forward
        free[forward] = capacity[a]
        forward_of[a] = forward
    return _Residual(starts, to, opposite, free, forward_of)


@inner
def _measure_distances(residual: _Residual, distance: Ints32, queue: Ints32) -> None:
    """Write the distance of each vertex to the sink until the source is reached, in arcs; -1 for others."""
    starts, to, opposite, free = residual.starts, residual.to, residual.opposite, residual.free
    distance[:] = -1
    distance[1] = 0
    queue[0] = 1
    first, last = 0, 1
    while first < last and distance[0] < 0:
        v = queue[first]
        first += 1
        for r in range(starts[v], starts[v + 1]):
            u = to[r]
            if distance[u] < 0 and free[opposite[r]] > 0:
                distance[u] = distance[v] + 1
                queue[last] = u
                last += 1


@inner
def _find_blocking_flow(residual: _Residual, distance: Ints32, next_arc: Ints32, path: Ints32) -> int:
    """Send flow over shortest paths until none is left; return its amount."""
    starts, to, opposite, free = residual.starts, residual.to, residual.opposite, residual.free
    total, v, depth = 0, 0, 0
    while True:
        if v == 1:
            amount, cut = _push(residual, path, depth)
            total += amount
            v, depth = to[opposite[path[cut]]], cut
        while next_arc[v] < starts[v + 1]:
            r = next_arc[v]
            if distance[to[r]] == distance[v] - 1 and free[r] > 0:
                break
            next_arc[v] += 1
        if next_arc[v] < starts[v + 1]:
            path[depth] = next_arc[v]
            v = to[path[depth]]
            depth += 1
        elif v == 0:
            return total
        else:
            distance[v] = -1
            depth -= 1
            v = to[opposite[path[depth]]]


@inner
def _push(residual: _Residual, path: Ints32, depth: int) -> tuple[int, int]:
    """Send the residual capacity of a path; return it, and the position of the first arc that is full."""
    free, opposite = residual.free, residual.opposite
    smallest = free[path[0]]
    for i in range(1, depth):
        smallest = min(smallest, free[path[i]])
    cut = 0
    for i in range(depth - 1, -1, -1):
        free[path[i]] -= smallest
        free[opposite[path[i]]] += smallest
        if free[path[i]] == 0:
            cut = i
    return smallest, cut


@inner
def _mark_reachable(residual: _Residual, inside: Bools, queue: Ints32) -> None:
    """Mark the vertices that residual arcs reach from vertex 0."""
    starts, to, free = residual.starts, residual.to, residual.free
    queue[0] = 0
    first, last = 0, 1
    while first < last:
        v = queue[first]
        first += 1
        for r in range(starts[v], starts[v + 1]):
            u = to[r]
            if not inside[u] and free[r] > 0:
                inside[u] = True
                queue[last] = u
                last += 1
