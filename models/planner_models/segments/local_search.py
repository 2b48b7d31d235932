"""Local search over segment lists, one for each demand, compiled.

Descends on the sum over links of exp(sharpness * utilization): demands in random order take the cheapest list
under its derivatives, where the sum itself falls. `relieve` then moves demands off the busiest links, to the
list through any first intermediate node that lowers their utilization most.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from planner.arrays import Floats, Ints, Ints32
from planner.compiled import inner, njit, run_small_in_python
from planner_models.segments import segment_paths


class Search(NamedTuple):
    """Arrays: source, target, rate (K,), capacity (E,), lists (K, k - 1), load (E,), moved (1,).

    The last three change in place; `moved` is the number of demands off their shortest paths.
    """

    source: Ints
    target: Ints
    rate: Floats
    capacity: Floats
    lists: Ints32
    load: Floats
    moved: Ints
    most_moved: int


@njit(cache=True)
def is_plain(row, v):  # type: ignore[no-untyped-def]
    """Return whether a list is its target alone."""
    for m in row:  # noqa: SIM110 - compiled
        if m != v:
            return False
    return True


@njit(cache=True)
def _change(legs, search, k, row, change, touched):  # type: ignore[no-untyped-def]
    """Write the change of load by a new list of demand k; return the number of links in `touched`."""
    size = 0
    for side in range(2):
        u, v = search.source[k], search.target[k]
        amount = -search.rate[k] if side == 0 else search.rate[k]
        for index in range(len(row) + 1):
            m = v
            if index < len(row):
                m = search.lists[k, index] if side == 0 else row[index]
            if m != u:
                size = _change_leg(legs, u * len(legs.exists) + m, amount, change, touched, size)
            u = m
    return size


@inner
def _change_leg(
    legs: segment_paths.Legs, leg: int, amount: float, change: Floats, touched: Ints, size: int
) -> int:
    """Add `amount` on a leg to the change of load; return the number of links in `touched`."""
    for i in range(legs.start[leg], legs.start[leg + 1]):
        e = legs.link[i]
        if change[e] == 0.0:
            touched[size] = e
            size += 1
        change[e] += amount * legs.share[i]
        if change[e] == 0.0:
            change[e] = 1e-300  # a link that has been touched
    return size


@njit(cache=True)
def _accept(search, k, row, change, touched, size):  # type: ignore[no-untyped-def]
    for i in range(size):
        search.load[touched[i]] = max(search.load[touched[i]] + change[touched[i]], 0.0)
    search.moved[0] += int(is_plain(search.lists[k], search.target[k])) - int(is_plain(row, search.target[k]))
    search.lists[k, :] = row


@run_small_in_python(max_elements=20_000)
@njit(cache=True)
def descend(legs, search, sharpness, order, first):  # type: ignore[no-untyped-def]  # noqa: C901 - one compiled loop
    """Try the cheapest list, and the shortest path, of the demands in `order`; return the number of moves."""
    links = len(search.capacity)
    change, touched = np.zeros(links), np.empty(links, dtype=np.int64)
    row = np.empty(search.lists.shape[1], dtype=np.int32)
    term = np.empty(links)
    top = (search.load / search.capacity).max()
    for e in range(links):
        term[e] = math.exp(sharpness * (search.load[e] / search.capacity[e] - top))
    moves = 0
    for k in order:
        for plain in range(2):
            if plain:
                row[:] = search.target[k]
            else:
                segment_paths.follow(first, search.source[k], search.target[k], row)
            if (row == search.lists[k]).all():
                continue
            if search.moved[0] >= search.most_moved and is_plain(search.lists[k], search.target[k]):
                continue
            size = _change(legs, search, k, row, change, touched)
            gain = 0.0
            for i in range(size):
                e = touched[i]
                gain += term[e] * (math.exp(min(sharpness * change[e] / search.capacity[e], 300.0)) - 1.0)
            if gain < -1e-12:
                _accept(search, k, row, change, touched, size)
                for i in range(size):
                    e = touched[i]
                    term[e] = math.exp(min(sharpness * (search.load[e] / search.capacity[e] - top), 300.0))
                moves += 1
            for i in range(size):
                change[touched[i]] = 0.0
    return moves


@njit(cache=True)
def _share_on(legs, search, k, link):  # type: ignore[no-untyped-def]
    """Return the share of demand k on a link."""
    count = len(legs.exists)
    u, total = search.source[k], 0.0
    for index in range(search.lists.shape[1] + 1):
        m = search.lists[k, index] if index < search.lists.shape[1] else search.target[k]
        if m != u:
            for i in range(legs.start[u * count + m], legs.start[u * count + m + 1]):
                if legs.link[i] == link:
                    total += legs.share[i]
        u = m
    return total


@run_small_in_python(max_elements=20_000)
@njit(cache=True)
def relieve(legs, search, first, tries):  # type: ignore[no-untyped-def]  # noqa: C901 - one compiled loop
    """Move demands off the busiest link until no move lowers it; return the number of moves.

    A move goes to the list through one intermediate node and the cheapest one on; the one that leaves the
    smallest utilization on the links that it changes is taken.
    """
    links, width = len(search.capacity), search.lists.shape[1]
    change, touched = np.zeros(links), np.empty(links, dtype=np.int64)
    row, best_row = np.empty(width, dtype=np.int32), np.empty(width, dtype=np.int32)
    following = first[: len(first) - 1]
    moves = 0
    while moves < tries:
        utilization = search.load / search.capacity
        top = utilization.max()
        busiest = int(np.argmax(utilization))
        best, best_k = top * (1 - 1e-9), -1
        for k in range(len(search.source)):
            if _share_on(legs, search, k, busiest) == 0.0:
                continue
            if search.moved[0] >= search.most_moved and is_plain(search.lists[k], search.target[k]):
                continue
            u, v = search.source[k], search.target[k]
            for index in range(len(legs.middle) + 1 if width else 0):
                m = legs.middle[index] if index < len(legs.middle) else v
                if m != v and (m == u or not legs.exists[u, m] or not legs.exists[m, v]):
                    continue
                if m == v and index < len(legs.middle):
                    continue
                row[:] = v
                row[0] = m
                if m != v and width > 1:
                    segment_paths.follow(following, m, v, row[1:])
                size = _change(legs, search, k, row, change, touched)
                largest = _largest_after(search, busiest, change, touched[:size])
                if largest < best:
                    best, best_k = largest, k
                    best_row[:] = row
        if best_k < 0:
            return moves
        size = _change(legs, search, best_k, best_row, change, touched)
        _accept(search, best_k, best_row, change, touched, size)
        for i in range(size):
            change[touched[i]] = 0.0
        moves += 1
    return moves


@inner
def _largest_after(search: Search, busiest: int, change: Floats, touched: Ints) -> float:
    """Return the largest utilization of links with more load and of the busiest after a change; clears it."""
    largest = 0.0
    for e in touched:
        if change[e] > 1e-200 or e == busiest:
            largest = max(largest, (search.load[e] + change[e]) / search.capacity[e])
    for e in touched:
        change[e] = 0.0
    return largest


@run_small_in_python(max_elements=20_000)
@njit(cache=True)
def shorten(legs, search, order, utilization):  # type: ignore[no-untyped-def]
    """Put the demands in `order` on their shortest paths where all links stay within a utilization."""
    links = len(search.capacity)
    change, touched = np.zeros(links), np.empty(links, dtype=np.int64)
    row = np.empty(search.lists.shape[1], dtype=np.int32)
    for k in order:
        if is_plain(search.lists[k], search.target[k]):
            continue
        row[:] = search.target[k]
        size = _change(legs, search, k, row, change, touched)
        fits = True
        for i in range(size):
            e = touched[i]
            fits &= change[e] <= 1e-200 or search.load[e] + change[e] <= utilization * search.capacity[e]
        if fits:
            _accept(search, k, row, change, touched, size)
        for i in range(size):
            change[touched[i]] = 0.0


@run_small_in_python(max_elements=20_000)
@njit(cache=True)
def uses_any(legs, search, links):  # type: ignore[no-untyped-def]
    """Return whether each demand has traffic on any of the links (E,), shape (K,)."""
    uses = np.zeros(len(search.source), dtype=np.bool_)
    count = len(legs.exists)
    for k in range(len(search.source)):
        u = search.source[k]
        for index in range(search.lists.shape[1] + 1):
            m = search.lists[k, index] if index < search.lists.shape[1] else search.target[k]
            if m != u:
                leg = legs.link[legs.start[u * count + m] : legs.start[u * count + m + 1]]
                for e in leg:
                    uses[k] |= links[e]
            u = m
    return uses
