"""Local search of channelization: single port sets move while that saves traffic; simulated annealing.

Agglomerative clustering of port sets, with local search and simulated annealing after it.

Port sets merge pair by pair; single sets move where that saves traffic. Then the search anneals: a port set
leaves its meta-group for the cheapest of a few with similar sets and of a window of others, or for a new
entry, at first also where that costs a little more. A price of entries controls the number in use; too many
at the end merge.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from planner.arrays import Floats, Ints
from planner.bits import count_bits
from planner.compiled import kernel_without_allocation, njit, run_small_in_python
from planner.errors import InputError
from planner_models.multicast.designs.channelization.pair_merging import (
    INFINITE_COST,
    INFINITE_PRICE,
    count_without,
    merge_costs,
    merge_near_pairs,
    merge_pairs,
    minimum,
    narrow_sets,
    nearest_sets,
)
from planner_models.multicast.plan.meta_groups import Masks, distinct_sets
from planner_models.multicast.problem.workloads import next_random

SAMPLED_META_GROUPS: Final = 100  # for the price of an entry
MIN_VISITS_PER_SET: Final = 36  # of each port set in a round of the search
MAX_VISITS_PER_SET: Final = 400  # where these have at most MAX_JOINS in all
MAX_JOINS: Final = 2_500_000  # of a set and a meta-group of a window
CANDIDATES_PER_VISIT: Final = 3  # meta-groups with similar sets, beside those of a window
MIN_WINDOWS: Final = 3  # all meta-groups at each visit would leave the search in the next local optimum
MAX_WINDOW: Final = 192  # meta-groups whose costs are computed at once
LANES: Final = 64  # compiled loops over so many meta-groups at a time have no rest to do one by one
EXTRA_SLOT_SHARE: Final = 0.1  # entries above the table that the search may use, as a share of it
INITIAL_TEMPERATURE: Final = 0.06  # as a share of the price of an entry
FINAL_TEMPERATURE: Final = 0.03
ENTRY_PRICE_STEP: Final = 0.2  # relative growth of the price where too many entries are in use
QUANTILES: Final = -np.log((np.arange(4096) + 0.5) / 4096)  # of the exponential distribution
NEIGHBOURS_PER_SET: Final = 12
TYPICAL_LOAD_FACTOR: Final = 1.4  # least traffic of a meta-group, times the median traffic of a set
EXACT_MERGE_FACTOR: Final = 1.25  # times the table: most unions that all pairs are compared of, or
MIN_EXACT_UNIONS: Final = 600
MOST_SEARCHED_UNIONS: Final = 300  # as above, where a search of many sets follows


def search_assignment(
    sets: Masks, weights: Floats, meta: Ints, near: NDArray[np.int32], table_size: int, nth: int
) -> Ints:
    """Return another assignment, by annealing `nth` times as long as in the first round."""
    merges = _sample_merge_costs(sets, weights, meta, table_size)
    rank = len(merges) // 10  # a low estimate; outside of compiled code, as a partition takes long to compile
    if not len(merges) or (entry_price := float(np.partition(merges, rank)[rank])) <= 0:
        return meta
    slots = table_size + max(2, int(EXTRA_SLOT_SHARE * table_size))
    windows = max(MIN_WINDOWS, -(-slots // MAX_WINDOW))
    width = _whole_lanes(-(-slots // windows))
    visits = nth * max(
        MIN_VISITS_PER_SET * len(sets), min(MAX_VISITS_PER_SET * len(sets), MAX_JOINS // width)
    )
    masks, meta_of = narrow_sets(sets), meta.astype(np.uint32)
    fields = _make_fields(len(sets), slots, windows, width, masks.dtype)
    shape, alike = (table_size, windows, width), near.astype(np.uint32)
    _anneal(sets, masks, weights, meta_of, alike, fields, shape, visits, entry_price, nth, QUANTILES)
    assignment = np.unique(meta_of, return_inverse=True)[1].astype(np.int64)
    unions, loads = _union_loads(sets, weights, assignment, max(int(assignment.max()) + 1, table_size))
    if len(unions) > table_size:
        merged = merge_pairs(unions, loads, table_size)
        assignment = assign_smallest_union(unions, merged)[assignment]
    passes = MAX_JOINS_AFTER_ANNEALING // (len(sets) * table_size)
    move_sets(sets, weights, assignment, table_size, min(max(passes, 1), MAX_PASSES_AFTER_ANNEALING))
    return assignment


@run_small_in_python(max_elements=5_000)
@njit(cache=True, nogil=True)
def _union_loads(sets: Masks, weights: Floats, meta: Ints, count: int) -> tuple[Masks, Floats]:
    """Return union and traffic of each meta-group; 0 of those without sets."""
    union, load = np.zeros(count, dtype=np.uint64), np.zeros(count)
    for i in range(len(sets)):
        union[meta[i]] |= sets[i]
        load[meta[i]] += weights[i]
    return union, load


@run_small_in_python(max_elements=500)
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
def _join_costs(unions, sizes, loads, mask, weight, prices):  # type: ignore[no-untyped-def]
    """Set `prices` to the cost of a set in each meta-group; all are of single precision.

    sizes  ports of each union
    """
    for m in range(len(prices)):
        prices[m] = weight * sizes[m] + (weight + loads[m]) * np.float32(count_without(mask, unions[m]))


_join_costs_fused: Any = njit(nogil=True, fastmath={"nnan", "nsz", "reassoc", "contract"})(
    _join_costs.py_func
)
"""The same, multiplied and added in one instruction: a tenth faster, which Python cannot follow."""


@run_small_in_python(max_elements=1_000)
@njit(cache=True, nogil=True)
def _whole_lanes(count: int) -> int:
    """Return the next multiple of the lanes."""
    return (count + LANES - 1) // LANES * LANES


@njit(cache=True, nogil=True)
def _least(bits: NDArray[np.int32]) -> np.int32:
    """Return the least price; prices by their bits, which are in the same order."""
    smallest = np.int32(0x7FFFFFFF)
    for m in range(len(bits)):
        smallest = min(smallest, bits[m])
    return smallest


@njit(cache=True, nogil=True)
def _find_bits(bits: NDArray[np.int32], value: np.int32) -> int:
    """Return the first place of the value."""
    for m in range(len(bits)):
        if bits[m] == value:
            return m
    return 0


class _Fields(NamedTuple):
    """Arrays that annealing changes: meta-groups, and their costs by windows, in single precision.

    counts           (slots, digits) sets that want each port, as `_count_set` has them
    union, single    (slots,) ports, and ports that a single set wants
    load, members    (slots,) traffic and number of sets
    unused           (slots,) meta-groups without sets
    unions, sizes, loads  (windows * width,) the same of all windows; unused meta-groups have no price
    prices, bits     (width,) costs of joining in a window, and the same memory as integers
    limit, limit_bits  (1,) the same of the limit of acceptance
    """

    counts: NDArray[np.uint64]
    union: NDArray[np.uint64]
    single: NDArray[np.uint64]
    load: Floats
    members: Ints
    unused: Ints
    unions: NDArray[Any]
    sizes: NDArray[np.float32]
    loads: NDArray[np.float32]
    prices: NDArray[np.float32]
    bits: NDArray[np.int32]
    limit: NDArray[np.float32]
    limit_bits: NDArray[np.int32]


def _make_fields(sets: int, slots: int, windows: int, width: int, kind: np.dtype[Any]) -> _Fields:
    """Return the arrays, without sets; compiled code would take seconds longer to compile with them."""
    prices, limit = np.empty(width, dtype=np.float32), np.empty(1, dtype=np.float32)
    return _Fields(
        counts=np.zeros((slots, sets.bit_length()), dtype=np.uint64),
        union=np.zeros(slots, dtype=np.uint64),
        single=np.zeros(slots, dtype=np.uint64),
        load=np.zeros(slots),
        members=np.zeros(slots, dtype=np.int64),
        unused=np.empty(slots, dtype=np.int64),
        unions=np.zeros(windows * width, dtype=kind),
        sizes=np.zeros(windows * width, dtype=np.float32),
        loads=np.full(windows * width, INFINITE_PRICE, dtype=np.float32),
        prices=prices,
        bits=prices.view(np.int32),
        limit=limit,
        limit_bits=limit.view(np.int32),
    )


@kernel_without_allocation
def _anneal(  # noqa: C901 - one compiled loop
    sets: Any,
    masks: Any,
    weights: Any,
    meta_of: Any,
    alike: Any,
    fields: Any,
    shape: tuple[int, int, int],
    visits: int,
    entry_price: float,
    seed: int,
    exponential: Any,
) -> None:
    """Move sets, in `meta_of`, by simulated annealing, with about a table of meta-groups in use.

    Each set in turn may move to the cheapest of a few meta-groups with similar sets, of a window of
    consecutive ones at a random place, and a new one.

    masks        the sets, of 32 bits where these hold all ports
    meta_of, alike  unsigned, as each access by a signed index tests whether that is negative
    shape        table, number of windows and meta-groups of each
    entry_price  traffic that one meta-group fewer may cost; adapts to the number in use
    exponential  (4096,) quantiles of the exponential distribution
    """
    n, like = alike.shape
    table, windows, width = shape
    counts, union, single, load, members, unused, unions, sizes, loads, prices, bits, limit, limit_bits = (
        fields
    )
    slots, free = len(union), 0
    for index in range(n):
        m = meta_of[index]
        union[m], single[m] = _count_set(counts[m], sets[index], True)
        load[m] += weights[index]
        members[m] += 1
    for m in range(slots):
        if members[m] == 0:
            unused[free] = m
            free += 1
        else:
            unions[m], sizes[m], loads[m] = union[m], count_bits(union[m]), load[m]
    wide, few = np.uint64(like), np.uint64(min(CANDIDATES_PER_VISIT, like))
    temperature, state = INITIAL_TEMPERATURE * entry_price, np.uint64(seed)
    cooling_rate = (FINAL_TEMPERATURE / INITIAL_TEMPERATURE) ** (64.0 / max(visits, 64))
    i = np.uint64(n - 1)
    for visit in range(visits):
        if visit % 64 == 63:
            temperature *= cooling_rate
            entry_price *= 1.0 + ENTRY_PRICE_STEP * (slots - free - table) / table
        state, drawn = next_random(state)
        i = i + np.uint64(1) if i + np.uint64(1) < np.uint64(n) else np.uint64(0)
        a, mask, weight = np.uint64(meta_of[i]), sets[i], weights[i]
        remaining = union[a] & ~(mask & single[a])
        saved = load[a] * count_bits(union[a]) - (load[a] - weight) * count_bits(remaining)
        if members[a] == 1:
            saved += entry_price
        threshold = saved + temperature * exponential[drawn >> np.uint64(52)]  # accepted below that
        if weight * count_bits(mask) >= threshold:
            continue  # it costs its own traffic anywhere
        b = np.int64(-1)
        r = ((drawn & np.uint64(0xFFFFFFFF)) * wide) >> np.uint64(32)
        for k in range(r, r + few):
            m = np.uint64(meta_of[alike[i, k if k < wide else k - wide]])
            cost = weight * count_bits(union[m] | mask) + load[m] * count_bits(mask & ~union[m])
            if m != a and cost < threshold:
                b, threshold = np.int64(m), cost
        window = (((drawn >> np.uint64(20)) & np.uint64(0xFFFFFFFF)) * np.uint64(windows)) >> np.uint64(32)
        begin = window * np.uint64(width)
        end = begin + np.uint64(width)
        _join_costs_fused(
            unions[begin:end], sizes[begin:end], loads[begin:end], masks[i], np.float32(weight), prices
        )
        if begin <= a < end:
            prices[a - begin] = INFINITE_PRICE
        cheapest, limit[0] = _least(bits), threshold
        if cheapest < limit_bits[0]:
            first = _find_bits(bits, cheapest)
            b, threshold = np.int64(begin) + first, np.float64(prices[first])
        if free > 0 and members[a] > 1:
            cost = weight * count_bits(mask) + entry_price
            if cost < threshold:
                b, threshold = np.int64(unused[free - 1]), cost
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
        unions[a], sizes[a] = union[a], count_bits(union[a])
        loads[a] = load[a] if members[a] > 0 else INFINITE_PRICE
        union[b], single[b] = _count_set(counts[b], mask, True)
        load[b] += weight
        members[b] += 1
        unions[b], sizes[b], loads[b] = union[b], count_bits(union[b]), load[b]
        meta_of[i] = b


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


@run_small_in_python(max_elements=5_000)
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


@run_small_in_python(max_elements=1_000)
@njit(cache=True, nogil=True)
def assign_smallest_union(sets: Masks, unions: Masks) -> Ints:
    """Return the smallest union that covers each port set."""
    meta = np.zeros(len(sets), dtype=np.int64)
    sizes = np.empty(len(unions), dtype=np.int64)
    for m in range(len(unions)):
        sizes[m] = count_bits(unions[m])
    for i in range(len(sets)):
        smallest = 65
        for m in range(len(unions)):
            if (sets[i] & ~unions[m]) == 0 and sizes[m] < smallest:
                smallest = sizes[m]
                meta[i] = m
    return meta


def move_sets(sets: Masks, weights: Floats, meta: Ints, count: int, passes: int) -> None:
    """Move single sets to other meta-groups, in `meta`, while enough moves pay, in at most `passes`."""
    _move_sets(sets, narrow_sets(sets), weights, meta, count, passes)


@run_small_in_python(max_elements=500)
@njit(cache=True, nogil=True)
def _move_sets(sets, masks, weights, meta, count, passes):  # type: ignore[no-untyped-def]
    """Move sets; `masks` are the sets, of 32 bits where these hold all ports."""
    digits = 1
    while (1 << digits) <= len(sets):
        digits += 1
    counts = np.zeros((count, digits), dtype=np.uint64)
    union, single = np.zeros(count, dtype=np.uint64), np.zeros(count, dtype=np.uint64)
    load, members = np.zeros(count), np.zeros(count, dtype=np.int64)
    for i in range(len(sets)):
        a = meta[i]
        union[a], single[a] = _count_set(counts[a], sets[i], True)
        load[a] += weights[i]
        members[a] += 1
    # the same of single precision
    width = _whole_lanes(count)
    unions, sizes = np.zeros(width, dtype=masks.dtype), np.zeros(width, dtype=np.float32)
    loads, prices = np.full(width, INFINITE_PRICE), np.empty(width, dtype=np.float32)
    bits = prices.view(np.int32)
    for m in range(count):
        unions[m], sizes[m], loads[m] = union[m], count_bits(union[m]), load[m]
    for _ in range(passes):
        moves = 0
        for i in range(len(sets)):
            a, mask, weight = meta[i], sets[i], weights[i]
            remaining = union[a] & ~(mask & single[a])
            saved = load[a] * count_bits(union[a]) - (load[a] - weight) * count_bits(remaining)
            if saved <= weight * count_bits(mask) * (1 + 1e-12):
                continue  # it costs its own traffic anywhere
            _join_costs(unions, sizes, loads, masks[i], np.float32(weight), prices)
            prices[a] = INFINITE_PRICE  # not where it is
            b = _find_bits(bits, _least(bits))
            cost = weight * count_bits(union[b] | mask) + load[b] * count_bits(mask & ~union[b])
            if b == a or cost >= saved * (1 - 1e-9):
                continue
            union[a], single[a] = _count_set(counts[a], mask, False)
            members[a] -= 1
            load[a] = load[a] - weight if members[a] > 0 else 0.0
            union[b], single[b] = _count_set(counts[b], mask, True)
            members[b] += 1
            load[b] += weight
            unions[a], sizes[a], loads[a] = union[a], count_bits(union[a]), load[a]
            unions[b], sizes[b], loads[b] = union[b], count_bits(union[b]), load[b]
            meta[i] = b
            moves += 1
        if moves * STALL_DIVISOR <= len(sets):
            break


def aggregate(masks: Masks, rates: Floats, *, table_size: int, rounds: int = 1) -> Ints:
    """Return the meta-group of each group: merge pairs, reassign to supersets, move; then anneal.

    The cheapest pair of port sets merges until the table holds them (of many sets the cheapest of similar
    pairs). Of few sets, each goes to the smallest union that covers it, and moves where that saves traffic.
    Round n then searches n times as long as the first, and keeps the better assignment. The
    result is deterministic. Congestion is linear.

    raises  InputError for a table without entries
    """
    if table_size < 1:
        raise InputError(f"table size is {table_size}, must be at least 1")
    sets, weights, inverse = distinct_sets(masks, rates)
    if len(sets) <= table_size:
        return inverse
    few = max(int(EXACT_MERGE_FACTOR * table_size), MIN_EXACT_UNIONS)
    near = np.zeros((0, 0), dtype=np.int32)
    if rounds > 0 or len(sets) > few:
        near = nearest_sets(
            sets,
            weights,
            TYPICAL_LOAD_FACTOR * float(np.median(weights)),
            min(NEIGHBOURS_PER_SET, len(sets) - 1),
        )
    # moves alone, and pairs that are not similar, take as long as a search of many sets, which finds as much
    if searched := rounds > 0 and len(sets) > EXACT_MERGE_FACTOR * MOST_SEARCHED_UNIONS:
        few = max(table_size, MOST_SEARCHED_UNIONS)
    unions, loads, meta = sets, weights, np.arange(len(sets))
    if len(sets) > few:
        unions, loads, meta = merge_near_pairs(sets, weights, near, few)
    if not searched:
        meta = reassign_sets(sets, weights, merge_pairs(unions, loads, table_size))
    elif len(unions) > table_size:
        meta = assign_smallest_union(sets, merge_pairs(unions, loads, table_size))
    traffic = total_mbps(sets, weights, meta)
    for nth in range(rounds):
        assignment = search_assignment(sets, weights, meta, near, table_size, nth + 1)
        reached = total_mbps(sets, weights, assignment)
        if reached < traffic:
            meta, traffic = assignment, reached
    used = np.bincount(meta) > 0
    return np.asarray((np.cumsum(used) - 1)[meta[inverse]], dtype=np.int64)
