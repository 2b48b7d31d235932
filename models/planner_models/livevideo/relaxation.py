"""The best tree of one object with many requests: a Lagrangian bound, and a search over reflectors.

That a group is served but once is priced: an edge opens under every reflector where its requests
pay for it, a reflector where its edges do. The bound of these prices is that of the linear
relaxation over paths; where it leaves a gap, reflectors are opened and closed by branching.

source  subgradients with deflected directions: Camerini, Fratta and Maffioli 1975; length: Polyak 1969
"""

from __future__ import annotations

from typing import Any, Final

import numba as nb
import numpy as np
from numpy.typing import NDArray

from planner_models.livevideo.localsearch import assign, grown, improved, keep, known
from planner_models.livevideo.star import EPS

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

COLD: Final = 200
"""Steps where no dual is known."""

FEWEST: Final = 12
"""Steps at a node below the root, at least."""

NEAR: Final = 1e-4
"""Share of an object's value that its bound may be off."""

DEFLECTION: Final = 0.7
"""How much of the last direction a step keeps."""

PATIENCE: Final = 8
SHORTER: Final = 0.6
SHORTEST: Final = 1e-3
"""Steps without a better bound after which they are so much shorter, down to this share."""


@nb.njit(cache=True, nogil=True)
def by_edge(k: int, edges: int, s: Any) -> None:
    """List links c by their edge: s.e_first[j]:s.e_first[j + 1] in s.e_c; requests and prices likewise."""
    for j in range(edges + 1):
        s.e_first[j] = 0
    for c in range(s.c_first[k]):
        s.e_first[s.c_edge[c] + 1] += 1
    for j in range(edges):
        s.e_first[j + 1] += s.e_first[j]
    for i in range(k):
        for c in range(s.c_first[i], s.c_first[i + 1]):
            j = s.c_edge[c]
            place = s.e_first[j]
            s.e_c[place] = c
            s.e_i[place] = i
            s.e_price[place] = s.c_price[c]
            s.e_first[j] = place + 1
    for j in range(edges, 0, -1):
        s.e_first[j] = s.e_first[j - 1]
    s.e_first[0] = 0


@nb.njit(cache=True, nogil=True)
def relaxed(k: int, edges: int, reflectors: int, s: Any, dual: Floats) -> float:  # noqa: C901
    """Lagrangian bound at prices `dual` on being served: no tree costs less, values left out included.

    A request may then be served by several edges, and pays dual[i] to each: an edge opens under
    every reflector where its requests pay for it, a reflector where its edges do. dual[i] may be
    anything up to value[i]. s.fixed[r] is 1 where reflector r is open and paid, -1 where it is
    closed, 0 undecided; only links of `useful` are looked at. Leaves behind what opens: s.stamp[r] is
    1 for reflectors, s.served[j] counts those that edge j opens under, s.times[i] those that serve i.
    """
    total = 0.0
    for i in range(k):
        total += dual[i]
    for r in range(reflectors):
        s.r_slack[r] = -s.r_price[r]
        if s.fixed[r] == 1:
            s.r_slack[r] = 0.0
            total += s.r_price[r]
    for j in range(edges):
        paid = 0.0
        for place in range(s.e_first[j], s.e_first[j + 1]):
            more = dual[s.e_i[place]] - s.e_price[place]
            if more > 0:
                paid += more
        s.way_price[j] = paid
        if paid > 0:
            for u in range(s.u_first[j], s.u_first[j + 1]):
                if paid > s.u_price[u]:
                    s.r_slack[s.u_reflector[u]] += paid - s.u_price[u]
    for r in range(reflectors):
        s.stamp[r] = 0
        if s.fixed[r] == 1 or (s.fixed[r] == 0 and s.r_slack[r] > 0):
            s.stamp[r] = 1
            total -= s.r_slack[r]
    for i in range(k):
        s.times[i] = 0
    for j in range(edges):
        count = 0
        if s.way_price[j] > 0:
            for u in range(s.u_first[j], s.u_first[j + 1]):
                if s.stamp[s.u_reflector[u]] == 1 and s.way_price[j] > s.u_price[u]:
                    count += 1
        s.served[j] = count
        if count > 0:
            for place in range(s.e_first[j], s.e_first[j + 1]):
                if dual[s.e_i[place]] > s.e_price[place]:
                    s.times[s.e_i[place]] += count
    return total


