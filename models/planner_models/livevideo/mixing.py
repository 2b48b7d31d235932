"""Prices of links, and shares of trees for each object that go with them: block-coordinate Frank-Wolfe.

Every object holds a mix of trees, of which only the share of each link is kept. A link over its
limit has a price that grows with its load (an augmented Lagrangian). A few objects at a time find
their best tree at the prices of the moment and move their mix towards it, just as far as pays; all
who come after see the loads that this makes. So prices settle within some ten passes over all
objects, where methods that price once a pass need hundreds.

source  Lacoste-Julien, Jaggi, Schmidt and Pletscher, "Block-coordinate Frank-Wolfe optimization for
        structural SVMs" (ICML 2013), for the steps; Hestenes and Powell 1969 for the multipliers
"""

from __future__ import annotations

import copy
import time
from collections.abc import Iterator
from typing import Final

import numba as nb
import numpy as np
from numpy.typing import NDArray

from planner_models.livevideo.layers import Layers
from planner_models.livevideo.limits import Limits
from planner_models.livevideo.pricing import Pricer
from planner_models.livevideo.star import ROUNDING

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

Effort = tuple[int, int]
"""Steps and nodes of the search for the tree of an object with many requests."""

STIFF: Final = 2.0
"""Growth of a price when the load grows by the whole limit, over what prices of such links are."""

BATCHES: Final = 100
"""Batches of a pass, at most."""

FEWEST: Final = 8
"""Batches of a pass, at least."""

SMALLEST: Final = 48
"""Objects of a batch where there are enough."""


OWN: Final = (
    "free", "share", "worth", "load", "limit", "price", "multiplier", "stiff", "choice", "dual", "best",
    "bound", "delta", "mark",
)  # fmt: skip
"""What each mixing has for itself."""


