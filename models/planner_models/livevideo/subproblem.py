"""The best tree of one object at given link prices: exact for few requests, bounded for many.

An object asked for by k groups may be served to any of them. Its tree opens reflectors (each at the
price of the cheapest link from a source), links from reflectors to edges, and links from edges to
groups; a group that is served brings its value. Up to `EXACT` requests the best tree is found by
dynamic programming over sets of requests (Dreyfus and Wagner 1971, on a layered graph). Beyond, a
Lagrangian relaxation bounds the value of every tree: that a group is served but once is priced.

Kernels in Numba; `tests/livevideo/test_subproblem.py` holds them to plain enumeration.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numba as nb
import numpy as np
from numpy.typing import NDArray

EXACT = 6
"""Requests up to which the dynamic program is used: its work grows as 3 to their number."""

NODES = 128
"""Most nodes of a search over reflectors."""

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
    # workspace of the relaxation
    e_first: Ints
    e_c: Ints
    e_i: Ints
    dual: Floats
    gradient: Floats
    r_slack: Floats
    stamp: Ints
    used: Ints
    served: Ints
    open_edge: Ints
    way: Ints
    way_price: Floats
    pick: Ints
    best_pick: Ints
    best_way: Ints
    # workspace of the search
    b_used: Ints
    fixed: Ints
    nodes: Ints
    node_bound: Floats
    node_dual: Floats
    own: Floats
    # of whoever places trees
    place_dual: Floats
    old: Ints


def workspace(*, requests: int, degree: int, edges: int, reflectors: int, edge_degree: int) -> Star:
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
        e_first=i(e + 2),
        e_c=i(c),
        e_i=i(c),
        dual=f(requests + 1),
        gradient=f(requests + 1),
        r_slack=f(r + 1),
        stamp=i(r + 1),
        used=i(r + 1),
        served=i(e + 1),
        open_edge=i(e + 1),
        way=i(e + 1),
        way_price=f(e + 1),
        pick=i(requests + 1),
        best_pick=i(requests + 1),
        best_way=i(e + 1),
        b_used=i(b),
        fixed=i(r + 1),
        nodes=i(2 * NODES + 4, r + 1),
        node_bound=f(2 * NODES + 4),
        node_dual=f(2 * NODES + 4, requests + 1),
        own=f(requests + 1),
        place_dual=f(requests + 1),
        old=i(requests + 1, 3),
    )


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


@nb.njit(cache=True, nogil=True)
def by_edge(k: int, edges: int, s: Any) -> None:
    """List the links c by their edge: s.e_first[j]:s.e_first[j + 1] in s.e_c, and their requests in s.e_i."""
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
    closed, 0 undecided; links that an open reflector makes needless are passed over. Leaves behind
    what opens: s.stamp[r] is 1 for reflectors, s.served[j] counts those that edge j opens under.
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
            more = dual[s.e_i[place]] - s.c_price[s.e_c[place]]
            if more > 0:
                paid += more
        s.way_price[j] = paid
        for b in range(s.b_first[j], s.b_first[j + 1]):
            if paid > s.b_price[b] and s.b_used[b] == 1:
                s.r_slack[s.b_reflector[b]] += paid - s.b_price[b]
    for r in range(reflectors):
        s.stamp[r] = 0
        if s.fixed[r] == 1 or (s.fixed[r] == 0 and s.r_slack[r] > 0):
            s.stamp[r] = 1
            total -= s.r_slack[r]
    for j in range(edges):
        s.served[j] = 0
        for b in range(s.b_first[j], s.b_first[j + 1]):
            if s.b_used[b] == 1 and s.stamp[s.b_reflector[b]] == 1 and s.way_price[j] > s.b_price[b]:
                s.served[j] += 1
    return total


@nb.njit(cache=True, nogil=True)
def useful(edges: int, s: Any) -> None:
    """s.b_used[b]: link b is not needless. Under an open reflector nothing dearer is worth a look."""
    for j in range(edges):
        cheapest = np.inf
        chosen = -1
        for b in range(s.b_first[j], s.b_first[j + 1]):
            if s.fixed[s.b_reflector[b]] == 1 and s.b_price[b] < cheapest:
                cheapest = s.b_price[b]
                chosen = b
        for b in range(s.b_first[j], s.b_first[j + 1]):
            fixed = s.fixed[s.b_reflector[b]]
            s.b_used[b] = 1 if b == chosen or (fixed == 0 and s.b_price[b] < cheapest) else 0


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
def improved(k: int, edges: int, reflectors: int, s: Any, best: float) -> float:  # noqa: C901
    """Build a tree from what `relaxed` opened, close reflectors while that pays; keep it if it is better."""
    for j in range(edges):
        s.open_edge[j] = 1 if s.served[j] > 0 else 0
    cost = assign(k, edges, reflectors, s)
    nothing = True
    for i in range(k):
        if s.pick[i] >= 0:
            nothing = False
    if nothing:  # the prices on being served are still too low: begin with all
        for r in range(reflectors):
            s.stamp[r] = 1
        for j in range(edges):
            s.open_edge[j] = 1
        cost = assign(k, edges, reflectors, s)
    best = keep(k, edges, s, cost, best)
    for r in range(reflectors):
        if s.used[r] == 0:
            continue
        for other in range(reflectors):
            s.stamp[other] = s.used[other]
        s.stamp[r] = 0
        for j in range(edges):
            s.open_edge[j] = 1
        without = assign(k, edges, reflectors, s)
        best = keep(k, edges, s, without, best)
        if without >= cost - EPS:  # not worth it: back to what was used
            for other in range(reflectors):
                s.used[other] = s.stamp[other]
            s.used[r] = 1
        else:
            cost = without
    return best


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
def climb(k: int, edges: int, reflectors: int, s: Any, dual: Floats, steps: int, best: float) -> float:  # noqa: C901
    """The best bound of some subgradient steps of Polyak's length, towards `best`.

    dual becomes where the bound was found; what `relaxed` opened at the last step is left behind.
    """
    bound = -np.inf
    scale = 1.0
    stalled = 0
    for i in range(k):
        s.dual[i] = dual[i]
    for step in range(steps):
        low = relaxed(k, edges, reflectors, s, dual)
        stalled += 1
        if low > bound + 1e-6 * abs(bound):
            stalled = 0
        elif stalled >= 4:
            scale *= 0.6
            stalled = 0
        if low > bound:
            bound = low
            for i in range(k):
                s.dual[i] = dual[i]
        if bound >= best - EPS or step == steps - 1:
            break
        norm = 0.0
        for i in range(k):
            times = 0
            for c in range(s.c_first[i], s.c_first[i + 1]):
                if dual[i] > s.c_price[c]:
                    times += s.served[s.c_edge[c]]
            s.gradient[i] = 1.0 - times
            if not (dual[i] >= s.value[i] and times == 0):
                norm += s.gradient[i] ** 2
        if norm == 0:
            break
        length = scale * (best - low) / norm
        for i in range(k):
            dual[i] = min(s.value[i], dual[i] + length * s.gradient[i])
    for i in range(k):
        dual[i] = s.dual[i]
    return bound


@nb.njit(cache=True, nogil=True)
def bounded(
    k: int, edges: int, reflectors: int, s: Any, choice: Ints, dual: Floats, steps: int, limit: int
) -> tuple[float, float]:
    """A good tree for any number of requests: (value of the best found, bound on that of every tree).

    dual   (k,) where the search for the bound starts; becomes where it ends, a good start at prices
           that differ little. Negative: none yet
    steps  subgradient steps at the root, a third of that below
    limit  most nodes of the search over reflectors, the root included
    """
    by_edge(k, edges, s)
    everything = 0.0
    for i in range(k):
        everything += s.value[i]
        s.best_pick[i] = -1
        if dual[i] < 0:  # little more than its cheapest link alone: the ways above are shared
            cheapest = s.value[i]
            for c in range(s.c_first[i], s.c_first[i + 1]):
                cheapest = min(cheapest, s.c_price[c] + 0.1 * (s.value[i] - s.c_price[c]))
            dual[i] = cheapest
            steps = max(steps, 40)
        dual[i] = min(dual[i], s.value[i])
    best = everything  # serve nobody
    for r in range(reflectors):
        s.fixed[r] = 0
    useful(edges, s)
    bound = climb(k, edges, reflectors, s, dual, steps, best)
    best = improved(k, edges, reflectors, s, best)
    limit = min(limit, len(s.node_bound) // 2 - 1)
    if best - bound > 1e-4 * best and limit > 1:
        bound = climb(k, edges, reflectors, s, dual, steps, best)
        best, bound = search(k, edges, reflectors, s, dual, steps, limit, best, bound)
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
        if s.node_bound[low] >= best * (1 - 1e-5) or made + 2 > limit:
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
            bound = climb(k, edges, reflectors, s, s.node_dual[count], max(4, steps // 3), best)
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
