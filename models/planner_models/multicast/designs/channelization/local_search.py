"""Local search of channelization: single port sets move while that saves traffic; simulated annealing."""

from __future__ import annotations

from typing import Final

import numpy as np
from numba import njit
from numpy.typing import NDArray

from planner.arrays import Floats, Ints
from planner_models.multicast.designs.channelization.pair_merging import (
    INFINITE_COST,
    merge_costs,
    merge_pairs,
    minimum,
)
from planner_models.multicast.plan.meta_groups import Masks, count_bits
from planner_models.multicast.problem.workloads import next_random

SAMPLED_META_GROUPS: Final = 100  # for the price of an entry
MIN_VISITS_PER_SET: Final = 72  # of each port set in a round of the search
MAX_VISITS_PER_SET: Final = 400  # where these are below MAX_VISITS in all
MAX_VISITS: Final = 66_000
CANDIDATES_PER_VISIT: Final = 6  # meta-groups
EXTRA_SLOT_SHARE: Final = 0.1  # entries above the table that the search may use, as a share of it
INITIAL_TEMPERATURE: Final = 0.06  # as a share of the price of an entry
FINAL_TEMPERATURE: Final = 0.02
ENTRY_PRICE_STEP: Final = 0.02  # relative growth of the price where too many entries are in use


def search_assignment(
    sets: Masks, weights: Floats, meta: Ints, near: NDArray[np.int32], table_size: int, nth: int
) -> Ints:
    """Return another assignment, by annealing `nth` times as long as in the first round."""
    merges = _sample_merge_costs(sets, weights, meta, table_size)
    rank = len(merges) // 10  # a low estimate; outside of compiled code, as a partition takes long to compile
    if not len(merges) or (entry_price := float(np.partition(merges, rank)[rank])) <= 0:
        return meta
    found, slots = meta.copy(), table_size + max(2, int(EXTRA_SLOT_SHARE * table_size))
    visits = nth * max(MIN_VISITS_PER_SET * len(sets), min(MAX_VISITS_PER_SET * len(sets), MAX_VISITS))
    _anneal(sets, weights, found, near, table_size, slots, visits, entry_price, nth)
    found = np.unique(found, return_inverse=True)[1].astype(np.int64)
    unions, loads = _union_loads(sets, weights, found, max(int(found.max()) + 1, table_size))
    if len(unions) > table_size:
        merged = merge_pairs(unions, loads, table_size)
        found = assign_smallest_union(unions, merged)[found]
    passes = MAX_JOINS_AFTER_ANNEALING // (len(sets) * table_size)
    move_sets(sets, weights, found, table_size, min(max(passes, 1), MAX_PASSES_AFTER_ANNEALING))
    return found


@njit(cache=True, nogil=True)
def _union_loads(sets: Masks, weights: Floats, meta: Ints, count: int) -> tuple[Masks, Floats]:
    """Return union and traffic of each meta-group; 0 of those without sets."""
    union, load = np.zeros(count, dtype=np.uint64), np.zeros(count)
    for i in range(len(sets)):
        union[meta[i]] |= sets[i]
        load[meta[i]] += weights[i]
    return union, load


