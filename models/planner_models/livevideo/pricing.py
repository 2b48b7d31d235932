"""Trees for all objects at given link prices, in parallel, and what they add up to."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numba as nb
import numpy as np
from numpy.typing import NDArray

from planner_models.livevideo.layers import Layers
from planner_models.livevideo.subproblem import Star, bounded, exact, workspace

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

EXACT_REQUESTS = 6
ROUNDING = 1e-9


@nb.njit(cache=True, nogil=True)
def gather(  # noqa: C901
    o: int,  # noqa: ARG001
    first: int,
    last: int,
    rate: float,
    group: Ints,
    value: Floats,
    c_first: Ints,
    c_tail: Ints,
    c_price: Floats,
    c_room: Floats,
    b_first: Ints,
    b_tail: Ints,
    b_price: Floats,
    b_room: Floats,
    a_first: Ints,
    a_price: Floats,
    a_room: Floats,
    s: Any,
) -> tuple[int, int]:
    """Number locally what object o can use: links with a finite price and room for its bitrate."""
    edges = 0
    used = 0
    need = rate * (1 - ROUNDING)
    for i in range(last - first):
        s.value[i] = value[first + i]
        s.c_first[i] = used
        g = group[first + i]
        for c in range(c_first[g], c_first[g + 1]):
            if c_price[c] >= s.value[i] or c_room[c] < need:
                continue
            e = c_tail[c]
            if s.edge_mark[e] < 0:
                s.edge_mark[e] = edges
                s.edges[edges] = e
                edges += 1
            s.c_edge[used] = s.edge_mark[e]
            s.c_price[used] = c_price[c]
            s.c_link[used] = c
            used += 1
    s.c_first[last - first] = used
    reflectors = 0
    used = 0
    for j in range(edges):
        s.b_first[j] = used
        e = s.edges[j]
        for b in range(b_first[e], b_first[e + 1]):
            if b_price[b] == np.inf or b_room[b] < need:
                continue
            r = b_tail[b]
            m = s.reflector_mark[r]
            if m == -2:
                continue
            if m == -1:
                best = np.inf
                link = -1
                for a in range(a_first[r], a_first[r + 1]):
                    if a_price[a] < best and a_room[a] >= need:
                        best = a_price[a]
                        link = a
                s.reflectors[reflectors] = r
                s.r_price[reflectors] = best
                s.r_link[reflectors] = link
                s.reflector_mark[r] = reflectors
                reflectors += 1
                m = s.reflector_mark[r]
            if s.r_link[m] < 0:
                continue
            s.b_reflector[used] = m
            s.b_price[used] = b_price[b]
            s.b_link[used] = b
            used += 1
    s.b_first[edges] = used
    for j in range(edges):
        s.edge_mark[s.edges[j]] = -1
    for r in range(reflectors):
        s.reflector_mark[s.reflectors[r]] = -1
    return edges, reflectors


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
def solve_one(
    k: int, edges: int, reflectors: int, s: Any, choice: Ints, dual: Floats, steps: int, limit: int
) -> tuple[float, float]:
    """(value of the tree chosen, bound on that of every tree) of a gathered object."""
    if k == 1:
        best = single(s, choice)
        return best, best
    if k <= EXACT_REQUESTS:
        best = exact(k, edges, reflectors, s, choice)
        return best, best
    return bounded(k, edges, reflectors, s, choice, dual, steps, limit)


@nb.njit(cache=True, nogil=True)
def solve_some(
    objects: Ints,
    s: Any,
    object_first: Ints,
    group: Ints,
    value: Floats,
    klass: Ints,
    rate: Floats,
    c_first: Ints,
    c_tail: Ints,
    c_price: Floats,
    c_room: Floats,
    b_first: Ints,
    b_tail: Ints,
    b_price: Floats,
    b_room: Floats,
    a_first: Ints,
    a_price: Floats,
    a_room: Floats,
    steps: int,
    limit: int,
    dual: Floats,
    choice: Ints,
    best: Floats,
    bound: Floats,
) -> None:
    """Solve the subproblems of the given objects into choice, best and bound."""
    for o in objects:
        first, last = object_first[o], object_first[o + 1]
        best[o] = 0.0
        bound[o] = 0.0
        if first == last:
            continue
        q = klass[o]
        edges, reflectors = gather(
            o, first, last, rate[o], group, value, c_first, c_tail, c_price[q], c_room,
            b_first, b_tail, b_price[q], b_room, a_first, a_price[q], a_room, s,
        )  # fmt: skip
        best[o], bound[o] = solve_one(
            last - first, edges, reflectors, s, choice[first:last], dual[first:last], steps, limit
        )


@nb.njit(cache=True, nogil=True)
def carry(
    first: int, last: int, rate: float, sign: float, choice: Ints, b_of_c: Ints,  # noqa: ARG001
    a_load: Floats, b_load: Floats, c_load: Floats,
) -> None:  # fmt: skip
    """Add (sign 1) or take away (-1) what an object's tree carries; each link of it counts once."""
    for i in range(first, last):
        c = choice[i, 2]
        if c < 0:
            continue
        c_load[c] += sign * rate
        b = choice[i, 1]
        a = choice[i, 0]
        new_b, new_a = True, True
        for other in range(first, i):
            if choice[other, 2] < 0:
                continue
            if choice[other, 1] == b:
                new_b = False
                new_a = False
                break
            if choice[other, 0] == a:
                new_a = False
        if new_b:
            b_load[b] += sign * rate
        if new_a:
            a_load[a] += sign * rate


