"""Merging of port sets pair by pair, the cheapest first: of all pairs, or of pairs with similar sets."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numba import types
from numba.extending import lower_builtin, type_callable
from numpy.typing import NDArray

from planner.arrays import Floats, Ints
from planner.bits import count_bits
from planner.compiled import njit, run_small_in_python
from planner_models.multicast.plan.meta_groups import Masks

BLOCK_SIZE: Final = 64
INFINITE_COST: Final = 1e300
INFINITE_PRICE: Final = np.float32(1e30)  # of single precision
NARROW_PORTS: Final = 32


@njit(cache=True, nogil=True)
def merge_costs(sets: Masks, loads: Floats, count: int, mask: np.uint64, load: float, prices: Floats) -> None:
    """Set `prices` to the extra traffic of merging a union with each of the first `count`."""
    for b in range(count):
        prices[b] = load * count_bits(sets[b] & ~mask) + loads[b] * count_bits(mask & ~sets[b])


@njit(cache=True, nogil=True, fastmath={"nnan", "nsz", "reassoc", "contract"})
def minimum(values: Floats, count: int) -> float:
    """Return the smallest of the first `count` values."""
    smallest = INFINITE_COST
    for i in range(count):
        smallest = min(smallest, values[i])
    return smallest


@njit(cache=True, nogil=True)
def find_first(values: Floats, count: int, value: float) -> int:
    """Return the first place of the value."""
    for i in range(count):
        if values[i] == value:
            return i
    return 0


@run_small_in_python(max_elements=500)
@njit(cache=True, nogil=True)
def merge_pairs(masks: Masks, weights: Floats, target: int) -> Masks:
    """Return the unions left after merging the cheapest pair again and again.

    The cheapest partner of each set is stored. Where that partner has changed, its price is still a lower
    bound, as merged unions are compared anew; so it is only searched again when it comes first.
    """
    count = len(masks)
    sets, loads = masks.copy(), weights.copy()
    near, price = np.empty(count, dtype=np.int64), np.empty(count)
    stale = np.zeros(count, dtype=np.bool_)
    prices = np.empty(count)
    for a in range(count):
        merge_costs(sets, loads, count, sets[a], loads[a], prices)
        prices[a] = INFINITE_COST
        price[a] = minimum(prices, count)
        near[a] = find_first(prices, count, price[a])
    while count > target:
        a = find_first(price, count, minimum(price, count))
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
            merge_costs(sets, loads, count, sets[a], loads[a], prices)
            prices[a] = INFINITE_COST
            for c in range(count):
                if prices[c] < price[c]:
                    price[c] = prices[c]
                    near[c] = a
                    stale[c] = False
        else:
            merge_costs(sets, loads, count, sets[a], loads[a], prices)
            prices[a] = INFINITE_COST
        price[a] = minimum(prices, count)
        near[a] = find_first(prices, count, price[a])
        stale[a] = False
    return sets[:count].copy()


def merge_near_pairs(
    sets: Masks, weights: Floats, near: NDArray[np.int32], target: int
) -> tuple[Masks, Floats, Ints]:
    """Return unions, their traffic, and the union of each set, after the cheapest merges of similar sets.

    As many as `target` are left, and more where no such pair exists.
    """
    n = len(sets)
    union, load = sets.copy(), weights.copy()
    state = np.zeros((7, n), dtype=np.int64)
    state[0] = state[2] = np.arange(n)  # the union of each set; the last member of a union
    state[1], state[3] = -1, 1  # the next member, as a chain; members
    price, cheapest = np.full(n, INFINITE_COST), np.full((n + BLOCK_SIZE - 1) // BLOCK_SIZE, INFINITE_COST)
    _merge_near_pairs(union, load, near, target, state, price, cheapest)
    alive = load >= 0
    return union[alive], load[alive], (np.cumsum(alive) - 1)[state[0]]


@njit(cache=True, nogil=True)
def _merge_near_pairs(
    union: Masks,
    load: Floats,
    near: NDArray[np.int32],
    target: int,
    state: Ints,
    price: Floats,
    cheapest: Floats,
) -> None:
    """Merge in `union` and `load`; the traffic of a union that went into another is -1.

    state     (7, sets) union, next member, last member, members; cheapest partner, how often a union changed,
              how often the partner had changed when its price was found
    cheapest  minimum of each block of prices
    """
    meta, after, last, size = state[0], state[1], state[2], state[3]
    partner, changed, version = state[4], state[5], state[6]
    n, rows = len(union), len(cheapest)
    for a in range(n):
        price[a], partner[a] = _find_partner(a, a, after, near, meta, union, load)
        cheapest[a // BLOCK_SIZE] = min(cheapest[a // BLOCK_SIZE], price[a])
    remaining = n
    while remaining > target:
        smallest = minimum(cheapest, rows)
        if smallest >= INFINITE_COST:
            break
        begin = find_first(cheapest, rows, smallest) * BLOCK_SIZE
        a = begin + find_first(price[begin:], min(BLOCK_SIZE, n - begin), smallest)
        b = partner[a]
        if changed[b] == version[a]:
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
            price[b], load[b] = INFINITE_COST, -1.0
            _update_block(price, cheapest, b)
            changed[a] += 1
            changed[b] += 1
            remaining -= 1
        price[a], partner[a] = _find_partner(a, a, after, near, meta, union, load)
        version[a] = changed[partner[a]]
        _update_block(price, cheapest, a)


@njit(cache=True, nogil=True)
def _update_block(price: Floats, cheapest: Floats, changed: int) -> None:
    """Recompute the minimum of the block of a changed price."""
    row = changed // BLOCK_SIZE
    begin = row * BLOCK_SIZE
    cheapest[row] = minimum(price[begin:], min(BLOCK_SIZE, len(price) - begin))


@njit(cache=True, nogil=True)
def _find_partner(
    a: int, first: int, after: Ints, near: NDArray[np.int32], meta: Ints, union: Masks, load: Floats
) -> tuple[float, int]:
    """Return the price and the cheapest group to merge with, among those of similar sets."""
    lowest, best, i = INFINITE_COST, 0, first
    while i >= 0:
        for r in range(near.shape[1]):
            b = meta[near[i, r]]
            price = load[a] * count_bits(union[b] & ~union[a]) + load[b] * count_bits(union[a] & ~union[b])
            if b != a and price < lowest:
                lowest, best = price, b
        i = after[i]
    return lowest, best


def count_without(mask: np.uint64, other: np.uint64) -> int:
    """Return the number of bits of a mask that another of the same type lacks.

    Compiled, it is an instruction of that type: a loop over bits becomes one for 64 bits only.
    """
    return int(mask & ~other).bit_count()


@type_callable(count_without)
def _type_count(context: Any) -> Any:  # noqa: ARG001
    """Return the function that finds the type of a count."""

    def find_type(mask: Any, other: Any) -> Any:  # noqa: ARG001
        return types.int32 if mask.bitwidth == NARROW_PORTS else types.int64

    return find_type


@lower_builtin(count_without, types.Integer, types.Integer)  # type: ignore[no-untyped-call, untyped-decorator]
def _compile_count(context: Any, builder: Any, signature: Any, values: Any) -> Any:
    """Return the code of a count."""
    count = builder.ctpop(builder.and_(values[0], builder.not_(values[1])))
    return context.cast(builder, count, signature.args[0], signature.return_type)


vars(count_without)["_defn"] = _compile_count  # digests of kernels follow it, as with Numba's intrinsics


@njit(cache=True, nogil=True)
def _sharing_costs(sets, weights, heavy, i, prices):  # type: ignore[no-untyped-def]
    """Set `prices` to the extra traffic of sharing an entry with each set; of set `i` itself, no price."""
    mask, weight = sets[i], weights[i]
    for j in range(len(sets)):
        prices[j] = weight * np.float32(count_without(sets[j], mask))
        prices[j] += heavy[j] * np.float32(count_without(mask, sets[j]))
    prices[i] = INFINITE_PRICE


def narrow_sets(sets: Masks) -> NDArray[np.uint32] | Masks:
    """Return the sets as masks of 32 bits, where these hold all ports."""
    return sets.astype(np.uint32) if len(sets) and int(sets.max()) < 1 << NARROW_PORTS else sets


def nearest_sets(sets: Masks, weights: Floats, entry: float, count: int) -> NDArray[np.int32]:
    """Return the cheapest sets for each to share an entry with, shape (sets, count), in any order.

    Prices are of single precision.

    entry  typical traffic of an entry
    """
    n = len(sets)
    near = np.repeat(np.arange(n, dtype=np.int32)[:, None], count, axis=1)  # itself, where there are too few
    # each heap holds every `heaps`-th set
    minima = np.empty(min(n - 1, 8 * count), dtype=np.float32)
    prices = np.full(-(-n // max(len(minima), 1)) * len(minima), INFINITE_PRICE)
    of, heavy = weights.astype(np.float32), np.maximum(weights, entry).astype(np.float32)
    _find_nearest(narrow_sets(sets), of, heavy, near, prices, minima)
    return near


@run_small_in_python(max_elements=1_000)
@njit(cache=True, nogil=True)
def _find_nearest(sets, weights, heavy, near, prices, minima):  # type: ignore[no-untyped-def]
    """Set `near`; `prices`, as long as whole rows of `minima`, and `minima` are work space."""
    n, count = near.shape
    heaps = len(minima)
    rows = prices.reshape((len(prices) // heaps, heaps))
    classes, nearest = np.empty(heaps + 1, dtype=np.int64), np.empty(n + 1, dtype=np.int64)
    for i in range(n):
        _sharing_costs(sets, weights, heavy, i, prices)
        _minimum_per_class(rows, minima)
        threshold = _rank_threshold(minima, count)  # so many heaps, and so sets, are as good at least
        few, k = 0, i % heaps  # from anywhere, so that no sets are first everywhere
        for _ in range(heaps):  # without branches, as most of these would be predicted wrongly
            classes[few] = k
            few += 1 if minima[k] <= threshold else 0
            k = k + 1 if k + 1 < heaps else 0
        count_found = 0
        for c in range(few):
            for j in range(classes[c], n, heaps):
                nearest[count_found] = j
                count_found += 1 if prices[j] <= threshold else 0
            if count_found >= count:
                break
        for c in range(min(count_found, count)):
            near[i, c] = nearest[c]


@njit(cache=True, nogil=True, fastmath={"nnan", "nsz"})
def _rank_threshold(values: NDArray[np.float32], count: int) -> np.float32:
    """Return a value that at least `count` values do not exceed, and few more."""
    low, high = INFINITE_PRICE, np.float32(0.0)
    for i in range(len(values)):
        low = min(low, values[i])
        high = max(high, values[i] if values[i] < INFINITE_PRICE else np.float32(0.0))
    for _ in range(10):
        middle = (low + high) / np.float32(2.0)
        reached = np.int32(0)
        for i in range(len(values)):
            reached += np.int32(1) if values[i] <= middle else np.int32(0)
        if reached >= count:
            high = middle
        else:
            low = middle
    return high


@njit(cache=True, nogil=True, fastmath={"nnan", "nsz"})
def _minimum_per_class(prices: NDArray[np.float32], minima: NDArray[np.float32]) -> None:
    """Set `minima` to the minimum of each column of `prices`, shape (rows, classes)."""
    for k in range(len(minima)):
        minima[k] = prices[0, k]
    for row in range(1, len(prices)):
        for k in range(len(minima)):
            minima[k] = min(minima[k], prices[row, k])