@njit(cache=True, nogil=True)
def _sample_merge_costs(sets: Masks, weights: Floats, meta: Ints, count: int) -> Floats:
    """Return the extra traffic of merging each of a sample of meta-groups with its cheapest partner."""
    union, load = _union_loads(sets, weights, meta, count)
    union, load = union[union != 0], load[union != 0]
    count = len(union)
    if count < 2:
        return np.empty(0)
    step = max(1, count // SAMPLED_META_GROUPS)
    prices, merges = np.empty(count), np.empty((count + step - 1) // step)
    for k in range(len(merges)):
        m = k * step
        merge_costs(union, load, count, union[m], load[m], prices)
        prices[m] = INFINITE_COST
        merges[k] = minimum(prices, count)
    return merges


@njit(cache=True, nogil=True)
def _count_set(counts: NDArray[np.uint64], mask: np.uint64, more: bool) -> tuple[np.uint64, np.uint64]:
    """Count a set in or out of a meta-group; return its ports, and ports that a single set wants.

    counts  number of sets that want each port: a binary digit of all ports in each element
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
def _anneal(  # noqa: C901 - one compiled loop
    sets: Masks,
    weights: Floats,
    meta: Ints,
    near: NDArray[np.int32],
    table: int,
    slots: int,
    visits: int,
    entry_price: float,
    seed: int,
) -> None:
    """Move sets, in `meta`, by simulated annealing, with about `table` of `slots` meta-groups in use.

    entry_price  traffic that one meta-group fewer may cost; adapts to the number in use
    """
    n, like = near.shape
    digits = 1
    while (1 << digits) <= n:
        digits += 1
    counts = np.zeros((slots, digits), dtype=np.uint64)
    union, single = np.zeros(slots, dtype=np.uint64), np.zeros(slots, dtype=np.uint64)
    load, members = np.zeros(slots), np.zeros(slots, dtype=np.int64)
    for one in range(n):
        m = meta[one]
        union[m], single[m] = _count_set(counts[m], sets[one], True)
        load[m] += weights[one]
        members[m] += 1
    unused, free = np.empty(slots, dtype=np.int64), 0
    for m in range(slots):
        if members[m] == 0:
            unused[free] = m
            free += 1
    exponential = -np.log((np.arange(4096) + 0.5) / 4096)  # quantiles
    # unsigned, as each access by a signed index tests whether that is negative
    place, alike = meta.astype(np.uint64), near.astype(np.uint64)
    wide, few = np.uint64(like), np.uint64(min(CANDIDATES_PER_VISIT, like))
    temperature, state = INITIAL_TEMPERATURE * entry_price, np.uint64(seed)
    cooling_rate = (FINAL_TEMPERATURE / INITIAL_TEMPERATURE) ** (64.0 / max(visits, 64))
    for visit in range(visits):
        if visit % 64 == 63:
            temperature *= cooling_rate
            entry_price *= 1.0 + ENTRY_PRICE_STEP * (slots - free - table) / table
        state, drawn = next_random(state)
        i = ((drawn >> np.uint64(32)) * np.uint64(n)) >> np.uint64(32)
        r = ((drawn & np.uint64(0xFFFFFFFF)) * wide) >> np.uint64(32)
        a, mask, weight = place[i], sets[i], weights[i]
        rest = union[a] & ~(mask & single[a])
        saved = load[a] * count_bits(union[a]) - (load[a] - weight) * count_bits(rest)
        if members[a] == 1:
            saved += entry_price
        state, drawn = next_random(state)
        least = saved + temperature * exponential[drawn >> np.uint64(52)]  # accepted below that
        if weight * count_bits(mask) >= least:
            continue  # it costs its own traffic anywhere
        b = np.int64(-1)
        for k in range(r, r + few):
            m = place[alike[i, k if k < wide else k - wide]]
            cost = weight * count_bits(union[m] | mask) + load[m] * count_bits(mask & ~union[m])
            if m != a and cost < least:
                b, least = np.int64(m), cost
        if free > 0 and members[a] > 1:
            cost = weight * count_bits(mask) + entry_price
            if cost < least:
                b, least = np.int64(unused[free - 1]), cost
        if b < 0:
            continue
        union[a], single[a] = _count_set(counts[a], mask, False)
        load[a] = load[a] - weight if members[a] > 1 else 0.0
        members[a] -= 1
        if members[b] == 0:
            free -= 1
        if members[a] == 0:
            unused[free] = a
            free += 1
        union[b], single[b] = _count_set(counts[b], mask, True)
        load[b] += weight
        members[b] += 1
        place[i] = b
    meta[:] = place


MAX_PASSES: Final = 30
MAX_PASSES_AFTER_ANNEALING: Final = 3
MAX_JOINS_AFTER_ANNEALING: Final = 3_000_000  # of a set and a meta-group, for more than one pass
STALL_DIVISOR: Final = 200  # stop where fewer than one set in so many moves


def reassign_sets(sets: Masks, weights: Floats, unions: Masks) -> Ints:
    """Return the meta-group of each port set: its smallest covering union, then moves while they pay."""
    meta = assign_smallest_union(sets, unions)
    move_sets(sets, weights, meta, len(unions), MAX_PASSES)
    return meta


def total_mbps(sets: Masks, weights: Floats, meta: Ints) -> float:
    """Return the traffic of all ports, wanted or not."""
    return float(_sum_traffic(sets, weights, meta, int(meta.max()) + 1))


@njit(cache=True, nogil=True)
def _sum_traffic(sets: Masks, weights: Floats, meta: Ints, count: int) -> float:
    """Return the traffic of all meta-groups at their ports."""
    union, load = np.zeros(count, dtype=np.uint64), np.zeros(count)
    for i in range(len(sets)):
        union[meta[i]] |= sets[i]
        load[meta[i]] += weights[i]
    total = 0.0
    for m in range(count):
        total += load[m] * count_bits(union[m])
    return total


@njit(cache=True, nogil=True)
def assign_smallest_union(sets: Masks, unions: Masks) -> Ints:
    """Return the smallest union that covers each port set."""
    meta = np.zeros(len(sets), dtype=np.int64)
    sizes = np.empty(len(unions), dtype=np.int64)
    for m in range(len(unions)):
        sizes[m] = count_bits(unions[m])
    for i in range(len(sets)):
        least = 65
        for m in range(len(unions)):
            if (sets[i] & ~unions[m]) == 0 and sizes[m] < least:
                least = sizes[m]
                meta[i] = m
    return meta


@njit(cache=True, nogil=True, fastmath={"nnan", "nsz", "reassoc", "contract"})
def _cheapest_join_cost(unions: Masks, loads: Floats, mask: np.uint64, weight: float) -> float:
    """Return the least cost of a set in any meta-group."""
    least = INFINITE_COST
    for m in range(len(unions)):
        least = min(least, weight * count_bits(unions[m] | mask) + loads[m] * count_bits(mask & ~unions[m]))
    return least


@njit(cache=True, nogil=True)
def _find_join(unions: Masks, loads: Floats, mask: np.uint64, weight: float, but: int, cost: float) -> int:
    """Return the first meta-group, other than `but`, where the set costs about that."""
    for m in range(len(unions)):
        price = weight * count_bits(unions[m] | mask) + loads[m] * count_bits(mask & ~unions[m])
        if m != but and price <= cost * (1 + 1e-12):
            return m
    return but


@njit(cache=True, nogil=True)
def move_sets(sets: Masks, weights: Floats, meta: Ints, count: int, passes: int) -> None:
    """Move single sets to other meta-groups, in `meta`, while enough moves pay, in at most `passes`."""
    union, load = np.zeros(count, dtype=np.uint64), np.zeros(count)
    wanting = np.zeros((count, 64), dtype=np.int32)  # sets of a meta-group that want a port
    for i in range(len(sets)):
        union[meta[i]] |= sets[i]
        load[meta[i]] += weights[i]
        _count_ports(wanting, meta[i], sets[i], 1)
    for _ in range(passes):
        moves = 0
        for i in range(len(sets)):
            a, mask, weight = meta[i], sets[i], weights[i]
            rest = union[a]
            left = mask
            while left:
                low = left & (~left + np.uint64(1))
                if wanting[a, count_bits(low - np.uint64(1))] == 1:
                    rest &= ~low
                left &= left - np.uint64(1)
            saved = load[a] * count_bits(union[a]) - (load[a] - weight) * count_bits(rest)
            if saved <= weight * count_bits(mask) * (1 + 1e-12):
                continue  # it costs its own traffic anywhere
            mine, carried = union[a], load[a]
            union[a], load[a] = np.uint64(0), INFINITE_COST  # not where it is
            cost = _cheapest_join_cost(union, load, mask, weight)
            union[a], load[a] = mine, carried
            if cost < saved * (1 - 1e-9):
                b = _find_join(union, load, mask, weight, a, cost)
                _count_ports(wanting, a, mask, -1)
                _count_ports(wanting, b, mask, 1)
                union[a] = rest
                load[a] = load[a] - weight if rest else 0.0
                union[b] |= mask
                load[b] += weight
                meta[i] = b
                moves += 1
        if moves * STALL_DIVISOR <= len(sets):
            break


@njit(cache=True, nogil=True)
def _count_ports(wanting: NDArray[np.int32], meta: int, mask: np.uint64, by: int) -> None:
    """Add `by` to the number of sets of a meta-group at each port of the mask."""
    while mask:
        low = mask & (~mask + np.uint64(1))
        wanting[meta, count_bits(low - np.uint64(1))] += by
        mask &= mask - np.uint64(1)
