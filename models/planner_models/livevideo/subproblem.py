"""The best tree of one object at given link prices: exact for few requests, bounded for many.

An object asked for by k groups may be served to any of them. Its tree opens reflectors (each at the
price of the cheapest link from a source), links from reflectors to edges, and links from edges to
groups; a group that is served brings its value. Up to `EXACT` requests the best tree is found by
dynamic programming over sets of requests (Dreyfus and Wagner 1971, on a layered graph). Beyond,
dual ascent (Wong 1984) bounds the value of every tree, and branching on reflectors tightens that.

Kernels in Numba; `tests/livevideo/test_subproblem.py` holds them to plain enumeration.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numba as nb
import numpy as np
from numpy.typing import NDArray

EXACT = 6
"""Requests up to which the dynamic program is used: its work grows as 3 to their number."""

EPS = 1e-11

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Star(NamedTuple):
    """The part of the network that one object can use, numbered locally; also the workspace of the kernels.

    Requests i, edges j and reflectors r are local. Links into request i are c in
    c_first[i]:c_first[i + 1], links into edge j are b in b_first[j]:b_first[j + 1].

    c_edge, c_price, c_link        the edge, price and link of each c
    b_reflector, b_price, b_link   the reflector, price and link of each b
    r_price, r_link                price and link of the cheapest way from a source to r
    value                          worth of each request
    edge_mark, reflector_mark      local number of each edge and reflector, -1 elsewhere
    edges, reflectors              the clusters that are numbered
    """

    c_first: Ints
    c_edge: Ints
    c_price: Floats
    c_link: Ints
    b_first: Ints
    b_reflector: Ints
    b_price: Floats
    b_link: Ints
    r_price: Floats
    r_link: Ints
    value: Floats
    edge_mark: Ints
    reflector_mark: Ints
    edges: Ints
    reflectors: Ints
    # workspace of the dynamic program
    part_cost: Floats
    part_edge: Ints
    tree_cost: Floats
    tree_part: Ints
    root_cost: Floats
    root_reflector: Ints
    all_cost: Floats
    all_part: Ints
    # workspace of ascent and branching
    dual: Floats
    c_slack: Floats
    b_slack: Floats
    r_slack: Floats
    stamp: Ints
    fixed: Ints
    nodes: NDArray[np.int8]
    node_bound: Floats
    open_edge: Ints
    way: Ints
    way_price: Floats
    pick: Ints
    best_pick: Ints
    best_way: Ints


def workspace(*, requests: int, degree: int, edges: int, reflectors: int, edge_degree: int, nodes: int) -> Star:
    """Room for objects of at most so many requests, in a network of so many clusters."""
    e = min(edges, max(requests * degree, 1))
    r = min(reflectors, max(e * edge_degree, 1))
    sets = 1 << EXACT
    ints, floats = np.int64, np.float64

    def i(*shape: int) -> Ints:
        return np.zeros(shape, dtype=ints)

    def f(*shape: int) -> Floats:
        return np.zeros(shape, dtype=floats)

    c, b = requests * degree + 1, e * edge_degree + 1
    small_r = min(r, EXACT * degree * edge_degree) + 1
    return Star(
        c_first=i(requests + 1),
        c_edge=i(c),
        c_price=f(c),
        c_link=i(c),
        b_first=i(e + 1),
        b_reflector=i(b),
        b_price=f(b),
        b_link=i(b),
        r_price=f(r + 1),
        r_link=i(r + 1),
        value=f(requests + 1),
        edge_mark=np.full(edges + 1, -1, dtype=ints),
        reflector_mark=np.full(reflectors + 1, -1, dtype=ints),
        edges=i(e + 1),
        reflectors=i(r + 1),
        part_cost=f(small_r, sets),
        part_edge=i(small_r, sets),
        tree_cost=f(small_r, sets),
        tree_part=i(small_r, sets),
        root_cost=f(sets),
        root_reflector=i(sets),
        all_cost=f(sets),
        all_part=i(sets),
        dual=f(requests + 1),
        c_slack=f(c),
        b_slack=f(b),
        r_slack=f(r + 1),
        stamp=i(r + 1),
        fixed=i(r + 1),
        nodes=np.zeros((2 * nodes + 3, r + 1), dtype=np.int8),
        node_bound=f(2 * nodes + 3),
        open_edge=i(e + 1),
        way=i(e + 1),
        way_price=f(e + 1),
        pick=i(requests + 1),
        best_pick=i(requests + 1),
        best_way=i(e + 1),
    )


@nb.njit(cache=True, nogil=True)
def exact(k: int, edges: int, reflectors: int, s: Any, choice: Ints) -> float:
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


@nb.njit(cache=True, nogil=True)
def ascend(k: int, edges: int, reflectors: int, s: Any) -> float:
    """Dual ascent: no tree costs less, values of requests that it leaves out included.

    s.fixed[r] is 1 where reflector r is open and paid, -1 where it is closed, 0 undecided. Leaves
    the slacks behind: what they show as free is what a good tree uses.
    """
    total = 0.0
    for c in range(s.c_first[k]):
        s.c_slack[c] = s.c_price[c]
    for b in range(s.b_first[edges]):
        s.b_slack[b] = s.b_price[b]
    for r in range(reflectors):
        s.stamp[r] = -1
        if s.fixed[r] == 0:
            s.r_slack[r] = s.r_price[r]
        else:
            s.r_slack[r] = 0.0
            if s.fixed[r] == 1:
                total += s.r_price[r]
    active = k
    for i in range(k):
        s.dual[i] = 0.0
        s.pick[i] = 1
    turn = 0
    while active > 0:
        for i in range(k):
            if s.pick[i] == 0:
                continue
            turn += 1
            step = s.value[i] - s.dual[i]
            done = step <= EPS
            if not done:
                for c in range(s.c_first[i], s.c_first[i + 1]):
                    if s.c_slack[c] > EPS:
                        step = min(step, s.c_slack[c])
                        continue
                    j = s.c_edge[c]
                    for b in range(s.b_first[j], s.b_first[j + 1]):
                        r = s.b_reflector[b]
                        if s.fixed[r] == -1:
                            continue
                        if s.b_slack[b] > EPS:
                            step = min(step, s.b_slack[b])
                        elif s.r_slack[r] > EPS:
                            step = min(step, s.r_slack[r])
                        else:
                            done = True
                            break
                    if done:
                        break
            if done:
                s.pick[i] = 0
                active -= 1
                continue
            s.dual[i] += step
            total += step
            for c in range(s.c_first[i], s.c_first[i + 1]):
                if s.c_slack[c] > EPS:
                    s.c_slack[c] -= step
                    continue
                j = s.c_edge[c]
                for b in range(s.b_first[j], s.b_first[j + 1]):
                    r = s.b_reflector[b]
                    if s.fixed[r] == -1:
                        continue
                    if s.b_slack[b] > EPS:
                        s.b_slack[b] -= step
                    elif s.stamp[r] != turn:
                        s.stamp[r] = turn
                        s.r_slack[r] -= step
    return total


@nb.njit(cache=True, nogil=True)
def assign(k: int, edges: int, reflectors: int, s: Any, saturated: bool) -> float:
    """A tree over the reflectors that are free after `ascend`: its cost, values left out included.

    s.pick[i] becomes the link c of request i or -1, s.way[j] the link b into edge j. With
    `saturated` it starts from the edges that are free, else from all; both ways edges are then
    closed and opened while that pays.
    """
    inf = np.inf
    for j in range(edges):
        s.way_price[j] = inf
        s.way[j] = -1
        free = False
        for b in range(s.b_first[j], s.b_first[j + 1]):
            r = s.b_reflector[b]
            if s.fixed[r] == -1 or s.r_slack[r] > EPS:
                continue
            if s.b_slack[b] <= EPS:
                free = True
            if s.b_price[b] < s.way_price[j]:
                s.way_price[j] = s.b_price[b]
                s.way[j] = b
        s.open_edge[j] = 1 if s.way[j] >= 0 and (free or not saturated) else 0
    for i in range(k):
        s.pick[i] = -1
        best = s.value[i]
        for c in range(s.c_first[i], s.c_first[i + 1]):
            if s.open_edge[s.c_edge[c]] == 1 and s.c_price[c] < best:
                best = s.c_price[c]
                s.pick[i] = c
    for _ in range(4):
        changed = False
        for j in range(edges):
            if s.way[j] < 0:
                continue
            gain = 0.0  # of closing j where it is open, of opening it where it is closed
            if s.open_edge[j] == 1:
                gain = s.way_price[j]
                for i in range(k):
                    c = s.pick[i]
                    if c < 0 or s.c_edge[c] != j:
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
                for i in range(k):
                    now = s.value[i] if s.pick[i] < 0 else s.c_price[s.pick[i]]
                    for d in range(s.c_first[i], s.c_first[i + 1]):
                        if s.c_edge[d] == j and s.c_price[d] < now:
                            gain += now - s.c_price[d]
            if gain > EPS:
                changed = True
                s.open_edge[j] = 1 - s.open_edge[j]
                for i in range(k):
                    s.pick[i] = -1
                    best = s.value[i]
                    for c in range(s.c_first[i], s.c_first[i + 1]):
                        if s.open_edge[s.c_edge[c]] == 1 and s.c_price[c] < best:
                            best = s.c_price[c]
                            s.pick[i] = c
        if not changed:
            break
    return tree_cost(k, edges, reflectors, s)


@nb.njit(cache=True, nogil=True)
def tree_cost(k: int, edges: int, reflectors: int, s: Any) -> float:
    """Cost of what s.pick and s.way say, values left out included; edges without requests cost nothing."""
    for j in range(edges):
        s.open_edge[j] = 0
    for r in range(reflectors):
        s.stamp[r] = -1
    cost = 0.0
    for i in range(k):
        c = s.pick[i]
        if c < 0:
            cost += s.value[i]
            continue
        cost += s.c_price[c]
        j = s.c_edge[c]
        if s.open_edge[j] == 0:
            s.open_edge[j] = 1
            cost += s.way_price[j]
            r = s.b_reflector[s.way[j]]
            if s.stamp[r] != -2:
                s.stamp[r] = -2
                cost += s.r_price[r]
    return cost


@nb.njit(cache=True, nogil=True)
def bounded(k: int, edges: int, reflectors: int, s: Any, choice: Ints, limit: int) -> tuple[float, float]:
    """A good tree for any number of requests: (value of the best found, bound on that of every tree).

    limit  most nodes of the search; choice as in `exact`
    """
    everything = 0.0
    for i in range(k):
        everything += s.value[i]
        s.best_pick[i] = -1
    best = everything  # serve nobody
    for r in range(reflectors):
        s.nodes[0, r] = 0
    s.node_bound[0] = 0.0
    count, made = 1, 0
    closed_bound = np.inf  # of nodes that cannot be split
    while count > 0:
        # the node of the smallest bound
        low = 0
        for n in range(1, count):
            if s.node_bound[n] < s.node_bound[low]:
                low = n
        if s.node_bound[low] >= best - EPS or made >= limit:
            break
        for r in range(reflectors):
            s.fixed[r] = s.nodes[low, r]
        inherited = s.node_bound[low]
        count -= 1
        for r in range(reflectors):
            s.nodes[low, r] = s.nodes[count, r]
        s.node_bound[low] = s.node_bound[count]
        made += 1
        bound = max(inherited, ascend(k, edges, reflectors, s))
        if bound >= best - EPS:
            continue
        # ascent leaves its slacks to both tries
        for attempt in range(2):
            cost = assign(k, edges, reflectors, s, attempt == 0)
            if cost < best - EPS:
                best = cost
                for i in range(k):
                    s.best_pick[i] = s.pick[i]
                for j in range(edges):
                    s.best_way[j] = s.way[j]
        branch = -1
        for r in range(reflectors):
            if s.fixed[r] == 0 and s.r_slack[r] <= EPS and (branch < 0 or s.r_price[r] > s.r_price[branch]):
                branch = r
        if branch < 0:
            closed_bound = min(closed_bound, bound)
            continue
        for state in (-1, 1):
            for r in range(reflectors):
                s.nodes[count, r] = s.fixed[r]
            s.nodes[count, branch] = state
            s.node_bound[count] = bound
            count += 1
    least = min(best, closed_bound)
    for n in range(count):
        least = min(least, s.node_bound[n])
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
    return everything - best, everything - least
