"""Maximum flow in a sparse network by Dinic's algorithm, with whole capacities.

Source: Dinic 1970. Networks of tenants, partitions and nodes have short paths, so that few phases are needed.
"""

from __future__ import annotations

import numpy as np

from planner.arrays import Bools, Ints
from planner.compiled import njit, run_small_in_python


@run_small_in_python(max_elements=500)
@njit(cache=True, nogil=True)
def find_flow(count: int, tail: Ints, head: Ints, capacity: Ints, enough: int) -> tuple[int, Ints, Bools]:  # noqa: C901 - compiled
    """Return the largest flow from vertex 0 to vertex 1, that of each arc, and the smallest source side.

    count                 number of vertices
    tail, head, capacity  (A,) of the arcs, fewer than 2**30
    enough                flow at which the search may end; the source side is then vertex 0 alone
    """
    arcs = len(tail)
    starts = np.zeros(count + 2, dtype=np.int32)
    for a in range(arcs):
        starts[tail[a] + 2] += 1
        starts[head[a] + 2] += 1
    for v in range(count):
        starts[v + 2] += starts[v + 1]
    to = np.empty(2 * arcs, dtype=np.int32)  # residual arcs, those that leave a vertex side by side
    opposite = np.empty(2 * arcs, dtype=np.int32)
    free = np.zeros(2 * arcs, dtype=np.int64)
    place_of = np.empty(arcs, dtype=np.int32)
    for a in range(arcs):
        forward, backward = starts[tail[a] + 1], starts[head[a] + 1]
        starts[tail[a] + 1] += 1
        starts[head[a] + 1] += 1
        to[forward], to[backward] = head[a], tail[a]
        opposite[forward], opposite[backward] = backward, forward
        free[forward] = capacity[a]
        place_of[a] = forward
    next_arc = np.empty(count, dtype=np.int32)
    distance = np.empty(count, dtype=np.int32)
    queue = np.empty(count, dtype=np.int32)
    path = np.empty(count + 1, dtype=np.int32)
    total = 0
    while total < enough:
        distance[:] = -1  # to the sink
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
        if distance[0] < 0:
            break
        next_arc[:] = starts[:count]
        v, depth = 0, 0
        while True:
            if v == 1:
                smallest = free[path[0]]
                for i in range(1, depth):
                    smallest = min(smallest, free[path[i]])
                total += smallest
                cut = 0
                for i in range(depth - 1, -1, -1):
                    free[path[i]] -= smallest
                    free[opposite[path[i]]] += smallest
                    if free[path[i]] == 0:
                        cut = i
                v, depth = to[opposite[path[cut]]], cut
            is_found = False
            while next_arc[v] < starts[v + 1]:
                r = next_arc[v]
                u = to[r]
                if distance[u] == distance[v] - 1 and free[r] > 0:
                    path[depth] = r
                    depth += 1
                    v = u
                    is_found = True
                    break
                next_arc[v] += 1
            if is_found:
                continue
            if v == 0:
                break
            distance[v] = -1
            depth -= 1
            v = to[opposite[path[depth]]]
    flow = np.empty(arcs, dtype=np.int64)
    for a in range(arcs):
        flow[a] = capacity[a] - free[place_of[a]]
    inside = np.zeros(count, dtype=np.bool_)
    inside[0] = True
    if total >= enough:
        return total, flow, inside
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
    return total, flow, inside
