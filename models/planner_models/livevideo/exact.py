"""The best tree of one object with few requests: dynamic programming over sets of requests.

source  Dreyfus and Wagner 1971, on a layered graph
"""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np
from numpy.typing import NDArray

from planner_models.livevideo.star import EPS

Ints = NDArray[np.int64]


@nb.njit(cache=True, nogil=True)
def single(s: Any, choice: Ints) -> float:
    """The best path for the only request of a gathered object."""
    best = 0.0
    choice[0, 0] = -1
    choice[0, 1] = -1
    choice[0, 2] = -1
    for c in range(s.c_first[0], s.c_first[1]):
        left = s.value[0] - s.c_price[c]
        j = s.c_edge[c]
        for b in range(s.b_first[j], s.b_first[j + 1]):
            r = s.b_reflector[b]
            gain = left - s.b_price[b] - s.r_price[r]
            if gain > best:
                best = gain
                choice[0, 0] = s.r_link[r]
                choice[0, 1] = s.b_link[b]
                choice[0, 2] = s.c_link[c]
    return best


@nb.njit(cache=True, nogil=True)
def exact(k: int, edges: int, reflectors: int, s: Any, choice: Ints) -> float:  # noqa: C901
    """The best tree for k <= EXACT requests: its value; choice[i] becomes the links (a, b, c) or -1.

    part_cost[r, S]  cheapest single edge under r for all of S
    tree_cost[r, S]  cheapest edges under r for S
    all_cost[S]      cheapest tree for S
    """
    full = 1 << k
    inf = np.inf
    for r in range(reflectors):
        for subset in range(full):
            s.part_cost[r, subset] = inf
    for j in range(edges):
        reach = 0
        for i in range(k):
            for c in range(s.c_first[i], s.c_first[i + 1]):
                if s.c_edge[c] == j:
                    reach |= 1 << i
        subset = reach
        while subset > 0:
            total = 0.0
            for i in range(k):
                if subset >> i & 1:
                    for c in range(s.c_first[i], s.c_first[i + 1]):
                        if s.c_edge[c] == j:
                            total += s.c_price[c]
            for b in range(s.b_first[j], s.b_first[j + 1]):
                r = s.b_reflector[b]
                if total + s.b_price[b] < s.part_cost[r, subset]:
                    s.part_cost[r, subset] = total + s.b_price[b]
                    s.part_edge[r, subset] = b
            subset = (subset - 1) & reach
    for subset in range(1, full):
        s.root_cost[subset] = inf
    for r in range(reflectors):
        s.tree_cost[r, 0] = 0.0
        for subset in range(1, full):
            low = subset & -subset
            rest = subset ^ low
            best, best_part = inf, 0
            other = rest
            while True:
                part = other | low
                cost = s.part_cost[r, part] + s.tree_cost[r, subset ^ part]
                if cost < best:
                    best, best_part = cost, part
                if other == 0:
                    break
                other = (other - 1) & rest
            s.tree_cost[r, subset] = best
            s.tree_part[r, subset] = best_part
            if best + s.r_price[r] < s.root_cost[subset]:
                s.root_cost[subset] = best + s.r_price[r]
                s.root_reflector[subset] = r
    s.all_cost[0] = 0.0
    value, chosen = 0.0, 0
    for subset in range(1, full):
        low = subset & -subset
        rest = subset ^ low
        best, best_part = inf, 0
        other = rest
        while True:
            part = other | low
            cost = s.root_cost[part] + s.all_cost[subset ^ part]
            if cost < best:
                best, best_part = cost, part
            if other == 0:
                break
            other = (other - 1) & rest
        s.all_cost[subset] = best
        s.all_part[subset] = best_part
        worth = -best
        for i in range(k):
            if subset >> i & 1:
                worth += s.value[i]
        if worth > value + EPS:
            value, chosen = worth, subset
    for i in range(k):
        choice[i, 0] = -1
        choice[i, 1] = -1
        choice[i, 2] = -1
    while chosen:
        below = s.all_part[chosen]
        chosen ^= below
        r = s.root_reflector[below]
        while below:
            part = s.tree_part[r, below]
            below ^= part
            b = s.part_edge[r, part]
            j = edge_of(s, b, edges)
            for i in range(k):
                if part >> i & 1:
                    for c in range(s.c_first[i], s.c_first[i + 1]):
                        if s.c_edge[c] == j:
                            choice[i, 0] = s.r_link[r]
                            choice[i, 1] = s.b_link[b]
                            choice[i, 2] = s.c_link[c]
    return value


@nb.njit(cache=True, nogil=True)
def edge_of(s: Any, b: int, edges: int) -> int:
    """The local edge that local link b leads into."""
    for j in range(edges):
        if b < s.b_first[j + 1]:
            return j
    return edges
