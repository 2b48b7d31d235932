"""Trees that fit together: placed one by one into what room links have left, then ruined and recreated."""

from __future__ import annotations

import time
from typing import Any

import numba as nb
import numpy as np
from numpy.typing import NDArray

from planner_models.livevideo.layers import Layers
from planner_models.livevideo.pricing import Pricer, carry, gather, solve_one

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@nb.njit(cache=True, nogil=True)
def worth(
    first: int,
    last: int,
    rate: float,
    value: Floats,
    a_cost: Floats,
    b_cost: Floats,
    c_cost: Floats,
    choice: Ints,
) -> float:
    """What the tree of one object is worth: values served less the weighted cost of its links."""
    total = 0.0
    for i in range(first, last):
        c = choice[i, 2]
        if c < 0:
            continue
        total += value[i] - rate * c_cost[c]
        new_b, new_a = True, True
        for other in range(first, i):
            if choice[other, 2] < 0:
                continue
            if choice[other, 1] == choice[i, 1]:
                new_b = False
                new_a = False
                break
            if choice[other, 0] == choice[i, 0]:
                new_a = False
        if new_b:
            total -= rate * b_cost[choice[i, 1]]
        if new_a:
            total -= rate * a_cost[choice[i, 0]]
    return total


@nb.njit(cache=True, nogil=True)
def total_worth(
    object_first: Ints,
    rate: Floats,
    value: Floats,
    a_cost: Floats,
    b_cost: Floats,
    c_cost: Floats,
    choice: Ints,
) -> float:
    """What the trees of all objects are worth."""
    total = 0.0
    for o in range(len(rate)):
        total += worth(object_first[o], object_first[o + 1], rate[o], value, a_cost, b_cost, c_cost, choice)
    return total


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


@nb.njit(cache=True, nogil=True)
def place(
    o: int, object_first: Ints, group: Ints, value: Floats, klass: Ints, rate: Floats,
    c_first: Ints, c_tail: Ints, c_price: Floats, c_room: Floats,
    b_first: Ints, b_tail: Ints, b_price: Floats, b_room: Floats,
    a_first: Ints, a_price: Floats, a_room: Floats,
    s: Any, dual: Floats, choice: Ints,
) -> None:  # fmt: skip
    """Give object o, which has no tree, the best one that fits at the given prices."""
    first, last = object_first[o], object_first[o + 1]
    if first == last:
        return
    q = klass[o]
    edges, reflectors = gather(
        o, first, last, rate[o], group, value, c_first, c_tail, c_price[q], c_room,
        b_first, b_tail, b_price[q], b_room, a_first, a_price[q], a_room, s,
    )  # fmt: skip
    if edges == 0 or reflectors == 0:
        for i in range(first, last):
            choice[i, 0] = -1
            choice[i, 1] = -1
            choice[i, 2] = -1
        return
    for i in range(first, last):
        s.place_dual[i - first] = dual[i]
    solve_one(last - first, edges, reflectors, s, choice[first:last], s.place_dual, 6, 1)


