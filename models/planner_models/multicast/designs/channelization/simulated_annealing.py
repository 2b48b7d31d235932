"""Simulated annealing of channelization: port sets move, at a price for each entry in use."""

from __future__ import annotations

from typing import Final

import numpy as np
from numba import njit
from numpy.typing import NDArray

from planner_models.multicast.designs.channelization.pair_merging import (
    INFINITE_COST,
    merge_costs,
    merge_pairs,
    minimum,
)
from planner_models.multicast.designs.channelization.reassignment import reassign_sets
from planner_models.multicast.plan.meta_groups import (
    Masks,
    Meta,
    Rates,
    count_bits,
)
from planner_models.multicast.problem.workloads import next_random

SAMPLED_META_GROUPS: Final = 100  # for the price of an entry
MIN_VISITS_PER_SET: Final = 120  # of each port set in a round of the search
MAX_VISITS_PER_SET: Final = 400  # where these are below MAX_VISITS in all
MAX_VISITS: Final = 150_000
CANDIDATES_PER_VISIT: Final = 8  # meta-groups
EXTRA_SLOT_SHARE: Final = 0.1  # entries above the table that the search may use, as a share of it
INITIAL_TEMPERATURE: Final = 0.085  # as a share of the price of an entry
FINAL_TEMPERATURE: Final = 0.02
ENTRY_PRICE_STEP: Final = 0.005  # relative growth of the price where too many entries are in use


def search_assignment(
    sets: Masks, weights: Rates, meta: Meta, near: NDArray[np.int32], table_size: int, nth: int
) -> Meta:
    """Return another assignment, by annealing `nth` times as long as in the first round."""
    entry_price = _entry_price(sets, weights, meta, table_size)
    if entry_price <= 0:
        return meta
    found, slots = meta.copy(), table_size + max(2, int(EXTRA_SLOT_SHARE * table_size))
    visits = nth * max(MIN_VISITS_PER_SET * len(sets), min(MAX_VISITS_PER_SET * len(sets), MAX_VISITS))
    _anneal(sets, weights, found, near, table_size, slots, visits, entry_price, nth)
    found = np.unique(found, return_inverse=True)[1].astype(np.int64)
    unions, loads = _union_loads(sets, weights, found, max(int(found.max()) + 1, table_size))
    if len(unions) > table_size:
        unions = merge_pairs(unions, loads, table_size)
    return reassign_sets(sets, weights, unions)


@njit(cache=True, nogil=True)
def _union_loads(sets: Masks, weights: Rates, meta: Meta, count: int) -> tuple[Masks, Rates]:
    """Return union and traffic of each meta-group; 0 of those without sets."""
    union, load = np.zeros(count, dtype=np.uint64), np.zeros(count)
    for i in range(len(sets)):
        union[meta[i]] |= sets[i]
        load[meta[i]] += weights[i]
    return union, load


@njit(cache=True, nogil=True)
def _entry_price(sets: Masks, weights: Rates, meta: Meta, count: int) -> float:
    """Return a low estimate of the cost of one meta-group fewer, from a sample of merges; 0 of one."""
    union, load = _union_loads(sets, weights, meta, count)
    union, load = union[union != 0], load[union != 0]
    count = len(union)
    if count < 2:
        return 0.0
    step = max(1, count // SAMPLED_META_GROUPS)
    prices, merges = np.empty(count), np.empty((count + step - 1) // step)
    for k in range(len(merges)):
        m = k * step
        merge_costs(union, load, count, union[m], load[m], prices)
        prices[m] = INFINITE_COST
        merges[k] = minimum(prices, count)
    rank = len(merges) // 10
    return float(np.partition(merges, rank)[rank])


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
    weights: Rates,
    meta: Meta,
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
    temperature, state = INITIAL_TEMPERATURE * entry_price, np.uint64(seed)
    cooling_rate = (FINAL_TEMPERATURE / INITIAL_TEMPERATURE) ** (64.0 / max(visits, 64))
    for visit in range(visits):
        if visit % 64 == 63:
            temperature *= cooling_rate
            entry_price *= 1.0 + ENTRY_PRICE_STEP * (slots - free - table) / table
        state, drawn = next_random(state)
        i = np.int64(((drawn >> np.uint64(32)) * np.uint64(n)) >> np.uint64(32))
        r = np.int64(((drawn & np.uint64(0xFFFFFFFF)) * np.uint64(like)) >> np.uint64(32))
        a, mask, weight = int(meta[i]), sets[i], weights[i]
        rest = union[a] & ~(mask & single[a])
        saved = load[a] * count_bits(union[a]) - (load[a] - weight) * count_bits(rest)
        if members[a] == 1:
            saved += entry_price
        b, least = -1, INFINITE_COST
        for k in range(r, r + min(CANDIDATES_PER_VISIT, like)):
            m = int(meta[near[i, k if k < like else k - like]])
            size = count_bits(union[m] | mask)
            cost = weight * size + load[m] * (size - count_bits(union[m]))
            if m != a and cost < least:
                b, least = m, cost
        if free > 0 and members[a] > 1:
            cost = weight * count_bits(mask) + entry_price
            if cost < least:
                b, least = int(unused[free - 1]), cost
        if b < 0:
            continue
        if least >= saved:
            state, drawn = next_random(state)
            if least >= saved - temperature * np.log(((drawn >> np.uint64(11)) + 1.0) / 9007199254740993.0):
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
        meta[i] = b