@nb.njit(cache=True, nogil=True)
def useful(edges: int, s: Any) -> None:
    """List the links into each edge that a tree may need: s.u_first[j]:s.u_first[j + 1], not to closed
    reflectors, and under an open one nothing dearer."""
    count = 0
    for j in range(edges):
        s.u_first[j] = count
        cheapest = np.inf
        chosen = -1
        for b in range(s.b_first[j], s.b_first[j + 1]):
            if s.fixed[s.b_reflector[b]] == 1 and s.b_price[b] < cheapest:
                cheapest = s.b_price[b]
                chosen = b
        for b in range(s.b_first[j], s.b_first[j + 1]):
            if b == chosen or (s.fixed[s.b_reflector[b]] == 0 and s.b_price[b] < cheapest):
                s.u_price[count] = s.b_price[b]
                s.u_reflector[count] = s.b_reflector[b]
                count += 1
    s.u_first[edges] = count


@nb.njit(cache=True, nogil=True)
def climb(  # noqa: C901
    k: int, edges: int, reflectors: int, s: Any, dual: Floats, steps: int, best: float, enough: float
) -> float:
    """The best bound of some subgradient steps towards `best`; `enough` is near enough to stop.

    dual becomes where the bound was found; what `relaxed` opened at the last step is left behind.
    """
    bound = -np.inf
    scale = 1.0
    stalled = 0
    for i in range(k):
        s.dual[i] = dual[i]
        s.along[i] = 0.0
    for step in range(steps):
        low = relaxed(k, edges, reflectors, s, dual)
        stalled += 1
        if low > bound + 1e-6 * abs(bound):
            stalled = 0
        elif stalled >= PATIENCE:
            scale *= SHORTER
            stalled = 0
            if scale < SHORTEST:
                break
        if low > bound:
            bound = low
            for i in range(k):
                s.dual[i] = dual[i]
        if best - bound <= enough or step == steps - 1:
            break
        norm = 0.0
        for i in range(k):
            s.along[i] = 1.0 - s.times[i] + DEFLECTION * s.along[i]
            if dual[i] >= s.value[i] and s.along[i] > 0:
                s.along[i] = 0.0
            norm += s.along[i] ** 2
        if norm == 0:
            break
        length = scale * (best - low) / norm
        for i in range(k):
            dual[i] = min(s.value[i], dual[i] + length * s.along[i])
    for i in range(k):
        dual[i] = s.dual[i]
    return bound