class Pricer:
    """Solves the subproblems of all objects; keeps its workspaces between calls."""

    def __init__(self, layers: Layers, threads: int) -> None:
        self.layers = layers
        first = layers.object_first
        asked = np.diff(first)
        self.room = [
            np.where(np.isinf(x.capacity), 1e300, x.capacity) for x in (layers.a, layers.b, layers.c)
        ]
        # work grows faster than requests: the large ones are spread over the threads
        order = np.argsort(-asked, kind="stable")
        step = np.arange(len(order)) % (2 * threads)
        thread = np.where(step < threads, step, 2 * threads - 1 - step)
        self.parts = [np.sort(order[thread == t]).astype(np.int64) for t in range(threads)]
        self.spaces = [self.space() for _ in range(threads)]
        self.pool = ThreadPoolExecutor(threads) if threads > 1 else None
        self.none = [np.full(len(x.tail), 1e300) for x in (layers.a, layers.b, layers.c)]

    def space(self) -> Star:
        """A workspace for one thread."""
        layers = self.layers
        return workspace(
            requests=int(np.diff(layers.object_first).max(initial=1)),
            degree=int(np.diff(layers.c.first).max(initial=1)),
            edges=layers.edges,
            reflectors=layers.reflectors,
            edge_degree=int(np.diff(layers.b.first).max(initial=1)),
        )

    def solve(
        self, prices: tuple[Floats, Floats, Floats], dual: Floats, steps: int, limit: int
    ) -> tuple[Ints, Floats, Floats]:
        """At prices (K, n) of the layers: choice (Q, 3), value and bound (O,) of each object's tree."""
        layers = self.layers
        choice = np.full((len(layers.group), 3), -1, dtype=np.int64)
        best, bound = np.zeros(len(layers.klass)), np.zeros(len(layers.klass))
        a, b, c = prices

        def part(thread: int) -> None:
            solve_some(
                self.parts[thread], self.spaces[thread], layers.object_first, layers.group, layers.value,
                layers.klass, layers.bitrate, layers.c.first, layers.c.tail, c, self.none[2],
                layers.b.first, layers.b.tail, b, self.none[1], layers.a.first, a, self.none[0],
                steps, limit, dual, choice, best, bound,
            )  # fmt: skip

        if self.pool is None:
            part(0)
        else:
            list(self.pool.map(part, range(len(self.parts))))
        return choice, best, bound


def uses(layers: Layers, choice: Ints) -> tuple[Ints, Ints]:
    """Object and link of what the chosen trees cross, links numbered through layers a, b, c."""
    item = np.repeat(np.arange(len(layers.klass)), np.diff(layers.object_first))
    n_a, n_b, n_c = len(layers.a.tail), len(layers.b.tail), len(layers.c.tail)
    links = n_a + n_b + n_c
    on = choice[:, 2] >= 0
    o = item[on]
    keys_a = np.unique(o * n_a + choice[on, 0])
    keys_b = np.unique(o * n_b + choice[on, 1])
    objects = np.concatenate([keys_a // n_a, keys_b // n_b, o])
    link = np.concatenate([keys_a % n_a, n_a + keys_b % n_b, n_a + n_b + choice[on, 2]])
    assert link.max(initial=0) < links
    return objects, link
