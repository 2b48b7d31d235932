"""Channelization from below: port sets merge pair by pair, then a search moves them while that pays.

The search anneals: a port set leaves its meta-group for the cheapest of a few that hold sets like it, or
for an entry of its own, also where that costs a little more, and less and less so. What an entry is
worth steers how many are in use; what is too many at the end merges.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numba import njit
from numpy.typing import NDArray

from planner.errors import InputError
from planner_models.multicast.channels import Masks, Meta, Rates, bits, distinct
from planner_models.multicast.workloads import next_draw

PASSES: Final = 30  # of moves, which end long before:
SETTLED: Final = 200  # where fewer than one set in so many moves
ALIKE: Final = 32  # port sets that are known as like each one
LIKE_ENTRIES: Final = 1.4  # times the median traffic of a set: what a group of sets carries at least, about
EXACTLY: Final = 1.25  # times the table: so many unions at most, or FEW, are left to the exact greedy
FEW: Final = 600
SAMPLE: Final = 100  # meta-groups that are asked what a merge costs
VISITS: Final = 120  # of each port set in a round of the search, at least
MOST_VISITS: Final = 400  # and at most, where that is below LONG in all
LONG: Final = 150_000
TRIED: Final = 8  # meta-groups at a visit
SPARE: Final = 0.1  # entries above the table that the search may take, as a share of it
BEGIN, END = 0.085, 0.02  # what a move may cost in the search, as a share of what an entry is worth
STEER: Final = 0.005  # how fast an entry is worth more where too many are in use
ROW: Final = 64
FAR: Final = 1e300


def aggregate(masks: Masks, rates: Rates, *, table_size: int, rounds: int = 1) -> Meta:
    """The meta-group of each group: merge, reassign to supersets, move; then search for better ones.

    The cheapest pair of port sets merges until the table holds them (of many sets first the cheapest of
    pairs that are alike); each set goes to the smallest union that covers it; single sets move where that
    saves traffic. Round n then searches n times as long as the first, and keeps what is better. The same
    input has the same answer. Congestion is linear.

    raises  InputError for a table without entries
    """
    if table_size < 1:
        raise InputError(f"table size is {table_size}, must be at least 1")
    sets, weights, place = distinct(masks, rates)
    if len(sets) <= table_size:
        return place
    few = max(int(EXACTLY * table_size), FEW)
    near = np.zeros((0, 0), dtype=np.int32)
    if rounds > 0 or len(sets) > few:
        near = _alike(sets, weights, LIKE_ENTRIES * float(np.median(weights)), min(ALIKE, len(sets) - 1))
    unions, loads = sets, weights
    if len(sets) > few:
        unions, loads = _merged_alike(sets, weights, near, few)
    merged = _merged(unions, loads, table_size)
    # moves alone take as long as half a search of many sets, which finds what they find
    searched = rounds > 0 and len(sets) > few
    meta = _smallest(sets, merged) if searched else improved(sets, weights, merged)
    traffic = traffic_mbps(sets, weights, meta)
    for nth in range(rounds):
        found = _searched(sets, weights, meta, near, table_size, nth + 1)
        reached = traffic_mbps(sets, weights, found)
        if reached < traffic:
            meta, traffic = found, reached
    used = np.bincount(meta) > 0
    return np.asarray((np.cumsum(used) - 1)[meta[place]], dtype=np.int64)


def _searched(
    sets: Masks, weights: Rates, meta: Meta, near: NDArray[np.int32], table_size: int, nth: int
) -> Meta:
    """Another plan from that of `meta`, found by annealing `nth` times as long as in the first round."""
    worth = _worth(sets, weights, meta, table_size)
    if worth <= 0:
        return meta
    found, slots = meta.copy(), table_size + max(2, int(SPARE * table_size))
    visits = nth * max(VISITS * len(sets), min(MOST_VISITS * len(sets), LONG))
    _annealed(sets, weights, found, near, table_size, slots, visits, worth, nth)
    found = np.unique(found, return_inverse=True)[1].astype(np.int64)
    unions, loads = _groups(sets, weights, found, max(int(found.max()) + 1, table_size))
    if len(unions) > table_size:
        unions = _merged(unions, loads, table_size)
    return improved(sets, weights, unions)


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
def _least_joined(unions: Masks, loads: Rates, mask: np.uint64, weight: float) -> float:
    """The least that a set adds where it joins a meta-group."""
    least = FAR
    for m in range(len(unions)):
        least = min(least, weight * bits(unions[m] | mask) + loads[m] * bits(mask & ~unions[m]))
    return least


@njit(cache=True, nogil=True)
def _cheapest(unions: Masks, loads: Rates, mask: np.uint64, weight: float, but: int, cost: float) -> int:
    """The first meta-group, other than `but`, that a set joins at about that cost."""
    for m in range(len(unions)):
        price = weight * bits(unions[m] | mask) + loads[m] * bits(mask & ~unions[m])
        if m != but and price <= cost * (1 + 1e-12):
            return m
    return but


@njit(cache=True, nogil=True)
def _moved(sets: Masks, weights: Rates, meta: Meta, count: int) -> None:
    """Moves single sets to other meta-groups, in `meta`, while enough of them pay."""
    union, load = np.zeros(count, dtype=np.uint64), np.zeros(count)
    wanting = np.zeros((count, 64), dtype=np.int32)  # sets of a meta-group that want a port
    for i in range(len(sets)):
        union[meta[i]] |= sets[i]
        load[meta[i]] += weights[i]
        _count(wanting, meta[i], sets[i], 1)
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
            mine, carried = union[a], load[a]
            union[a], load[a] = np.uint64(0), FAR  # not where it is
            cost = _least_joined(union, load, mask, weight)
            union[a], load[a] = mine, carried
            if cost < saved * (1 - 1e-9):
                b = _cheapest(union, load, mask, weight, a, cost)
                _count(wanting, a, mask, -1)
                _count(wanting, b, mask, 1)
                union[a] = rest
                load[a] = load[a] - weight if rest else 0.0
                union[b] |= mask
                load[b] += weight
                meta[i] = b
                moves += 1
        if moves * SETTLED <= len(sets):
            break


@njit(cache=True, nogil=True)
def _count(wanting: NDArray[np.int32], meta: int, mask: np.uint64, by: int) -> None:
    while mask:
        low = mask & (~mask + np.uint64(1))
        wanting[meta, bits(low - np.uint64(1))] += by
        mask &= mask - np.uint64(1)


@njit(cache=True, nogil=True)
def _groups(sets: Masks, weights: Rates, meta: Meta, count: int) -> tuple[Masks, Rates]:
    """Union and traffic of each meta-group, 0 of those without sets."""
    union, load = np.zeros(count, dtype=np.uint64), np.zeros(count)
    for i in range(len(sets)):
        union[meta[i]] |= sets[i]
        load[meta[i]] += weights[i]
    return union, load


@njit(cache=True, nogil=True)
def _worth(sets: Masks, weights: Rates, meta: Meta, count: int) -> float:
    """What one meta-group fewer costs: of some, what merging each with its best partner does; a low one.

    0 of fewer than two.
    """
    union, load = _groups(sets, weights, meta, count)
    union, load = union[union != 0], load[union != 0]
    count = len(union)
    if count < 2:
        return 0.0
    step = max(1, count // SAMPLE)
    prices, merges = np.empty(count), np.empty((count + step - 1) // step)
    for k in range(len(merges)):
        m = k * step
        _prices(union, load, count, union[m], load[m], prices)
        prices[m] = FAR
        merges[k] = _least(prices, count)
    rank = len(merges) // 10
    return float(np.partition(merges, rank)[rank])


# --- port sets that are alike ---------------------------------------------------------------


@njit(cache=True, nogil=True, fastmath={"nnan", "nsz", "reassoc", "contract"})
def _differences(sets: Masks, heavy: Rates, mask: np.uint64, weight: float, prices: Rates) -> None:
    for j in range(len(sets)):
        prices[j] = weight * bits(sets[j] & ~mask) + heavy[j] * bits(mask & ~sets[j])


@njit(cache=True, nogil=True)
def _alike(sets: Masks, weights: Rates, entry: float, count: int) -> NDArray[np.int32]:
    """(sets, count) those that each could best share an entry of about that traffic with, in any order."""
    n = len(sets)
    heaps = min(n - 1, 8 * count)  # each holds every `heaps`-th set
    heavy, prices, least = np.maximum(weights, entry), np.empty(n), np.empty(heaps)
    near = np.empty((n, count), dtype=np.int32)
    for i in range(n):
        _differences(sets, heavy, sets[i], weights[i], prices)
        prices[i] = FAR
        near[i] = i  # where there are too few
        _least_of_each(prices, least)
        most = _rank(least, count)  # so many heaps, and so sets, are as good at least
        found, k = 0, i % heaps  # from anywhere, so that no sets are first everywhere
        for _ in range(heaps):
            if least[k] <= most:
                for j in range(k, n, heaps):
                    if prices[j] <= most and found < count:
                        near[i, found] = j
                        found += 1
            k = k + 1 if k + 1 < heaps else 0
    return near


@njit(cache=True, nogil=True)
def _rank(values: Rates, count: int) -> float:
    """A value that at least `count` are no greater than, and few more."""
    low, high = _least(values, len(values)), 0.0
    for value in values:
        high = max(high, value) if value < FAR else high
    for _ in range(10):
        middle = (low + high) / 2
        if np.sum(values <= middle) >= count:
            high = middle
        else:
            low = middle
    return high


@njit(cache=True, nogil=True, fastmath={"nnan", "nsz", "reassoc", "contract"})
def _least_of_each(prices: Rates, least: Rates) -> None:
    heaps = len(least)
    least[:] = FAR
    for begin in range(0, len(prices), heaps):
        for k in range(min(heaps, len(prices) - begin)):
            least[k] = min(least[k], prices[begin + k])


@njit(cache=True, nogil=True)
def _merged_alike(sets: Masks, weights: Rates, near: NDArray[np.int32], target: int) -> tuple[Masks, Rates]:
    """Unions and their traffic after merging the cheapest pairs that hold sets alike, down to `target`.

    More are left where no pair holds sets alike.
    """
    n = len(sets)
    union, load, meta = sets.copy(), weights.copy(), np.arange(n)
    after, last, size = np.full(n, -1), np.arange(n), np.ones(n, dtype=np.int64)  # members, as a chain
    price, partner = np.full(n, FAR), np.zeros(n, dtype=np.int64)
    changed = np.zeros(n, dtype=np.int64)  # how often
    known = np.zeros(n, dtype=np.int64)  # how often the partner had, when its price was found
    rows = (n + ROW - 1) // ROW
    cheapest = np.full(rows, FAR)  # of each ROW of prices
    for a in range(n):
        price[a], partner[a] = _partner(a, a, after, near, meta, union, load)
        cheapest[a // ROW] = min(cheapest[a // ROW], price[a])
    left = n
    while left > target:
        least = _least(cheapest, rows)
        if least >= FAR:
            break
        begin = _find(cheapest, rows, least) * ROW
        a = begin + _find(price[begin:], min(ROW, n - begin), least)
        b = partner[a]
        if changed[b] == known[a]:
            if size[a] < size[b]:
                a, b = b, a
            i = b
            while i >= 0:
                meta[i] = a
                i = after[i]
            after[last[a]], last[a] = b, last[b]
            size[a] += size[b]
            union[a] |= union[b]
            load[a] += load[b]
            price[b], load[b] = FAR, -1.0
            _row(price, cheapest, b)
            changed[a] += 1
            changed[b] += 1
            left -= 1
        price[a], partner[a] = _partner(a, a, after, near, meta, union, load)
        known[a] = changed[partner[a]]
        _row(price, cheapest, a)
    alive = load >= 0
    return union[alive], load[alive]


@njit(cache=True, nogil=True)
def _row(price: Rates, cheapest: Rates, changed: int) -> None:
    row = changed // ROW
    begin = row * ROW
    cheapest[row] = _least(price[begin:], min(ROW, len(price) - begin))


@njit(cache=True, nogil=True)
def _partner(
    a: int, first: int, after: Meta, near: NDArray[np.int32], meta: Meta, union: Masks, load: Rates
) -> tuple[float, int]:
    """The cheapest group to merge with among those of sets alike, with its price."""
    least, best, i = FAR, 0, first
    while i >= 0:
        for r in range(near.shape[1]):
            b = meta[near[i, r]]
            price = load[a] * bits(union[b] & ~union[a]) + load[b] * bits(union[a] & ~union[b])
            if b != a and price < least:
                least, best = price, b
        i = after[i]
    return least, best


# --- the search -----------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def _counted(counts: NDArray[np.uint64], mask: np.uint64, more: bool) -> tuple[np.uint64, np.uint64]:
    """Counts a set in or out of a meta-group: its ports, and those that one set alone wants.

    counts  how many sets want each port, a binary digit of all ports in each element
    """
    carry = mask
    for digit in range(len(counts)):
        before = counts[digit]
        counts[digit] = before ^ carry
        carry &= before if more else ~before
        if carry == 0:
            break
    several = np.uint64(0)
    for digit in range(1, len(counts)):
        several |= counts[digit]
    return counts[0] | several, counts[0] & ~several


@njit(cache=True, nogil=True)
def _annealed(  # noqa: C901 - one compiled loop
    sets: Masks,
    weights: Rates,
    meta: Meta,
    near: NDArray[np.int32],
    table: int,
    slots: int,
    visits: int,
    worth: float,
    seed: int,
) -> None:
    """Moves sets, in `meta`, by simulated annealing, with about `table` of `slots` meta-groups in use.

    worth  traffic that one meta-group fewer may cost; follows how many are in use
    """
    n, like = near.shape
    digits = 1
    while (1 << digits) <= n:
        digits += 1
    counts = np.zeros((slots, digits), dtype=np.uint64)
    union, alone = np.zeros(slots, dtype=np.uint64), np.zeros(slots, dtype=np.uint64)
    load, members = np.zeros(slots), np.zeros(slots, dtype=np.int64)
    for one in range(n):
        m = meta[one]
        union[m], alone[m] = _counted(counts[m], sets[one], True)
        load[m] += weights[one]
        members[m] += 1
    unused, free = np.empty(slots, dtype=np.int64), 0
    for m in range(slots):
        if members[m] == 0:
            unused[free] = m
            free += 1
    heat, state = BEGIN * worth, np.uint64(seed)
    cooled = (END / BEGIN) ** (64.0 / max(visits, 64))
    for visit in range(visits):
        if visit % 64 == 63:
            heat *= cooled
            worth *= 1.0 + STEER * (slots - free - table) / table
        state, drawn = next_draw(state)
        i = np.int64(((drawn >> np.uint64(32)) * np.uint64(n)) >> np.uint64(32))
        r = np.int64(((drawn & np.uint64(0xFFFFFFFF)) * np.uint64(like)) >> np.uint64(32))
        a, mask, weight = int(meta[i]), sets[i], weights[i]
        rest = union[a] & ~(mask & alone[a])
        saved = load[a] * bits(union[a]) - (load[a] - weight) * bits(rest)
        if members[a] == 1:
            saved += worth
        b, least = -1, FAR
        for k in range(r, r + min(TRIED, like)):
            m = int(meta[near[i, k if k < like else k - like]])
            size = bits(union[m] | mask)
            cost = weight * size + load[m] * (size - bits(union[m]))
            if m != a and cost < least:
                b, least = m, cost
        if free > 0 and members[a] > 1:
            cost = weight * bits(mask) + worth
            if cost < least:
                b, least = int(unused[free - 1]), cost
        if b < 0:
            continue
        if least >= saved:
            state, drawn = next_draw(state)
            if least >= saved - heat * np.log(((drawn >> np.uint64(11)) + 1.0) / 9007199254740993.0):
                continue
        union[a], alone[a] = _counted(counts[a], mask, False)
        load[a] = load[a] - weight if members[a] > 1 else 0.0
        members[a] -= 1
        if members[b] == 0:
            free -= 1
        if members[a] == 0:
            unused[free] = a
            free += 1
        union[b], alone[b] = _counted(counts[b], mask, True)
        load[b] += weight
        members[b] += 1
        meta[i] = b