@nb.njit(cache=True, nogil=True)
def bounded(  # noqa: C901
    k: int, edges: int, reflectors: int, s: Any, choice: Ints, dual: Floats, steps: int, limit: int
) -> tuple[float, float]:
    """A good tree for any number of requests: (value of the best found, bound on that of every tree).

    choice (k, 3) a tree to start from, or -1; becomes the tree found, as links (a, b, c)
    dual   (k,) where the search for the bound starts; becomes where it ends, a good start at prices
           that differ little. Negative: none yet
    steps  subgradient steps at the root, fewer below
    limit  most nodes of the search over reflectors, the root included
    """
    by_edge(k, edges, s)
    everything = 0.0
    for i in range(k):
        everything += s.value[i]
        s.best_pick[i] = -1
        if dual[i] < 0:  # its cheapest link alone: the ways above are shared
            cheapest = s.value[i]
            for c in range(s.c_first[i], s.c_first[i + 1]):
                cheapest = min(cheapest, s.c_price[c])
            dual[i] = cheapest
            steps = max(steps, COLD)
        dual[i] = min(dual[i], s.value[i])
    best = everything  # serve nobody
    for r in range(reflectors):
        s.fixed[r] = 0
    useful(edges, s)
    tree = known(k, edges, reflectors, s, choice)
    cost = assign(k, edges, reflectors, s)
    best = keep(k, edges, s, cost, best)
    if not tree:
        best = grown(k, edges, reflectors, s, everything, best)
    elif limit > 1:
        best = improved(k, edges, reflectors, s, cost, best)
    enough = NEAR * (everything - best)
    bound = climb(k, edges, reflectors, s, dual, steps, best, enough)
    for j in range(edges):
        s.open_edge[j] = 1 if s.served[j] > 0 else 0
    best = keep(k, edges, s, assign(k, edges, reflectors, s), best)
    limit = min(limit, len(s.node_bound) // 2 - 1)
    if best - bound > enough and limit > 1:
        best, bound = search(k, edges, reflectors, s, dual, steps, limit, best, bound, enough)
    for i in range(k):
        c = s.best_pick[i]
        choice[i, 0] = -1
        choice[i, 1] = -1
        choice[i, 2] = -1
        if c >= 0:
            b = s.best_way[s.c_edge[c]]
            choice[i, 0] = s.r_link[s.b_reflector[b]]
            choice[i, 1] = s.b_link[b]
            choice[i, 2] = s.c_link[c]
    return everything - best, everything - min(bound, best)


@nb.njit(cache=True, nogil=True)
def search(  # noqa: C901
    k: int,
    edges: int,
    reflectors: int,
    s: Any,
    dual: Floats,
    steps: int,
    limit: int,
    best: float,
    root: float,
    enough: float,
) -> tuple[float, float]:
    """Branch on reflectors: (cost of the best tree, bound), s.best_pick and s.best_way the tree."""
    for r in range(reflectors):
        s.nodes[0, r] = 0
    for i in range(k):
        s.node_dual[0, i] = dual[i]
    s.node_bound[0] = root
    count, made = 1, 0
    decided = np.inf  # the least bound of nodes that cannot be split
    while count > 0:
        low = 0
        for n in range(1, count):
            if s.node_bound[n] < s.node_bound[low]:
                low = n
        if best - s.node_bound[low] <= enough or made + 2 > limit:
            break
        inherited = s.node_bound[low]
        for r in range(reflectors):
            s.fixed[r] = s.nodes[low, r]
        for i in range(k):
            s.own[i] = s.node_dual[low, i]
        count -= 1
        if low != count:
            s.node_bound[low] = s.node_bound[count]
            for r in range(reflectors):
                s.nodes[low, r] = s.nodes[count, r]
            for i in range(k):
                s.node_dual[low, i] = s.node_dual[count, i]
        # split at the reflector that is least clear: undecided, and neither far from nor deep in profit
        useful(edges, s)
        relaxed(k, edges, reflectors, s, s.own)
        branch = -1
        for r in range(reflectors):
            if s.fixed[r] == 0 and s.r_price[r] > 0:
                unclear = abs(s.r_slack[r]) - s.r_price[r]
                if branch < 0 or unclear < abs(s.r_slack[branch]) - s.r_price[branch]:
                    branch = r
        if branch < 0:
            decided = min(decided, inherited)
            continue
        for state in (-1, 1):
            s.fixed[branch] = state
            useful(edges, s)
            for i in range(k):
                s.node_dual[count, i] = s.own[i]
            made += 1
            bound = climb(k, edges, reflectors, s, s.node_dual[count], max(FEWEST, steps // 2), best, EPS)
            bound = max(bound, inherited)
            for j in range(edges):
                s.open_edge[j] = 1 if s.served[j] > 0 else 0
            best = keep(k, edges, s, assign(k, edges, reflectors, s), best)
            if bound >= best - EPS:
                continue
            for r in range(reflectors):
                s.nodes[count, r] = s.fixed[r]
            s.node_bound[count] = bound
            count += 1
    least = min(best, decided)
    for n in range(count):
        least = min(least, s.node_bound[n])
    return best, least
