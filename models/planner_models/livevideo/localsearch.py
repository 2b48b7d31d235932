"""Good trees by local search: reflectors and edges are opened, closed and exchanged while that pays.

What closing an edge saves is reckoned in two places: a call that hands over the whole workspace takes
five to ten times as long as that does, and one that Numba puts inline no less.
"""

from __future__ import annotations

from typing import Any, Final

import numba as nb
import numpy as np
from numpy.typing import NDArray

from planner_models.livevideo.star import EPS

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

TURNS: Final = 4
"""Turns over the edges in which some are opened or closed, at most."""

SWEEPS: Final = 5
"""Sweeps over the edges of the best tree in which some are exchanged, at most."""


@nb.njit(cache=True, nogil=True)
def choose(i: int, s: Any) -> None:
    """Give request i the cheapest link from an open edge, or none."""
    s.pick[i] = -1
    best = s.value[i]
    for c in range(s.c_first[i], s.c_first[i + 1]):
        if s.open_edge[s.c_edge[c]] == 1 and s.c_price[c] < best:
            best = s.c_price[c]
            s.pick[i] = c


@nb.njit(cache=True, nogil=True)
def tree_cost(k: int, edges: int, reflectors: int, s: Any) -> float:
    """Cost of what s.pick and s.way say, values left out included; clusters without requests cost nothing."""
    for j in range(edges):
        s.served[j] = 0
    for r in range(reflectors):
        s.used[r] = 0
    cost = 0.0
    for i in range(k):
        c = s.pick[i]
        if c < 0:
            cost += s.value[i]
            continue
        cost += s.c_price[c]
        j = s.c_edge[c]
        if s.served[j] == 0:
            s.served[j] = 1
            cost += s.way_price[j]
            r = s.b_reflector[s.way[j]]
            if s.used[r] == 0:
                s.used[r] = 1
                cost += s.r_price[r]
    return cost


@nb.njit(cache=True, nogil=True)
def assign(k: int, edges: int, reflectors: int, s: Any) -> float:  # noqa: C901
    """A tree over the reflectors with s.stamp[r] = 1, from the edges with s.open_edge[j] = 1: its cost.

    Edges are closed and opened while that pays. s.pick[i] becomes the link c of request i or -1,
    s.way[j] the link b into edge j. Values of requests left out are part of the cost.
    """
    inf = np.inf
    for j in range(edges):
        s.way_price[j] = inf
        s.way[j] = -1
        for b in range(s.b_first[j], s.b_first[j + 1]):
            if s.stamp[s.b_reflector[b]] == 1 and s.b_price[b] < s.way_price[j]:
                s.way_price[j] = s.b_price[b]
                s.way[j] = b
        if s.way[j] < 0:
            s.open_edge[j] = 0
    for i in range(k):
        choose(i, s)
    for _ in range(TURNS):
        changed = False
        for j in range(edges):
            if s.way[j] < 0:
                continue
            if s.open_edge[j] == 1:
                gain = s.way_price[j]
                for place in range(s.e_first[j], s.e_first[j + 1]):
                    c, i = s.e_c[place], s.e_i[place]
                    if s.pick[i] != c:
                        continue
                    other = s.value[i]
                    for d in range(s.c_first[i], s.c_first[i + 1]):
                        if d != c and s.open_edge[s.c_edge[d]] == 1 and s.c_price[d] < other:
                            other = s.c_price[d]
                    gain -= other - s.c_price[c]
                    if gain <= EPS:
                        break
            else:
                gain = -s.way_price[j]
                for place in range(s.e_first[j], s.e_first[j + 1]):
                    c, i = s.e_c[place], s.e_i[place]
                    now = s.value[i]
                    if s.pick[i] >= 0:
                        now = s.c_price[s.pick[i]]
                    if s.c_price[c] < now:
                        gain += now - s.c_price[c]
            if gain > EPS:
                changed = True
                s.open_edge[j] = 1 - s.open_edge[j]
                for place in range(s.e_first[j], s.e_first[j + 1]):
                    choose(s.e_i[place], s)
        if not changed:
            break
    return tree_cost(k, edges, reflectors, s)


