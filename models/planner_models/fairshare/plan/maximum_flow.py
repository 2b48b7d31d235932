"""Maximum flow in a sparse network by Dinic's algorithm, with whole capacities.

Source: Dinic 1970. Networks of tenants, partitions and nodes have short paths, so that few phases are needed.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from planner.arrays import Bools, Ints


@njit(cache=True, nogil=True)
def find_flow(count: int, tail: Ints, head: Ints, capacity: Ints, enough: int) -> tuple[int, Ints, Bools]:  # noqa: C901 - compiled
    """Return the largest flow from vertex 0 to vertex 1, that of each arc, and the smallest source side.

    count                 number of vertices
    tail, head, capacity  (A,) of the arcs
    enough                flow at which the search may end; the source side is then vertex 0 alone
    """
    arcs = len(tail)
    starts = np.zeros(count + 1, dtype=np.int64)
    for a in range(arcs):
        starts[tail[a] + 1] += 1
        starts[head[a] + 1] += 1
    for v in range(count):
        starts[v + 1] += starts[v]
    place = starts[:-1].copy()
    of = np.empty(2 * arcs, dtype=np.int64)  # residual arcs of each vertex: 2a forward, 2a + 1 backward
    for a in range(arcs):
        of[place[tail[a]]] = 2 * a
        place[tail[a]] += 1
        of[place[head[a]]] = 2 * a + 1
        place[head[a]] += 1
    free = np.zeros(2 * arcs, dtype=np.int64)
    free[::2] = capacity
    distance = np.empty(count, dtype=np.int64)
    queue = np.empty(count, dtype=np.int64)
    path = np.empty(count + 1, dtype=np.int64)
    total = 0
    while total < enough:
        distance[:] = -1  # to the sink
        distance[1] = 0
        queue[0] = 1
        first, last = 0, 1
        while first < last and distance[0] < 0:
            v = queue[first]
            first += 1
            for i in range(starts[v], starts[v + 1]):
                r = of[i]
                u = head[r >> 1] if r & 1 == 0 else tail[r >> 1]
                if distance[u] < 0 and free[r ^ 1] > 0:
                    distance[u] = distance[v] + 1
                    queue[last] = u
                    last += 1
        if distance[0] < 0:
            break
        place[:] = starts[:-1]
        v, depth = 0, 0
        while True:
            if v == 1:
                least = free[path[0]]
                for i in range(1, depth):
                    least = min(least, free[path[i]])
                total += least
                cut = 0
                for i in range(depth - 1, -1, -1):
                    free[path[i]] -= least
                    free[path[i] ^ 1] += least
                    if free[path[i]] == 0:
                        cut = i
                r = path[cut]
                v, depth = (tail[r >> 1] if r & 1 == 0 else head[r >> 1]), cut
            found = False
            while place[v] < starts[v + 1]:
                r = of[place[v]]
                u = head[r >> 1] if r & 1 == 0 else tail[r >> 1]
                if free[r] > 0 and distance[u] == distance[v] - 1:
                    path[depth] = r
                    depth += 1
                    v = u
                    found = True
                    break
                place[v] += 1
            if found:
                continue
            if v == 0:
                break
            distance[v] = -1
            depth -= 1
            r = path[depth]
            v = tail[r >> 1] if r & 1 == 0 else head[r >> 1]
    inside = np.zeros(count, dtype=np.bool_)
    inside[0] = True
    if total >= enough:
        return total, free[1::2].copy(), inside
    queue[0] = 0
    first, last = 0, 1
    while first < last:
        v = queue[first]
        first += 1
        for i in range(starts[v], starts[v + 1]):
            r = of[i]
            u = head[r >> 1] if r & 1 == 0 else tail[r >> 1]
            if not inside[u] and free[r] > 0:
                inside[u] = True
                queue[last] = u
                last += 1
    return total, free[1::2].copy(), inside
