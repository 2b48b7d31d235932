"""Trees that objects should have, put where others are in the way: those make room, and look for other ways.

Prices say what the best tree of each object is worth, and so what it loses by the tree that it has.
An object that loses much is given its best tree; from each link that is full, others are taken away
until there is room, and placed again afterwards. Where that costs nothing what was lost is found.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numba as nb
import numpy as np
from numpy.typing import NDArray

from planner_models.livevideo.layers import Layers
from planner_models.livevideo.placing import lift, place, undo, worth
from planner_models.livevideo.pricing import carry, fits, uses

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

MOST: Final = 30
"""Objects of a round, at most."""

TRIES: Final = 30
"""Draws of one that could make room on a link."""

LITTLE: Final = 3e-3
"""A loss below this share of the mean worth of an object is none."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Guide:
    """What is best at some prices, whatever else is there.

    prices  (K, n) of the links of each layer, costs included
    trees   (Q, 3) the best tree of each object
    worth   (O,) what it is worth at the prices
    """

    prices: tuple[Floats, Floats, Floats]
    trees: Ints
    worth: Floats

    @property
    def little(self) -> float:
        """A loss that is none."""
        return LITTLE * float(self.worth.sum()) / max(int((self.worth > 0).sum()), 1)

    def losses(self, layers: Layers, choice: Ints) -> Floats:
        """(O,) how much less each object's tree in (Q, 3) `choice` is worth at the prices."""
        item, link = uses(layers, choice)
        price = np.concatenate(self.prices, axis=1)
        served = choice[:, 2] >= 0
        now = np.bincount(layers.item[served], weights=layers.value[served], minlength=len(layers.klass))
        now -= np.bincount(item, weights=price[layers.klass[item], link], minlength=len(now))
        return np.asarray(self.worth - now)


@nb.njit(cache=True, nogil=True)
def crosses(o: int, object_first: Ints, choice: Ints, column: int, link: int) -> bool:
    """Whether the tree of an object has a link of layer `column`."""
    for i in range(object_first[o], object_first[o + 1]):  # noqa: SIM110
        if choice[i, column] == link:
            return True
    return False


@nb.njit(cache=True, nogil=True)
def roomy(link: int, need: float, a_first: Ints, a_head: Ints, a_room: Floats) -> int:
    """A link with room into the same reflector as `link`, -1 where there is none."""
    if a_room[link] >= need:
        return link
    for other in range(a_first[a_head[link]], a_first[a_head[link] + 1]):
        if a_room[other] >= need:
            return other
    return -1


@nb.njit(cache=True, nogil=True)
def evict(  # noqa: C901
    rounds: int, random: Any, most: int, tries: int, little: float, seeds: Ints, reach: Floats,
    best: Ints, best_worth: Floats, a_full: Floats, b_full: Floats, c_full: Floats,
    members: Ints, member_first: Ints, priority: Floats,
    object_first: Ints, group: Ints, value: Floats, klass: Ints, rate: Floats,
    c_first: Ints, c_tail: Ints, c_price: Floats, c_room: Floats, c_cost: Floats,
    b_first: Ints, b_tail: Ints, b_price: Floats, b_room: Floats, b_cost: Floats,
    a_first: Ints, a_head: Ints, a_price: Floats, a_room: Floats, a_cost: Floats,
    s: Any, dual: Floats, choice: Ints, kept: Ints, marks: Ints,
) -> float:  # fmt: skip
    """Rounds of: give one of `seeds` its best tree, and place again those that had to make room.

    reach  running sum of what seeds lose, by which they are drawn
    best, best_worth, a_full, b_full, c_full   trees, worth and prices of a `Guide`
    members[member_first[n]:member_first[n + 1]] use link n; they may be out of date

    A round that loses is undone. Returns what was gained.
    """
    total = 0.0
    ruined = np.zeros(most, dtype=np.int64)
    keys = np.zeros(most)
    for _ in range(rounds):
        o = seeds[min(np.searchsorted(reach, random.random() * reach[-1]), len(seeds) - 1)]
        first, last, q = object_first[o], object_first[o + 1], klass[o]
        now = worth(first, last, 1.0, value, a_full[q], b_full[q], c_full[q], choice)
        if best_worth[o] - now < little:
            continue
        before = worth(first, last, rate[o], value, a_cost, b_cost, c_cost, choice)
        rows = lift(o, object_first, rate, choice, kept, 0, a_room, b_room, c_room)
        count, done = 1, True
        ruined[0] = o
        marks[o] = 1
        need = rate[o] * (1 - 1e-9)
        for i in range(first, last):
            if best[i, 2] < 0:
                continue
            for column in range(3):
                link, before_it = best[i, column], 0
                room = a_room
                if column == 0:
                    if roomy(link, need, a_first, a_head, a_room) >= 0:
                        continue
                    r = a_head[link]
                    link = a_first[r] + random.integers(0, a_first[r + 1] - a_first[r])
                elif column == 1:
                    room, before_it = b_room, len(a_room)
                else:
                    room, before_it = c_room, len(a_room) + len(b_room)
                start = member_first[before_it + link]
                size = member_first[before_it + link + 1] - start
                tried = 0
                while room[link] < need:
                    tried += 1
                    if size == 0 or tried > tries or count == most:
                        done = False
                        break
                    m = members[start + random.integers(0, size)]
                    if marks[m] == 1 or not crosses(m, object_first, choice, column, link):
                        continue
                    if rows + object_first[m + 1] - object_first[m] > len(kept):
                        continue
                    before += worth(
                        object_first[m], object_first[m + 1], rate[m], value, a_cost, b_cost, c_cost, choice
                    )
                    rows = lift(m, object_first, rate, choice, kept, rows, a_room, b_room, c_room)
                    ruined[count] = m
                    marks[m] = 1
                    count += 1
                if not done:
                    break
            if not done:
                break
        for n in range(count):
            marks[ruined[n]] = 0
            keys[n] = -priority[ruined[n]] * (0.5 + random.random())
        keys[0] = -np.inf
        after = -np.inf
        if done:
            after = 0.0
            for i in range(first, last):
                for column in range(3):
                    choice[i, column] = best[i, column]
                if choice[i, 0] >= 0:
                    a = roomy(choice[i, 0], need, a_first, a_head, a_room)
                    if a >= 0 and a_price[q, a] < np.inf:
                        choice[i, 0] = a
            for m in ruined[np.argsort(keys[:count])]:
                f, end = object_first[m], object_first[m + 1]
                if m != o or not fits(f, end, rate[o], choice, a_room, b_room, c_room):
                    place(
                        m, object_first, group, value, klass, rate, c_first, c_tail, c_price, c_room,
                        b_first, b_tail, b_price, b_room, a_first, a_price, a_room, s, dual, choice,
                    )  # fmt: skip
                carry(f, end, rate[m], -1.0, choice, a_room, b_room, c_room)
                after += worth(f, end, rate[m], value, a_cost, b_cost, c_cost, choice)
        if after >= before:
            total += after - before
            continue
        undo(ruined[:count], object_first, rate, choice, kept, a_room, b_room, c_room)
    return total
