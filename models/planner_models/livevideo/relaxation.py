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

from planner_models.livevideo.star import EPS

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

COLD: Final = 200
"""Steps where no dual is known."""

FEWEST: Final = 12
"""Steps at a node below the root, at least."""

NEAR: Final = 1e-4
"""Share of an object's value that its bound may be off."""

SWEEPS: Final = 5
"""Sweeps over the edges of the best tree in which some are exchanged, at most."""

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
    for _ in range(4):
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
