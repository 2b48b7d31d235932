"""Dynamic programming over sets of requests: the best tree of one object with few requests.

source  Dreyfus and Wagner, "The Steiner problem in graphs" (Networks 1971), on a layered graph
"""

from __future__ import annotations

import numba as nb
import numpy as np
from numpy.typing import NDArray

from planner_models.livevideo.designs.tree.local_network import EPS, LocalNetwork

Ints = NDArray[np.int64]


@nb.njit(cache=True, nogil=True)
def solve_single_request(net: LocalNetwork, paths: Ints) -> float:
    """Write the best path of an object's only request to paths[0]; return its value."""
    best = 0.0
    for column in range(3):
        paths[0, column] = -1
    for c in range(net.c_first[0], net.c_first[1]):
        value = net.value[0] - net.c_price[c]
        j = net.c_edge[c]
        for b in range(net.b_first[j], net.b_first[j + 1]):
            r = net.b_reflector[b]
            gain = value - net.b_price[b] - net.r_price[r]
            if gain > best:
                best = gain
                paths[0, 0] = net.r_link[r]
                paths[0, 1] = net.b_link[b]
                paths[0, 2] = net.c_link[c]
    return best


@nb.njit(cache=True, nogil=True)
def solve_dynamic_program(  # noqa: C901
    k: int, edges: int, reflectors: int, net: LocalNetwork, paths: Ints
) -> float:
    """Write the best tree for k <= MAX_EXACT_REQUESTS requests to paths (k, 3); return its value.

    part_cost[r, S]  cheapest single edge under r for all of S
    tree_cost[r, S]  cheapest edges under r for S
    all_cost[S]      cheapest tree for S
    """
    sets = 1 << k
    inf = np.inf
    for r in range(reflectors):
        for subset in range(sets):
            net.part_cost[r, subset] = inf
    for j in range(edges):
        reach = 0
        for i in range(k):
            for c in range(net.c_first[i], net.c_first[i + 1]):
                if net.c_edge[c] == j:
                    reach |= 1 << i
        subset = reach
        while subset > 0:
            total = 0.0
            for i in range(k):
                if subset >> i & 1:
                    for c in range(net.c_first[i], net.c_first[i + 1]):
                        if net.c_edge[c] == j:
                            total += net.c_price[c]
            for b in range(net.b_first[j], net.b_first[j + 1]):
                r = net.b_reflector[b]
                if total + net.b_price[b] < net.part_cost[r, subset]:
                    net.part_cost[r, subset] = total + net.b_price[b]
                    net.part_edge[r, subset] = b
            subset = (subset - 1) & reach
    for subset in range(1, sets):
        net.root_cost[subset] = inf
    for r in range(reflectors):
        net.tree_cost[r, 0] = 0.0
        for subset in range(1, sets):
            low = subset & -subset
            rest = subset ^ low
            best, best_part = inf, 0
            other = rest
            while True:
                part = other | low
                cost = net.part_cost[r, part] + net.tree_cost[r, subset ^ part]
                if cost < best:
                    best, best_part = cost, part
                if other == 0:
                    break
                other = (other - 1) & rest
            net.tree_cost[r, subset] = best
            net.tree_part[r, subset] = best_part
            if best + net.r_price[r] < net.root_cost[subset]:
                net.root_cost[subset] = best + net.r_price[r]
                net.root_reflector[subset] = r
    net.all_cost[0] = 0.0
    best_value, best_set = 0.0, 0
    for subset in range(1, sets):
        low = subset & -subset
        rest = subset ^ low
        best, best_part = inf, 0
        other = rest
        while True:
            part = other | low
            cost = net.root_cost[part] + net.all_cost[subset ^ part]
            if cost < best:
                best, best_part = cost, part
            if other == 0:
                break
            other = (other - 1) & rest
        net.all_cost[subset] = best
        net.all_part[subset] = best_part
        value = -best
        for i in range(k):
            if subset >> i & 1:
                value += net.value[i]
        if value > best_value + EPS:
            best_value, best_set = value, subset
    for i in range(k):
        for column in range(3):
            paths[i, column] = -1
    while best_set:
        below = net.all_part[best_set]
        best_set ^= below
        r = net.root_reflector[below]
        while below:
            part = net.tree_part[r, below]
            below ^= part
            b = net.part_edge[r, part]
            j = find_edge(net, b, edges)
            for i in range(k):
                if part >> i & 1:
                    for c in range(net.c_first[i], net.c_first[i + 1]):
                        if net.c_edge[c] == j:
                            paths[i, 0] = net.r_link[r]
                            paths[i, 1] = net.b_link[b]
                            paths[i, 2] = net.c_link[c]
    return best_value


@nb.njit(cache=True, nogil=True)
def find_edge(net: LocalNetwork, b: int, edges: int) -> int:
    """Return the local edge that local link b leads to."""
    for j in range(edges):
        if b < net.b_first[j + 1]:
            return j
    return edges