@nb.njit(cache=True, nogil=True)
def swapped(  # noqa: C901
    edges: int, value: Floats, c_first: Ints, c_edge: Ints, c_price: Floats, e_first: Ints, e_c: Ints,
    e_i: Ints, way: Ints, way_price: Floats, open_edge: Ints, pick: Ints, before: Ints,
) -> bool:  # fmt: skip
    """Open an edge and close one that it takes requests from, where that pays; whether anything did.

    What closing saves is reckoned on the spot, as in `assign`: a call for it takes longer than it does.
    """
    some = False
    for j in range(edges):
        if open_edge[j] == 1 or way[j] < 0:
            continue
        gain = -way_price[j]
        for place in range(e_first[j], e_first[j + 1]):
            c, i = e_c[place], e_i[place]
            before[place] = pick[i]
            now = value[i]
            if pick[i] >= 0:
                now = c_price[pick[i]]
            if c_price[c] < now:
                gain += now - c_price[c]
                pick[i] = c
        open_edge[j] = 1
        closed, most = -1, EPS - gain
        for place in range(e_first[j], e_first[j + 1]):
            if before[place] < 0:
                continue
            other = c_edge[before[place]]
            if other == closed or way_price[other] <= most:
                continue
            more = way_price[other]
            for near in range(e_first[other], e_first[other + 1]):
                c, i = e_c[near], e_i[near]
                if pick[i] != c:
                    continue
                instead = value[i]
                for d in range(c_first[i], c_first[i + 1]):
                    if d != c and open_edge[c_edge[d]] == 1 and c_price[d] < instead:
                        instead = c_price[d]
                more -= instead - c_price[c]
                if more <= most:
                    break
            if more > most:
                closed, most = other, more
        if closed < 0 and gain <= EPS:
            open_edge[j] = 0
            for place in range(e_first[j], e_first[j + 1]):
                pick[e_i[place]] = before[place]
            continue
        some = True
        if closed < 0:
            continue
        open_edge[closed] = 0
        for place in range(e_first[closed], e_first[closed + 1]):
            i = e_i[place]
            pick[i] = -1
            least = value[i]
            for d in range(c_first[i], c_first[i + 1]):
                if open_edge[c_edge[d]] == 1 and c_price[d] < least:
                    least = c_price[d]
                    pick[i] = d
    return some


@nb.njit(cache=True, nogil=True)
def known(  # noqa: C901
    k: int, edges: int, reflectors: int, s: Any, choice: Ints
) -> bool:
    """Set s.stamp to the reflectors of the tree in `choice`; False, and all of them, where there is none."""
    some = False
    for r in range(reflectors):
        s.stamp[r] = 0
    for i in range(k):
        if choice[i, 2] < 0:
            continue
        for c in range(s.c_first[i], s.c_first[i + 1]):
            if s.c_link[c] != choice[i, 2]:
                continue
            for b in range(s.b_first[s.c_edge[c]], s.b_first[s.c_edge[c] + 1]):
                if s.b_link[b] == choice[i, 1]:
                    s.stamp[s.b_reflector[b]] = 1
                    some = True
    if not some:
        for r in range(reflectors):
            s.stamp[r] = 1
    for j in range(edges):
        s.open_edge[j] = 1
    return some


@nb.njit(cache=True, nogil=True)
def flipped(k: int, edges: int, reflectors: int, s: Any, r: int, q: int) -> float:
    """The cost of the best tree that `assign` finds with r and q opened or closed besides s.turned."""
    for other in range(reflectors):
        s.stamp[other] = s.turned[other]
    s.stamp[r] = 1 - s.turned[r]
    s.stamp[q] = 1 - s.turned[q]
    for j in range(edges):
        s.open_edge[j] = 1
    return assign(k, edges, reflectors, s)


@nb.njit(cache=True, nogil=True)
def keep(k: int, edges: int, s: Any, cost: float, best: float) -> float:
    """The smaller of the two costs; a better tree is written down."""
    if cost < best - EPS:
        for i in range(k):
            s.best_pick[i] = s.pick[i]
        for j in range(edges):
            s.best_way[j] = s.way[j]
        return cost
    return best


@nb.njit(cache=True, nogil=True)
def improved(  # noqa: C901
    k: int, edges: int, reflectors: int, s: Any, cost: float, best: float
) -> float:
    """Open or close a reflector of the tree in s.pick, which costs so much, or open one and close another,
    while that pays; at last the same with edges."""
    for r in range(reflectors):
        s.turned[r] = s.used[r]
    again = True
    while again:
        again = False
        for r in range(reflectors):
            for q in range(r, reflectors):
                if q > r and s.turned[q] == s.turned[r]:
                    continue
                other = flipped(k, edges, reflectors, s, r, q)
                if other < cost - EPS:
                    again = True
                    best = keep(k, edges, s, other, best)
                    cost = other
                    for o in range(reflectors):
                        s.turned[o] = s.used[o]
    for r in range(reflectors):
        s.stamp[r] = s.turned[r]
    for j in range(edges):
        s.open_edge[j] = 1
    assign(k, edges, reflectors, s)
    for _ in range(SWEEPS):
        if not swapped(
            edges, s.value, s.c_first, s.c_edge, s.c_price, s.e_first, s.e_c, s.e_i, s.way, s.way_price,
            s.open_edge, s.pick, s.before,
        ):  # fmt: skip
            break
    return keep(k, edges, s, tree_cost(k, edges, reflectors, s), best)


@nb.njit(cache=True, nogil=True)
def grown(k: int, edges: int, reflectors: int, s: Any, cost: float, best: float) -> float:
    """Begin with nothing, which costs so much, and open the reflector that pays most while one does."""
    for r in range(reflectors):
        s.turned[r] = 0
    while True:
        chosen = -1
        for r in range(reflectors):
            if s.turned[r] == 1:
                continue
            other = flipped(k, edges, reflectors, s, r, r)
            if other < cost - EPS:
                best = keep(k, edges, s, other, best)
                cost = other
                chosen = r
        if chosen < 0:
            return best
        s.turned[chosen] = 1
