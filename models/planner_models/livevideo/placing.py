"""One tree at a time: what it is worth, the best one that fits, and taking it away and back."""

from __future__ import annotations

from typing import Any, Final

import numba as nb
import numpy as np
from numpy.typing import NDArray

from planner_models.livevideo.pricing import carry, solve_one
from planner_models.livevideo.star import gather

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

STEPS: Final[Any] = np.int64(6)
LIMIT: Final[Any] = np.int64(1)
"""Effort for a tree that is placed; typed, since for plain numbers all is compiled anew."""


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
    solve_one(last - first, edges, reflectors, s, choice[first:last], s.place_dual, STEPS, LIMIT)


@nb.njit(cache=True, nogil=True)
def lift(
    o: int, object_first: Ints, rate: Floats, choice: Ints, kept: Ints, rows: int,
    a_room: Floats, b_room: Floats, c_room: Floats,
) -> int:  # fmt: skip
    """Take the tree of an object away and write it down in kept from row `rows` on; the next free row."""
    first, last = object_first[o], object_first[o + 1]
    carry(first, last, rate[o], 1.0, choice, a_room, b_room, c_room)
    for i in range(first, last):
        for column in range(3):
            kept[rows, column] = choice[i, column]
            choice[i, column] = -1
        rows += 1
    return rows


@nb.njit(cache=True, nogil=True)
def undo(
    objects: Ints, object_first: Ints, rate: Floats, choice: Ints, kept: Ints,
    a_room: Floats, b_room: Floats, c_room: Floats,
) -> None:  # fmt: skip
    """Give objects, all with their trees in place, the trees in kept again."""
    for o in objects:
        carry(object_first[o], object_first[o + 1], rate[o], 1.0, choice, a_room, b_room, c_room)
    rows = 0
    for o in objects:
        first, last = object_first[o], object_first[o + 1]
        for i in range(first, last):
            for column in range(3):
                choice[i, column] = kept[rows, column]
            rows += 1
        carry(first, last, rate[o], -1.0, choice, a_room, b_room, c_room)