class Mixing:
    """The mixes of all objects, the loads they make and the prices that follow.

    share   (N,) of each candidate link of each object; those of object o are start[o]:start[o + 1]
    link    (N,) the link, numbered through layers a, b, c
    worth   (O,) value of each object's mix
    load, multiplier, price   (M,) of the rows of `limits`; price is the mean over the last pass
    limit   (M,) what loads are held to
    choice  (Q, 3) the last best trees
    """

    def __init__(self, layers: Layers, limits: Limits, pricer: Pricer, seed: int) -> None:
        self.layers, self.limits, self.pricer = layers, limits, pricer
        self.asked = np.diff(layers.object_first)
        self.free = np.flatnonzero(self.asked > 0)
        self.sizes = limits.sizes
        self.start, self.link = candidates(
            layers.object_first, layers.group, layers.c.first, layers.c.tail, layers.b.first,
            self.sizes[0], self.sizes[1], layers.edges,
        )  # fmt: skip
        rows = len(limits.limit)
        self.share = np.zeros(len(self.link))
        self.worth = np.zeros(len(layers.klass))
        self.load, self.price = np.zeros(rows), np.zeros(rows)
        self.multiplier = np.zeros(rows)
        self.limit = limits.limit.copy()
        self.choice = np.full((len(layers.group), 3), -1, dtype=np.int64)
        self.dual = np.full(len(layers.group), -1.0)
        self.best, self.bound = np.zeros(len(layers.klass)), np.zeros(len(layers.klass))
        self.random = np.random.default_rng(seed)
        self.base = np.where(limits.opened, np.outer(layers.class_rate, limits.cost), np.inf)
        self.by_link = tuple(np.zeros((len(layers.class_rate), size)) for size in limits.sizes)
        self.takes = np.ascontiguousarray(limits.takes)
        self.delta = np.zeros(int(np.diff(self.start).max(initial=1)))
        self.mark = np.zeros(limits.count, dtype=np.int64)
        self.room = pricer.none  # trees are only sought over links with so much
        self.need = pricer.none  # and mixes give way that go over others
        self.passes = 0
        self.stiffness = STIFF
        self.unit = self._first_unit()
        self.stiff = np.zeros(rows)
        self._stiffen()

    def copy(self, pricer: Pricer, seed: int) -> Mixing:
        """Another one, as this is now, that goes its own way."""
        other = copy.copy(self)
        for name in OWN:
            setattr(other, name, getattr(self, name).copy())
        other.by_link = tuple(array.copy() for array in self.by_link)
        other.pricer, other.random = pricer, np.random.default_rng(seed)
        return other

    def start_from(self, choice: Ints, price: Floats | None) -> None:
        """Begin with whole trees, and at these prices where there are some."""
        layers, limits = self.layers, self.limits
        self.choice = choice.copy()
        hold_all(
            self.free, layers.object_first, layers.klass, layers.bitrate, layers.value, limits.cost,
            choice, self.sizes[0], self.sizes[1], self.start, self.link, self.share, self.worth,
            limits.first, limits.of_link, self.takes, self.load, self.mark,
        )  # fmt: skip
        if price is not None:
            self.multiplier = price.copy()
            self.passes = 4
            self._stiffen()

    def _first_unit(self) -> float:
        """A guess at the price of a Mbit/s: what half of the objects are worth more than, with few ways."""
        layers = self.layers
        total = np.minimum(layers.total, 1e3 * np.median(layers.value))  # pinned requests are worth any price
        density = (total / layers.bitrate)[self.asked > 0]
        return float(np.median(density)) / 5.0

    def _stiffen(self) -> None:
        """How fast each price grows with its load: by what rows of its layer cost."""
        limits = self.limits
        price = self.multiplier
        layer = np.searchsorted(np.cumsum(self.sizes), limits.link, side="right")
        counts = limits.floor > 0
        for part in range(3):
            mine = (layer == part) & ~counts
            on = mine & (price > 0)
            unit = float((price * limits.limit)[on].sum() / max(limits.limit[on].sum(), 1e-9))
            unit = max(unit, 0.1 * self.unit) if self.passes else self.unit
            self.stiff[mine] = self.stiffness * np.maximum(unit, price[mine]) / limits.limit[mine]
            crowd = (layer == part) & counts
            per = np.maximum(0.1 * unit * limits.floor[crowd], price[crowd])
            self.stiff[crowd] = self.stiffness * per / limits.limit[crowd]
        if self.passes:
            heavy = (limits.floor == 0) & (price > 0)
            if heavy.any():
                self.unit = float((price * limits.limit)[heavy].sum() / limits.limit[heavy].sum())

    def turn(
        self,
        effort: Effort = (6, 1),
        *,
        careful: tuple[NDArray[np.bool_], Effort] | None = None,
        until: float = np.inf,
    ) -> float:
        """One pass over the free objects, in an order of its own. Returns an estimate of the bound.

        effort   for objects with many requests
        careful  (O,) objects that get another effort, and which
        until    time.perf_counter() from which the rest of the pass is left out
        """
        layers, limits = self.layers, self.limits
        order = self.random.permutation(self.free)
        batches = max(min(FEWEST, len(order)), min(BATCHES, len(order) // SMALLEST), 1)
        total = np.zeros(len(self.limit))
        done = 0
        for part in np.array_split(order, batches):
            if done and time.perf_counter() > until:
                break
            done += 1
            objects = part[np.argsort(-self.asked[part], kind="stable")]
            a, b, c = self.by_link
            reprice(
                a, b, c, self.base, self.multiplier, self.load, self.limit, self.stiff,
                limits.link, self.takes, total,
            )  # fmt: skip
            for some, (steps, nodes) in _by_effort(objects, effort, careful):
                self.pricer.solve_part(
                    some, self.by_link, self.room, self.dual, self.choice, self.best, self.bound, steps, nodes
                )
            advance(
                objects, layers.object_first, layers.klass, layers.bitrate, layers.value, limits.cost,
                self.choice, self.sizes[0], self.sizes[1], self.start, self.link, self.share, self.worth,
                limits.first, limits.of_link, self.takes, self.multiplier, self.load, self.limit,
                self.stiff, self.mark, self.delta, *self.need,
            )  # fmt: skip
        self.price = total / done
        self.passes += 1
        if self.passes > 1:
            self.multiplier = np.maximum(0.0, self.multiplier + self.stiff * (self.load - self.limit))
            self._stiffen()
        return float(self.best[self.free].sum() + self.price @ self.limit)

    def distance(self) -> Floats:
        """(O,) how far each free object's mix is from its last tree: 0 is that tree alone."""
        return apart(
            self.free, self.layers.object_first, self.layers.value, self.choice, self.sizes[0], self.sizes[1],
            self.start, self.link, self.share, self.mark,
        )  # fmt: skip


def _by_effort(
    objects: Ints, effort: Effort, careful: tuple[NDArray[np.bool_], Effort] | None
) -> Iterator[tuple[Ints, Effort]]:
    """The objects in parts that get one effort each."""
    if careful is None:
        yield objects, effort
        return
    mine = careful[0][objects]
    for some, its in ((objects[mine], careful[1]), (objects[~mine], effort)):
        if len(some):
            yield some, its


@nb.njit(cache=True, nogil=True)
def candidates(  # noqa: C901
    first: Ints, group: Ints, c_first: Ints, c_tail: Ints, b_first: Ints, n_a: int, n_b: int, edges: int
) -> tuple[Ints, Ints]:
    """The links that a tree of each object may have: start (O + 1,) and the links."""
    count = len(first) - 1
    mark = np.full(edges, -1, np.int64)
    start = np.zeros(count + 1, np.int64)
    for o in range(count):
        n = n_a if first[o + 1] > first[o] else 0
        for i in range(first[o], first[o + 1]):
            for c in range(c_first[group[i]], c_first[group[i] + 1]):
                n += 1
                e = c_tail[c]
                if mark[e] != o:
                    mark[e] = o
                    n += b_first[e + 1] - b_first[e]
        start[o + 1] = start[o] + n
    link = np.empty(start[count], np.int64)
    mark[:] = -1
    for o in range(count):
        n = start[o]
        if first[o + 1] > first[o]:
            for a in range(n_a):
                link[n] = a
                n += 1
        for i in range(first[o], first[o + 1]):
            for c in range(c_first[group[i]], c_first[group[i] + 1]):
                link[n] = n_a + n_b + c
                n += 1
                e = c_tail[c]
                if mark[e] != o:
                    mark[e] = o
                    for b in range(b_first[e], b_first[e + 1]):
                        link[n] = n_a + b
                        n += 1
    return start, link


@nb.njit(cache=True, nogil=True)
def reprice(
    a_price: Floats, b_price: Floats, c_price: Floats, base: Floats, multiplier: Floats, load: Floats,
    limit: Floats, stiff: Floats, row_link: Ints, takes: Floats, total: Floats,
) -> None:  # fmt: skip
    """Prices (K, n) of the links of each layer at the loads of the moment; rows' own are added to total."""
    classes, n_a = a_price.shape
    n_b = b_price.shape[1]
    for k in range(classes):
        for n in range(n_a):
            a_price[k, n] = base[k, n]
        for n in range(n_b):
            b_price[k, n] = base[k, n_a + n]
        for n in range(c_price.shape[1]):
            c_price[k, n] = base[k, n_a + n_b + n]
    for m in range(len(limit)):
        price = multiplier[m] + stiff[m] * (load[m] - limit[m])
        if price <= 0:
            continue
        total[m] += price
        n = row_link[m]
        for k in range(classes):
            more = price * takes[k, m]
            if n < n_a:
                a_price[k, n] += more
            elif n < n_a + n_b:
                b_price[k, n - n_a] += more
            else:
                c_price[k, n - n_a - n_b] += more


@nb.njit(cache=True, nogil=True)
def marked(first: int, last: int, choice: Ints, value: Floats, n_a: int, n_b: int, mark: Ints) -> float:
    """Mark the links of an object's tree; what it serves is worth."""
    found = 0.0
    for i in range(first, last):
        if choice[i, 2] >= 0:
            found += value[i]
            mark[choice[i, 0]] = 1
            mark[n_a + choice[i, 1]] = 1
            mark[n_a + n_b + choice[i, 2]] = 1
    return found


@nb.njit(cache=True, nogil=True)
def advance(  # noqa: C901
    objects: Ints, first: Ints, klass: Ints, rate: Floats, value: Floats, cost: Floats, choice: Ints,
    n_a: int, n_b: int, start: Ints, link: Ints, share: Floats, worth: Floats,
    row_first: Ints, row_of: Ints, takes: Floats, multiplier: Floats, load: Floats, limit: Floats,
    stiff: Floats, mark: Ints, delta: Floats, a_room: Floats, b_room: Floats, c_room: Floats,
) -> None:  # fmt: skip
    """Move the mixes of some objects towards their trees in `choice`, each as far as pays.

    A mix over a link that has no room for the object any more gives way to the tree.
    """
    for o in objects:
        k = klass[o]
        found = marked(first[o], first[o + 1], choice, value, n_a, n_b, mark)
        gain, bend = 0.0, 0.0
        stuck = False
        for n in range(start[o], start[o + 1]):
            on = link[n]
            d = -share[n]
            if share[n] > 0.0:
                if on < n_a:
                    room = a_room[on]
                elif on < n_a + n_b:
                    room = b_room[on - n_a]
                else:
                    room = c_room[on - n_a - n_b]
                stuck = stuck or room < rate[o] * (1 - ROUNDING)
            if mark[on] == 1:
                d += 1.0
                found -= rate[o] * cost[on]
                mark[on] = 0
            delta[n - start[o]] = d
            if d == 0.0:
                continue
            for j in range(row_first[on], row_first[on + 1]):
                m = row_of[j]
                change = d * takes[k, m]
                price = multiplier[m] + stiff[m] * (load[m] - limit[m])
                if price > 0:
                    gain -= change * price
                    bend += stiff[m] * change * change
                elif change > 0 and price + stiff[m] * change > 0:
                    bend += stiff[m] * change * change
        gain += found - worth[o]
        if gain <= 0 and not stuck:
            continue
        step = 1.0 if stuck or bend <= gain else gain / bend
        worth[o] += step * (found - worth[o])
        for n in range(start[o], start[o + 1]):
            d = delta[n - start[o]]
            if d == 0.0:
                continue
            share[n] += step * d
            for j in range(row_first[link[n]], row_first[link[n] + 1]):
                load[row_of[j]] += step * d * takes[k, row_of[j]]


@nb.njit(cache=True, nogil=True)
def apart(
    objects: Ints, first: Ints, value: Floats, choice: Ints, n_a: int, n_b: int, start: Ints, link: Ints,
    share: Floats, mark: Ints,
) -> Floats:  # fmt: skip
    """How far mixes are from trees: the mean change of share over the links that either has."""
    far = np.zeros(len(objects))
    for place in range(len(objects)):
        o = objects[place]
        marked(first[o], first[o + 1], choice, value, n_a, n_b, mark)
        total, whole = 0.0, 0.0
        for n in range(start[o], start[o + 1]):
            there = float(mark[link[n]])
            mark[link[n]] = 0
            total += abs(there - share[n])
            whole += max(there, share[n])
        far[place] = total / whole if whole > 0 else 0.0
    return far


@nb.njit(cache=True, nogil=True)
def hold(
    o: int, first: Ints, klass: Ints, rate: Floats, value: Floats, cost: Floats, choice: Ints,
    n_a: int, n_b: int, start: Ints, link: Ints, share: Floats,
    row_first: Ints, row_of: Ints, takes: Floats, load: Floats, mark: Ints,
) -> float:  # fmt: skip
    """Make the mix of an object its tree in `choice` alone; what that is worth."""
    found = marked(first[o], first[o + 1], choice, value, n_a, n_b, mark)
    for n in range(start[o], start[o + 1]):
        on = link[n]
        d = -share[n]
        if mark[on] == 1:
            d += 1.0
            found -= rate[o] * cost[on]
            mark[on] = 0
        if d == 0.0:
            continue
        share[n] += d
        for j in range(row_first[on], row_first[on + 1]):
            load[row_of[j]] += d * takes[klass[o], row_of[j]]
    return found


@nb.njit(cache=True, nogil=True)
def hold_all(
    objects: Ints, first: Ints, klass: Ints, rate: Floats, value: Floats, cost: Floats, choice: Ints,
    n_a: int, n_b: int, start: Ints, link: Ints, share: Floats, worth: Floats,
    row_first: Ints, row_of: Ints, takes: Floats, load: Floats, mark: Ints,
) -> None:  # fmt: skip
    """As `hold` for many objects."""
    for o in objects:
        worth[o] = hold(
            o, first, klass, rate, value, cost, choice, n_a, n_b, start, link, share,
            row_first, row_of, takes, load, mark,
        )  # fmt: skip