@nb.njit(cache=True, nogil=True)
def place_all(
    order: Ints, object_first: Ints, group: Ints, value: Floats, klass: Ints, rate: Floats,
    c_first: Ints, c_tail: Ints, c_price: Floats, c_room: Floats,
    b_first: Ints, b_tail: Ints, b_price: Floats, b_room: Floats,
    a_first: Ints, a_price: Floats, a_room: Floats,
    s: Any, dual: Floats, choice: Ints, b_of_c: Ints,
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
        carry(first, last, rate[o], -1.0, choice, b_of_c, a_room, b_room, c_room)


@nb.njit(cache=True, nogil=True)
def refill(
    order: Ints, object_first: Ints, group: Ints, value: Floats, klass: Ints, rate: Floats,
    c_first: Ints, c_tail: Ints, c_price: Floats, c_room: Floats, c_cost: Floats,
    b_first: Ints, b_tail: Ints, b_price: Floats, b_room: Floats, b_cost: Floats,
    a_first: Ints, a_price: Floats, a_room: Floats, a_cost: Floats,
    s: Any, dual: Floats, choice: Ints, b_of_c: Ints,
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
        carry(first, last, rate[o], 1.0, choice, b_of_c, a_room, b_room, c_room)
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
        carry(first, last, rate[o], -1.0, choice, b_of_c, a_room, b_room, c_room)
    return gained


@nb.njit(cache=True, nogil=True)
def ruin(  # noqa: C901
    rounds: int, random: Any, chosen: int, temperature: float,
    members: Ints, member_first: Ints, waiting: Ints, priority: Floats,
    object_first: Ints, group: Ints, value: Floats, klass: Ints, rate: Floats,
    c_first: Ints, c_tail: Ints, c_price: Floats, c_room: Floats, c_cost: Floats,
    b_first: Ints, b_tail: Ints, b_price: Floats, b_room: Floats, b_cost: Floats,
    a_first: Ints, a_price: Floats, a_room: Floats, a_cost: Floats,
    s: Any, dual: Floats, choice: Ints, b_of_c: Ints, kept: Ints, marks: Ints,
) -> float:  # fmt: skip
    """Rounds of: take away the trees of some objects that share a reflector, place them and others again.

    members[member_first[r]:member_first[r + 1]] are objects with a tree under reflector r, waiting
    those that serve not all, priority the worth of an object per Mbit/s by which they are placed.
    A round that loses more than `temperature` allows is undone. Returns what was gained.
    """
    total = 0.0
    reflectors = len(member_first) - 1
    ruined = np.zeros(2 * chosen, dtype=np.int64)
    keys = np.zeros(2 * chosen)
    for _ in range(rounds):
        count = 0
        r = random.integers(0, reflectors)
        size = member_first[r + 1] - member_first[r]
        if size > 0:
            for _ in range(1 + random.integers(0, chosen)):
                o = members[member_first[r] + random.integers(0, size)]
                if marks[o] == 0:
                    marks[o] = 1
                    ruined[count] = o
                    count += 1
        if len(waiting):
            for _ in range(1 + random.integers(0, chosen)):
                o = waiting[random.integers(0, len(waiting))]
                if marks[o] == 0:
                    marks[o] = 1
                    ruined[count] = o
                    count += 1
        before, rows = 0.0, 0
        for n in range(count):
            o = ruined[n]
            marks[o] = 0
            first, last = object_first[o], object_first[o + 1]
            before += worth(first, last, rate[o], value, a_cost, b_cost, c_cost, choice)
            carry(first, last, rate[o], 1.0, choice, b_of_c, a_room, b_room, c_room)
            for i in range(first, last):
                for column in range(3):
                    kept[rows, column] = choice[i, column]
                    choice[i, column] = -1
                rows += 1
            keys[n] = -priority[o] * (0.5 + random.random())
        order = np.argsort(keys[:count])
        after = 0.0
        for n in order:
            o = ruined[n]
            place(
                o, object_first, group, value, klass, rate, c_first, c_tail, c_price, c_room,
                b_first, b_tail, b_price, b_room, a_first, a_price, a_room, s, dual, choice,
            )  # fmt: skip
            first, last = object_first[o], object_first[o + 1]
            carry(first, last, rate[o], -1.0, choice, b_of_c, a_room, b_room, c_room)
            after += worth(first, last, rate[o], value, a_cost, b_cost, c_cost, choice)
        if after >= before - temperature * -np.log(max(random.random(), 1e-12)):
            total += after - before
            continue
        rows = 0
        for n in range(count):
            o = ruined[n]
            first, last = object_first[o], object_first[o + 1]
            carry(first, last, rate[o], 1.0, choice, b_of_c, a_room, b_room, c_room)
        for n in range(count):
            o = ruined[n]
            first, last = object_first[o], object_first[o + 1]
            for i in range(first, last):
                for column in range(3):
                    choice[i, column] = kept[rows, column]
                rows += 1
            carry(first, last, rate[o], -1.0, choice, b_of_c, a_room, b_room, c_room)
    return total


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
        self.none = np.zeros(0, dtype=np.int64)
        asked = np.diff(layers.object_first)
        self.kept = np.zeros((int(asked.max(initial=1)) * 64, 3), dtype=np.int64)
        self.marks = np.zeros(len(layers.klass), dtype=np.int64)
        total = np.add.reduceat(np.append(layers.value, 0.0), layers.object_first[:-1]) * (asked > 0)
        self.density = total / layers.bitrate
        self.small = asked <= 64
        self.free = np.ones(len(asked), dtype=bool)
        self.prices: tuple[Floats, Floats, Floats] | None = None
        self.total = 0.0
        self.turn = 0

    def price_of(self, prices: tuple[Floats, Floats, Floats], factor: float) -> list[Floats]:
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
        """Worth of all trees together; pinned requests count only what they are worth themselves."""
        return self.total - self.layers.must * self.layers.pinned if self.layers.pinned else self.total

    def served_pins(self) -> int:
        """How many of the pinned requests are served."""
        if not self.layers.pinned:
            return 0
        return int(((self.layers.value >= self.layers.must) & (self.choice[:, 2] >= 0)).sum())

    def objective(self) -> float:
        """Worth of all trees together, added up anew."""
        layers = self.layers
        a, b, c = self.costs
        return float(total_worth(layers.object_first, layers.bitrate, layers.value, a, b, c, self.choice))

    def work(self, seconds: float) -> None:
        """Shake for about so long: mostly at the prices, now and then below them to fill what is left."""
        until = time.perf_counter() + seconds
        rounds = 200
        while time.perf_counter() < until and self.prices is not None:
            self.turn += 1
            began = time.perf_counter()
            factor = (1.0, 0.9, 0.8, 0.6, 0.9, 0.3)[self.turn % 6]
            self.total += self.shake(self.prices, rounds, 4 + self.turn % 9, factor, 0.0)
            if self.turn % 12 == 0:
                order = np.argsort(-self.density * self.random.uniform(0.5, 1.5, len(self.density))).astype(
                    np.int64
                )
                self.total += self.fill(self.prices, 0.0, order)
            spent = time.perf_counter() - began
            rounds = int(np.clip(rounds * 0.15 / max(spent, 1e-4), 50, 5000))

    def rebuild(
        self, choice: Ints, prices: tuple[Floats, Floats, Floats], dual: Floats, merit: Floats
    ) -> None:
        """Place all anew, the highest merit per Mbit/s first; trees of `choice` stay where they fit."""
        layers = self.layers
        before = (self.choice, self.rooms, self.total)
        self.choice = choice.copy()
        self.dual = dual.copy()
        self.rooms = [room.copy() for room in self.full]
        order = np.argsort(-merit / layers.bitrate, kind="stable").astype(np.int64)
        if not self.free.all():  # what must stay as it is gets no tree that it did not have
            some = np.zeros(len(self.free), dtype=bool)
            item = np.repeat(np.arange(len(some)), np.diff(layers.object_first))
            some[item[choice[:, 2] >= 0]] = True
            order = order[(self.free | some)[order]]
        a, b, c = self.price_of(prices, 1.0)
        place_all(
            order, layers.object_first, layers.group, layers.value, layers.klass, layers.bitrate,
            layers.c.first, layers.c.tail, c, self.rooms[2], layers.b.first, layers.b.tail, b, self.rooms[1],
            layers.a.first, a, self.rooms[0], self.space, self.dual, self.choice, self.none,
        )  # fmt: skip
        for factor in (0.9, 0.5, 0.0):
            self.fill(prices, factor, order)
        self.total = self.objective()
        if self.total < before[2]:
            self.choice, self.rooms, self.total = before

    def freeze(self, objects: Ints) -> None:
        """Leave the trees of these objects as they are from now on."""
        self.free[objects] = False
        self.small &= self.free

    def fill(self, prices: tuple[Floats, Floats, Floats], factor: float, order: Ints) -> float:
        """Place again what serves not all, at so much of the prices; the gain."""
        layers = self.layers
        order = order[self.free[order]]
        a, b, c = self.price_of(prices, factor)
        return float(
            refill(
                order, layers.object_first, layers.group, layers.value, layers.klass, layers.bitrate,
                layers.c.first, layers.c.tail, c, self.rooms[2], self.costs[2],
                layers.b.first, layers.b.tail, b, self.rooms[1], self.costs[1],
                layers.a.first, a, self.rooms[0], self.costs[0],
                self.space, self.dual, self.choice, self.none,
            )
        )  # fmt: skip

    def shake(
        self,
        prices: tuple[Floats, Floats, Floats],
        rounds: int,
        chosen: int,
        factor: float,
        temperature: float,
    ) -> float:
        """Ruin and recreate: that many rounds of up to so many objects; the gain."""
        layers = self.layers
        item = np.repeat(np.arange(len(layers.klass)), np.diff(layers.object_first))
        on = self.choice[:, 2] >= 0
        partly = np.unique(item[~on])
        waiting = partly[self.small[partly]].astype(np.int64)
        on &= self.small[item]
        pairs = np.unique(layers.b.tail[self.choice[on, 1]] * len(layers.klass) + item[on])
        at, members = pairs // len(layers.klass), (pairs % len(layers.klass)).astype(np.int64)
        first = np.searchsorted(at, np.arange(layers.reflectors + 1)).astype(np.int64)
        a, b, c = self.price_of(prices, factor)
        gained = ruin(
            rounds, self.random, chosen, temperature,
            members, first, waiting, self.density, layers.object_first, layers.group, layers.value,
            layers.klass, layers.bitrate,
            layers.c.first, layers.c.tail, c, self.rooms[2], self.costs[2],
            layers.b.first, layers.b.tail, b, self.rooms[1], self.costs[1],
            layers.a.first, a, self.rooms[0], self.costs[0],
            self.space, self.dual, self.choice, self.none, self.kept, self.marks,
        )  # fmt: skip
        return float(gained)
