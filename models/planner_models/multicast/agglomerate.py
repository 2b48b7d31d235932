"""Channelization from below: port sets merge pair by pair, then move until no move pays."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from planner.errors import InputError
from planner_models.multicast.channels import Masks, Meta, Rates, bits, distinct

PASSES = 30  # of the local search, which stops by itself long before
NEIGHBOURS = 30  # meta-groups that are shared anew together
FAR = 1e300


def aggregate(masks: Masks, rates: Rates, *, table_size: int, rounds: int = 1) -> Meta:
    """The meta-group of each group: merge, reassign to supersets, move; then share neighbours anew.

    The cheapest pair of port sets merges until the table holds them; each set goes to the smallest
    union that covers it; single sets move where that saves traffic. In each further round every
    meta-group and its nearest, taken as a switch of their own, are shared anew, and keep what is better.
    Congestion is linear.

    raises  InputError for a table without entries
    """
    if table_size < 1:
        raise InputError(f"table size is {table_size}, must be at least 1")
    sets, weights, place = distinct(masks, rates)
    if len(sets) <= table_size:
        return place
    meta = improved(sets, weights, _merged(sets, weights, table_size))
    for nth in range(rounds):
        order = np.random.default_rng(nth).permutation(table_size)
        if not _shared_anew(sets, weights, meta, order, min(NEIGHBOURS, table_size)):
            break
    used = np.bincount(meta) > 0
    return np.asarray((np.cumsum(used) - 1)[meta[place]], dtype=np.int64)


def improved(sets: Masks, weights: Rates, unions: Masks) -> Meta:
    """The meta-group of each port set: the smallest union that covers it, then moves while they pay."""
    meta = _smallest(sets, unions)
    _moved(sets, weights, meta, len(unions))
    return meta


def traffic_mbps(sets: Masks, weights: Rates, meta: Meta) -> float:
    """All traffic of the ports, wanted or not."""
    return float(_traffic(sets, weights, meta, int(meta.max()) + 1))


@njit(cache=True, nogil=True)
def _traffic(sets: Masks, weights: Rates, meta: Meta, count: int) -> float:
    union, load = np.zeros(count, dtype=np.uint64), np.zeros(count)
    for i in range(len(sets)):
        union[meta[i]] |= sets[i]
        load[meta[i]] += weights[i]
    total = 0.0
    for m in range(count):
        total += load[m] * bits(union[m])
    return total


@njit(cache=True, nogil=True, fastmath={"nnan", "nsz", "reassoc", "contract"})
def _prices(sets: Masks, loads: Rates, count: int, mask: np.uint64, load: float, prices: Rates) -> None:
    for b in range(count):
        prices[b] = load * bits(sets[b] & ~mask) + loads[b] * bits(mask & ~sets[b])


@njit(cache=True, nogil=True, fastmath={"nnan", "nsz", "reassoc", "contract"})
def _least(values: Rates, count: int) -> float:
    least = FAR
    for i in range(count):
        least = min(least, values[i])
    return least


@njit(cache=True, nogil=True)
def _find(values: Rates, count: int, value: float) -> int:
    for i in range(count):
        if values[i] == value:
            return i
    return 0


@njit(cache=True, nogil=True)
def _merged(masks: Masks, weights: Rates, target: int) -> Masks:
    """The unions left after merging the cheapest pair over and over.

    The cheapest partner of each set is remembered. Where that partner is gone, the price is a lower
    limit still, for what is merged is looked at anew; so it is only found again when it comes first.
    """
    count = len(masks)
    sets, loads = masks.copy(), weights.copy()
    near, price = np.empty(count, dtype=np.int64), np.empty(count)
    stale = np.zeros(count, dtype=np.bool_)
    prices = np.empty(count)
    for a in range(count):
        _prices(sets, loads, count, sets[a], loads[a], prices)
        prices[a] = FAR
        price[a] = _least(prices, count)
        near[a] = _find(prices, count, price[a])
    while count > target:
        a = _find(price, count, _least(price, count))
        if not stale[a]:
            b = near[a]
            if a > b:
                a, b = b, a
            sets[a] |= sets[b]
            loads[a] += loads[b]
            count -= 1
            last = count
            for c in range(count + 1):
                stale[c] |= (near[c] == a) | (near[c] == b)
                near[c] = b if near[c] == last else near[c]
            sets[b], loads[b], stale[b] = sets[last], loads[last], stale[last]
            near[b], price[b] = near[last], price[last]
            _prices(sets, loads, count, sets[a], loads[a], prices)
            prices[a] = FAR
            for c in range(count):
                if prices[c] < price[c]:
                    price[c] = prices[c]
                    near[c] = a
                    stale[c] = False
        else:
            _prices(sets, loads, count, sets[a], loads[a], prices)
            prices[a] = FAR
        price[a] = _least(prices, count)
        near[a] = _find(prices, count, price[a])
        stale[a] = False
    return sets[:count].copy()


@njit(cache=True, nogil=True)
def _smallest(sets: Masks, unions: Masks) -> Meta:
    meta = np.zeros(len(sets), dtype=np.int64)
    sizes = np.empty(len(unions), dtype=np.int64)
    for m in range(len(unions)):
        sizes[m] = bits(unions[m])
    for i in range(len(sets)):
        least = 65
        for m in range(len(unions)):
            if (sets[i] & ~unions[m]) == 0 and sizes[m] < least:
                least = sizes[m]
                meta[i] = m
    return meta


@njit(cache=True, nogil=True, fastmath={"nnan", "nsz", "reassoc", "contract"})
def _joined(unions: Masks, loads: Rates, mask: np.uint64, weight: float, prices: Rates) -> None:
    for m in range(len(unions)):
        prices[m] = weight * bits(unions[m] | mask) + loads[m] * bits(mask & ~unions[m])


@njit(cache=True, nogil=True)
def _moved(sets: Masks, weights: Rates, meta: Meta, count: int) -> None:
    """Moves single sets to other meta-groups, in `meta`, while traffic falls."""
    union, load = np.zeros(count, dtype=np.uint64), np.zeros(count)
    wanting = np.zeros((count, 64), dtype=np.int32)  # sets of a meta-group that want a port
    for i in range(len(sets)):
        union[meta[i]] |= sets[i]
        load[meta[i]] += weights[i]
        _count(wanting, meta[i], sets[i], 1)
    prices = np.empty(count)
    for _ in range(PASSES):
        moves = 0
        for i in range(len(sets)):
            a, mask, weight = meta[i], sets[i], weights[i]
            rest = union[a]
            left = mask
            while left:
                low = left & (~left + np.uint64(1))
                if wanting[a, bits(low - np.uint64(1))] == 1:
                    rest &= ~low
                left &= left - np.uint64(1)
            saved = load[a] * bits(union[a]) - (load[a] - weight) * bits(rest)
            if saved <= weight * bits(mask) * (1 + 1e-12):
                continue  # it costs its own traffic anywhere
            _joined(union, load, mask, weight, prices)
            prices[a] = FAR
            cost = _least(prices, count)
            if cost < saved * (1 - 1e-9):
                b = _find(prices, count, cost)
                _count(wanting, a, mask, -1)
                _count(wanting, b, mask, 1)
                union[a] = rest
                load[a] = load[a] - weight if rest else 0.0
                union[b] |= mask
                load[b] += weight
                meta[i] = b
                moves += 1
        if moves == 0:
            break


@njit(cache=True, nogil=True)
def _count(wanting: NDArray[np.int32], meta: int, mask: np.uint64, by: int) -> None:
    while mask:
        low = mask & (~mask + np.uint64(1))
        wanting[meta, bits(low - np.uint64(1))] += by
        mask &= mask - np.uint64(1)


@njit(cache=True, nogil=True)
def _nearest(prices: Rates, near: Meta) -> None:
    """The places of the least prices, as many as `near` has room for."""
    most = np.partition(prices, len(near) - 1)[len(near) - 1]
    found = 0
    for m in range(len(prices)):
        if prices[m] < most:
            near[found] = m
            found += 1
    for m in range(len(prices)):
        if found == len(near):
            break
        if prices[m] == most:
            near[found] = m
            found += 1


@njit(cache=True, nogil=True)
def _shared_anew(sets: Masks, weights: Rates, meta: Meta, order: Meta, neighbours: int) -> int:
    """Shares each meta-group and its nearest anew, in `meta`, where that is better; how often it was."""
    count = len(order)
    union, load = np.zeros(count, dtype=np.uint64), np.zeros(count)
    first, after = np.full(count, -1, dtype=np.int64), np.full(len(sets), -1, dtype=np.int64)
    for i in range(len(sets)):
        m = meta[i]
        union[m] |= sets[i]
        load[m] += weights[i]
        after[i], first[m] = first[m], i
    prices, near = np.empty(count), np.empty(neighbours, dtype=np.int64)
    rows = np.empty(len(sets), dtype=np.int64)
    better = 0
    for m in order:
        _prices(union, load, count, union[m], load[m], prices)
        prices[m] = -1.0
        _nearest(prices, near)
        before, inside = 0.0, 0
        for n in near:
            before += load[n] * bits(union[n])
            i = first[n]
            while i >= 0:
                rows[inside] = i
                inside += 1
                i = after[i]
        if inside <= neighbours:
            continue
        mine, traffic = sets[rows[:inside]], weights[rows[:inside]]
        unions = _merged(mine, traffic, neighbours)
        found = _smallest(mine, unions)
        _moved(mine, traffic, found, len(unions))
        if _traffic(mine, traffic, found, len(unions)) >= before * (1 - 1e-9):
            continue
        better += 1
        for n in near:
            union[n], load[n], first[n] = np.uint64(0), 0.0, -1
        for j in range(inside):
            i, to = rows[j], near[found[j]]
            meta[i] = to
            union[to] |= mine[j]
            load[to] += traffic[j]
            after[i], first[to] = first[to], i
    return better
