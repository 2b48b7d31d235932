"""Trees for all objects at given link prices, in parallel, and what they add up to."""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import numba as nb
import numpy as np
from numpy.typing import NDArray

from planner_models.livevideo.exact import exact, single
from planner_models.livevideo.layers import Layers
from planner_models.livevideo.relaxation import bounded
from planner_models.livevideo.star import EXACT, Star, gather, workspace

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

CHUNK: Final = 32
"""Objects between two looks at the clock."""


@nb.njit(cache=True, nogil=True)
def solve_one(
    k: int, edges: int, reflectors: int, s: Any, choice: Ints, dual: Floats, steps: int, limit: int
) -> tuple[float, float]:
    """(value of the tree chosen, bound on that of every tree) of a gathered object."""
    if k == 1:
        best = single(s, choice)
        return best, best
    if k <= EXACT:
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
    first: int, last: int, rate: float, sign: float, choice: Ints,
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


@nb.njit(cache=True, nogil=True)
def fits(
    first: int, last: int, rate: float, choice: Ints, a_room: Floats, b_room: Floats, c_room: Floats
) -> bool:
    """Whether every link of the object's tree has room for it."""
    need = rate * (1 - 1e-9)
    for i in range(first, last):
        c = choice[i, 2]
        if c >= 0 and (c_room[c] < need or b_room[choice[i, 1]] < need or a_room[choice[i, 0]] < need):
            return False
    return True


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

    def close(self) -> None:
        """End the threads."""
        if self.pool is not None:
            self.pool.shutdown()

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
        self,
        prices: tuple[Floats, Floats, Floats],
        dual: Floats,
        steps: int,
        limit: int,
        start: Ints | None = None,
        until: float = np.inf,
    ) -> tuple[Ints, Floats, Floats]:
        """At prices (K, n) of the layers: choice (Q, 3), value and bound (O,) of each object's tree.

        start  (Q, 3) trees that are good at other prices
        until  time.perf_counter() from which objects are left with their trees in `start`, as worth
               nothing, and with a loose bound
        """
        layers = self.layers
        none = np.full((len(layers.group), 3), -1, dtype=np.int64)
        choice = none if start is None else start.copy()
        best, bound = np.zeros(len(layers.klass)), np.zeros(len(layers.klass))
        a, b, c = prices

        def part(thread: int) -> None:
            objects = self.parts[thread]
            for first in range(0, len(objects), CHUNK):
                if time.perf_counter() > until:
                    late = objects[first:]
                    bound[late] = self.promise(c)[late]
                    return
                solve_some(
                    objects[first : first + CHUNK], self.spaces[thread], layers.object_first, layers.group,
                    layers.value, layers.klass, layers.bitrate, layers.c.first, layers.c.tail, c,
                    self.none[2], layers.b.first, layers.b.tail, b, self.none[1], layers.a.first, a,
                    self.none[0], steps, limit, dual, choice, best, bound,
                )  # fmt: skip

        if self.pool is None:
            part(0)
        else:
            list(self.pool.map(part, range(len(self.parts))))
        return choice, best, bound

    def promise(self, price: Floats) -> Floats:
        """(O,) more than any tree is worth: each request pays the cheapest last link of (K, n) alone."""
        layers = self.layers
        padded = np.concatenate([price, np.full((len(price), 1), np.inf)], axis=1)
        cheapest = np.minimum.reduceat(padded, layers.c.first[:-1], axis=1)
        cheapest[:, np.diff(layers.c.first) == 0] = np.inf
        left = np.maximum(0.0, layers.value - cheapest[layers.klass[layers.item], layers.group])
        return np.bincount(layers.item, weights=left, minlength=len(layers.klass)).astype(float)

    def solve_part(
        self,
        objects: Ints,
        prices: tuple[Floats, ...],
        rooms: Sequence[Floats],
        dual: Floats,
        choice: Ints,
        best: Floats,
        bound: Floats,
        steps: int,
        limit: int,
    ) -> None:
        """As `solve` for some objects, the largest first, over links with room for them; in place."""
        layers = self.layers
        a, b, c = prices

        def part(thread: int) -> None:
            mine = np.ascontiguousarray(objects[thread :: len(self.spaces)])  # strides are compiled anew
            solve_some(
                mine, self.spaces[thread], layers.object_first, layers.group,
                layers.value, layers.klass, layers.bitrate, layers.c.first, layers.c.tail, c, rooms[2],
                layers.b.first, layers.b.tail, b, rooms[1], layers.a.first, a, rooms[0],
                steps, limit, dual, choice, best, bound,
            )  # fmt: skip

        if self.pool is None:
            part(0)
        else:
            others = [self.pool.submit(part, thread) for thread in range(1, len(self.spaces))]
            part(0)
            for other in others:
                other.result()


def uses(layers: Layers, choice: Ints) -> tuple[Ints, Ints]:
    """Object and link of what the chosen trees cross, links numbered through layers a, b, c."""
    n_a, n_b, n_c = len(layers.a.tail), len(layers.b.tail), len(layers.c.tail)
    links = n_a + n_b + n_c
    on = choice[:, 2] >= 0
    o = layers.item[on]
    keys_a = np.unique(o * n_a + choice[on, 0])
    keys_b = np.unique(o * n_b + choice[on, 1])
    objects = np.concatenate([keys_a // n_a, keys_b // n_b, o])
    link = np.concatenate([keys_a % n_a, n_a + keys_b % n_b, n_a + n_b + choice[on, 2]])
    assert link.max(initial=0) < links
    return objects, link
