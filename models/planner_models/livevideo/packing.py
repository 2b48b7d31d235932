"""Trees that fit together: placed one by one into what room links have left, then ruined and recreated."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any, Final

import numba as nb
import numpy as np
from numpy.typing import NDArray

from planner_models.livevideo.eviction import MOST, TRIES, Guide, evict
from planner_models.livevideo.layers import Layers
from planner_models.livevideo.placing import place, total_worth, undo, worth
from planner_models.livevideo.pricing import Pricer, carry, fits, uses

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

Prices = tuple[Floats, Floats, Floats]

FACTORS: Final = (1.0, 0.9, 0.8, 0.6, 0.9, 0.3)
"""Shares of the prices, in turn, at which trees are placed again."""

FILLED: Final = (1.0, 0.9, 0.5, 0.0)
"""Shares of the prices, in turn, at which what has no trees is placed."""

EVICTIONS: Final = 0.3
"""Rounds of eviction that take as long as one of ruin and recreate."""

PART: Final = 4_000
"""Rounds after which the lists of who uses and who would use a link are made anew."""

CHUNK: Final = 500
"""Rounds between two looks at the clock."""

FULL: Final = 0.1
"""A link with less than this share of its capacity left is full."""


@nb.njit(cache=True, nogil=True)
def place_all(
    order: Ints, object_first: Ints, group: Ints, value: Floats, klass: Ints, rate: Floats,
    c_first: Ints, c_tail: Ints, c_price: Floats, c_room: Floats,
    b_first: Ints, b_tail: Ints, b_price: Floats, b_room: Floats,
    a_first: Ints, a_price: Floats, a_room: Floats,
    s: Any, dual: Floats, choice: Ints,
) -> None:  # fmt: skip
    """Place objects in order; one whose tree in `choice` fits keeps it. Rooms shrink by what is placed.

    Afterwards an object may be placed again where it serves not all: its old tree is taken away first.
    """
    for o in order:
        first, last = object_first[o], object_first[o + 1]
        some = False
        for i in range(first, last):
            if choice[i, 2] >= 0:
                some = True
        if not (some and fits(first, last, rate[o], choice, a_room, b_room, c_room)):
            place(
                o, object_first, group, value, klass, rate, c_first, c_tail, c_price, c_room,
                b_first, b_tail, b_price, b_room, a_first, a_price, a_room, s, dual, choice,
            )  # fmt: skip
        carry(first, last, rate[o], -1.0, choice, a_room, b_room, c_room)


@nb.njit(cache=True, nogil=True)
def refill(
    order: Ints, object_first: Ints, group: Ints, value: Floats, klass: Ints, rate: Floats,
    c_first: Ints, c_tail: Ints, c_price: Floats, c_room: Floats, c_cost: Floats,
    b_first: Ints, b_tail: Ints, b_price: Floats, b_room: Floats, b_cost: Floats,
    a_first: Ints, a_price: Floats, a_room: Floats, a_cost: Floats,
    s: Any, dual: Floats, choice: Ints,
) -> float:  # fmt: skip
    """Place again each object that serves not all; keep what is worth more. Returns the gain."""
    gained = 0.0
    for o in order:
        first, last = object_first[o], object_first[o + 1]
        whole = True
        for i in range(first, last):
            if choice[i, 2] < 0:
                whole = False
        if whole:
            continue
        before = worth(first, last, rate[o], value, a_cost, b_cost, c_cost, choice)
        carry(first, last, rate[o], 1.0, choice, a_room, b_room, c_room)
        for i in range(first, last):
            for column in range(3):
                s.old[i - first, column] = choice[i, column]
        place(
            o, object_first, group, value, klass, rate, c_first, c_tail, c_price, c_room,
            b_first, b_tail, b_price, b_room, a_first, a_price, a_room, s, dual, choice,
        )  # fmt: skip
        after = worth(first, last, rate[o], value, a_cost, b_cost, c_cost, choice)
        if after < before:
            for i in range(first, last):
                for column in range(3):
                    choice[i, column] = s.old[i - first, column]
            after = before
        gained += after - before
        carry(first, last, rate[o], -1.0, choice, a_room, b_room, c_room)
    return gained


@nb.njit(cache=True, nogil=True)
def ruin(  # noqa: C901
    rounds: int, random: Any, chosen: int, temperature: float,
    tight: Ints, tight_first: Ints, members: Ints, member_first: Ints,
    nearby: Ints, nearby_first: Ints, priority: Floats,
    object_first: Ints, group: Ints, value: Floats, klass: Ints, rate: Floats,
    c_first: Ints, c_tail: Ints, c_price: Floats, c_room: Floats, c_cost: Floats,
    b_first: Ints, b_tail: Ints, b_price: Floats, b_room: Floats, b_cost: Floats,
    a_first: Ints, a_price: Floats, a_room: Floats, a_cost: Floats,
    s: Any, dual: Floats, choice: Ints, kept: Ints, marks: Ints,
) -> float:  # fmt: skip
    """Rounds of: take away the trees of some objects that share a full link, place them and others again.

    tight[tight_first[layer]:tight_first[layer + 1]] are the full links of a layer. Objects that use
    link n are members[member_first[n]:member_first[n + 1]], those that would, but serve not all,
    nearby[nearby_first[n]:nearby_first[n + 1]]; both may be out of date. priority is the worth of
    an object per Mbit/s, by which most rounds place them; others begin with the largest bitrate.
    A round that loses more than `temperature` allows is undone. Returns what was gained.
    """
    total = 0.0
    ruined = np.zeros(2 * chosen, dtype=np.int64)
    keys = np.zeros(2 * chosen)
    sources = len(a_price[0])
    for _ in range(rounds):
        count = 0
        layer = max(0, random.integers(0, 12) - 9)
        size = tight_first[layer + 1] - tight_first[layer]
        if size == 0:
            continue
        link = tight[tight_first[layer] + random.integers(0, size)]
        end = link + 1
        if layer == 0:  # all links into that reflector
            r = 0
            while a_first[r + 1] <= link:
                r += 1
            link, end = a_first[r], a_first[r + 1]
        for source in range(2):
            if source == 0:
                start, size = member_first[link], member_first[end] - member_first[link]
            elif layer == 0:  # anyone who waits
                start, size = 0, nearby_first[sources]
            else:
                start, size = nearby_first[link], nearby_first[link + 1] - nearby_first[link]
            if size == 0:
                continue
            for _ in range(1 + random.integers(0, chosen)):
                o = (
                    members[start + random.integers(0, size)]
                    if source == 0
                    else nearby[start + random.integers(0, size)]
                )
                if marks[o] == 0:
                    marks[o] = 1
                    ruined[count] = o
                    count += 1
        by_rate = random.random() < 0.2
        anew = random.random() < 0.8
        before, rows = 0.0, 0
        for n in range(count):
            o = ruined[n]
            marks[o] = 0
            first, last = object_first[o], object_first[o + 1]
            before += worth(first, last, rate[o], value, a_cost, b_cost, c_cost, choice)
            carry(first, last, rate[o], 1.0, choice, a_room, b_room, c_room)
            for i in range(first, last):
                for column in range(3):
                    kept[rows, column] = choice[i, column]
                    if anew:
                        choice[i, column] = -1
                rows += 1
            keys[n] = -(rate[o] if by_rate else priority[o]) * (0.5 + random.random())
        order = np.argsort(keys[:count])
        after = 0.0
        for n in order:
            o = ruined[n]
            place(
                o, object_first, group, value, klass, rate, c_first, c_tail, c_price, c_room,
                b_first, b_tail, b_price, b_room, a_first, a_price, a_room, s, dual, choice,
            )  # fmt: skip
            first, last = object_first[o], object_first[o + 1]
            carry(first, last, rate[o], -1.0, choice, a_room, b_room, c_room)
            after += worth(first, last, rate[o], value, a_cost, b_cost, c_cost, choice)
        if after >= before - temperature * -np.log(max(random.random(), 1e-12)):
            total += after - before
            continue
        undo(ruined[:count], object_first, rate, choice, kept, a_room, b_room, c_room)
    return total


@nb.njit(cache=True, nogil=True)
def take_all(
    object_first: Ints, rate: Floats, choice: Ints, a_room: Floats, b_room: Floats, c_room: Floats
) -> None:
    """Take the room of all trees."""
    for o in range(len(rate)):
        carry(object_first[o], object_first[o + 1], rate[o], -1.0, choice, a_room, b_room, c_room)


def parts(rounds: int, until: float) -> Iterator[int]:
    """So many rounds in pieces, with a look at the clock between them."""
    while rounds > 0 and time.perf_counter() < until:
        yield min(rounds, CHUNK)
        rounds -= CHUNK


class Packing:
    """Trees of all objects that fit the links, and what they are worth.

    choice  (Q, 3) links of each request, -1 where it is not served
    """

    def __init__(self, layers: Layers, pricer: Pricer, seed: int) -> None:
        self.layers = layers
        self.space = pricer.space()
        weight = layers.problem.cost_weight
        self.costs = [weight * x.cost for x in (layers.a, layers.b, layers.c)]
        self.rooms = [room.copy() for room in pricer.room]
        self.full = pricer.room
        self.choice = np.full((len(layers.group), 3), -1, dtype=np.int64)
        self.dual = np.full(len(layers.group), -1.0)
        self.random = np.random.default_rng(seed)
        asked = np.diff(layers.object_first)
        self.kept = np.zeros((int(asked.max(initial=1)) * 64, 3), dtype=np.int64)
        self.marks = np.zeros(len(layers.klass), dtype=np.int64)
        self.density = layers.total / layers.bitrate
        self.small = asked <= 64
        self.free = np.ones(len(asked), dtype=bool)
        self.total = 0.0
        self.best_total, self.best_choice = 0.0, self.choice
        self.turn = 0

    def price_of(self, prices: Prices, factor: float) -> list[Floats]:
        """Costs and so much of the prices above them, (K, n) of the three layers."""
        layers = self.layers
        made = []
        for price, cost in zip(prices, self.costs, strict=True):
            base = np.outer(layers.class_rate, cost)
            # infinite stays infinite: a link that is not open
            made.append(
                np.where(
                    np.isinf(price), np.inf, base + factor * (np.where(np.isinf(price), 0, price) - base)
                )
            )
        return made

    def value(self) -> float:
        """Worth of the best trees together; pinned requests count only what they are worth themselves."""
        return self.best_total - self.layers.must * self.layers.pinned

    def served_pins(self) -> int:
        """How many of the pinned requests are served."""
        if not self.layers.pinned:
            return 0
        return int(((self.layers.value >= self.layers.must) & (self.best_choice[:, 2] >= 0)).sum())

    def objective(self) -> float:
        """Worth of all trees together, added up anew."""
        layers = self.layers
        a, b, c = self.costs
        return float(total_worth(layers.object_first, layers.bitrate, layers.value, a, b, c, self.choice))

    def work(self, guide: Guide, rounds: int, temperature: float, until: float = np.inf) -> None:
        """Shake and evict in turns, for about so many rounds: mostly at the prices, now and then below
        them to fill what is left. Ends at time.perf_counter() `until`."""
        while rounds > 0 and time.perf_counter() < until:
            part = min(rounds, PART)
            rounds -= part
            self.turn += 1
            factor = FACTORS[self.turn // 2 % len(FACTORS)]
            if self.turn % 2 == 0:
                chosen = 4 + self.turn % 9
                self.total += self.shake(guide.prices, part, chosen, factor, temperature, until)
            else:
                self.total += self.evict(guide, int(part * EVICTIONS), factor, until)
            if self.total > self.best_total:
                self.keep()

    def keep(self) -> None:
        """Note that these are the best trees so far."""
        self.best_total = self.total
        self.best_choice = self.choice.copy()

    def back(self) -> None:
        """Return to the best trees."""
        if self.total < self.best_total:
            self.adopt(self.best_choice)

    def adopt(self, choice: Ints) -> None:
        """Take these trees, which fit."""
        self.choice = choice.copy()
        self.rooms = [room.copy() for room in self.full]
        layers = self.layers
        a, b, c = self.rooms
        take_all(layers.object_first, layers.bitrate, self.choice, a, b, c)
        self.total = self.objective()
        if self.total > self.best_total:
            self.keep()

    def by_merit(self, merit: Floats) -> Ints:
        """All objects, the highest merit per Mbit/s first."""
        return np.argsort(-merit / self.layers.bitrate, kind="stable").astype(np.int64)

    def rebuild(self, choice: Ints, prices: Prices, dual: Floats, merit: Floats) -> None:
        """Place all anew, the highest merit per Mbit/s first; trees of `choice` stay where they fit."""
        layers = self.layers
        self.choice = choice.copy()
        self.dual = dual.copy()
        self.rooms = [room.copy() for room in self.full]
        order = self.by_merit(merit)
        if not self.free.all():  # what must stay as it is gets no tree that it did not have
            some = np.zeros(len(self.free), dtype=bool)
            some[layers.item[choice[:, 2] >= 0]] = True
            order = order[(self.free | some)[order]]
        a, b, c = self.price_of(prices, 1.0)
        place_all(
            order, layers.object_first, layers.group, layers.value, layers.klass, layers.bitrate,
            layers.c.first, layers.c.tail, c, self.rooms[2], layers.b.first, layers.b.tail, b, self.rooms[1],
            layers.a.first, a, self.rooms[0], self.space, self.dual, self.choice,
        )  # fmt: skip
        self.fill(prices, order, FILLED[1:])
        self.total = self.objective()
        if self.total > self.best_total:
            self.keep()

    def freeze(self, objects: Ints) -> None:
        """Leave the trees of these objects as they are from now on."""
        self.free[objects] = False
        self.small &= self.free

    def fill(
        self, prices: Prices, order: Ints, factors: tuple[float, ...] = FILLED, until: float = np.inf
    ) -> None:
        """Place again what serves not all, at so much of the prices; ends at time.perf_counter() `until`."""
        layers = self.layers
        order = order[self.free[order]]
        for factor in factors:
            a, b, c = self.price_of(prices, factor)
            self.total += refill(
                order, layers.object_first, layers.group, layers.value, layers.klass, layers.bitrate,
                layers.c.first, layers.c.tail, c, self.rooms[2], self.costs[2],
                layers.b.first, layers.b.tail, b, self.rooms[1], self.costs[1],
                layers.a.first, a, self.rooms[0], self.costs[0],
                self.space, self.dual, self.choice,
            )  # fmt: skip
            if time.perf_counter() > until:
                break

    def shake(
        self,
        prices: Prices,
        rounds: int,
        chosen: int,
        factor: float,
        temperature: float,
        until: float = np.inf,
    ) -> float:
        """Ruin and recreate: that many rounds of up to so many objects; the gain."""
        layers = self.layers
        tight, tight_first = self._tight()
        members, member_first, nearby, nearby_first = self._neighbours()
        a, b, c = self.price_of(prices, factor)
        gained = 0.0
        for part in parts(rounds, until):
            gained += ruin(
            part, self.random, chosen, temperature,
            tight, tight_first, members, member_first, nearby, nearby_first, self.density,
            layers.object_first, layers.group, layers.value,
            layers.klass, layers.bitrate,
            layers.c.first, layers.c.tail, c, self.rooms[2], self.costs[2],
            layers.b.first, layers.b.tail, b, self.rooms[1], self.costs[1],
            layers.a.first, a, self.rooms[0], self.costs[0],
            self.space, self.dual, self.choice, self.kept, self.marks,
        )  # fmt: skip
        return float(gained)

    def evict(self, guide: Guide, rounds: int, factor: float, until: float = np.inf) -> float:
        """Give objects that lose much their best trees, and others room elsewhere; the gain."""
        layers = self.layers
        lost = guide.losses(layers, self.choice)
        seeds = np.flatnonzero((lost > guide.little) & self.small)
        if not len(seeds):
            return 0.0
        members, member_first, _, _ = self._neighbours()
        a, b, c = self.price_of(guide.prices, factor)
        a_full, b_full, c_full = guide.prices
        gained = 0.0
        for part in parts(rounds, until):
            gained += evict(
            part, self.random, MOST, TRIES, guide.little, seeds, np.cumsum(lost[seeds]),
            guide.trees, guide.worth, a_full, b_full, c_full,
            members, member_first, self.density,
            layers.object_first, layers.group, layers.value, layers.klass, layers.bitrate,
            layers.c.first, layers.c.tail, c, self.rooms[2], self.costs[2],
            layers.b.first, layers.b.tail, b, self.rooms[1], self.costs[1],
            layers.a.first, layers.a.head, a, self.rooms[0], self.costs[0],
            self.space, self.dual, self.choice, self.kept, self.marks,
        )  # fmt: skip
        return float(gained)

    def _tight(self) -> tuple[Ints, Ints]:
        """The links of each layer that are nearly full, numbered through; where each layer begins."""
        parts, offset = [], 0
        for room, full in zip(self.rooms, self.full, strict=True):
            parts.append(offset + np.flatnonzero((room < FULL * full) & (full < 1e299)))
            offset += len(full)
        first = np.cumsum([0, *(len(part) for part in parts)])
        return np.concatenate(parts).astype(np.int64), first.astype(np.int64)

    def _neighbours(self) -> tuple[Ints, Ints, Ints, Ints]:
        """Objects that use each link, and those that would: (members, first, nearby, first)."""
        layers = self.layers
        n_a, n_b, n_c = (len(part.tail) for part in (layers.a, layers.b, layers.c))
        links = n_a + n_b + n_c
        count = len(layers.klass)
        objects, link = uses(layers, self.choice)
        mine = self.small[objects]
        objects, link = objects[mine], link[mine]
        order = np.argsort(link, kind="stable")
        member_first = np.searchsorted(link[order], np.arange(links + 1)).astype(np.int64)
        left = np.flatnonzero((self.choice[:, 2] < 0) & self.small[layers.item])
        # over links to its group, from there to those into the edges, and over all from sources
        group = layers.group[left]
        times = np.diff(layers.c.first)[group]
        c = np.repeat(layers.c.first[group] - np.cumsum(times) + times, times) + np.arange(int(times.sum()))
        who = np.repeat(layers.item[left], times)
        at_edge = np.unique(layers.c.tail[c] * count + who)
        edge, near = at_edge // count, at_edge % count
        times = np.diff(layers.b.first)[edge]
        b = np.repeat(layers.b.first[edge] - np.cumsum(times) + times, times) + np.arange(int(times.sum()))
        waiting = np.unique(who)
        size = np.concatenate(
            [
                np.full(n_a, len(waiting)),
                np.bincount(b, minlength=n_b),
                np.bincount(c, minlength=n_c),
            ]
        )
        one = np.repeat(near, times)
        nearby = np.concatenate(
            [waiting, one[np.argsort(b, kind="stable")], who[np.argsort(c, kind="stable")]]
        ).astype(np.int64)
        # the lists of all links of layer a are one list
        first = np.zeros(links + 1, dtype=np.int64)
        first[n_a:] = len(waiting) + np.concatenate([[0], np.cumsum(size[n_a:])])
        return objects[order].astype(np.int64), member_first, nearby, first
