"""Nearest port sets of each: those that it shares an entry with at the least extra traffic."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from planner_models.multicast.designs.channelization.pair_merging import (
    INFINITE_COST,
    minimum,
)
from planner_models.multicast.plan.meta_groups import (
    Masks,
    Rates,
    count_bits,
)


@njit(cache=True, nogil=True, fastmath={"nnan", "nsz", "reassoc", "contract"})
def _sharing_costs(sets: Masks, heavy: Rates, mask: np.uint64, weight: float, prices: Rates) -> None:
    """Set `prices` to the extra traffic of sharing an entry with each set."""
    for j in range(len(sets)):
        prices[j] = weight * count_bits(sets[j] & ~mask) + heavy[j] * count_bits(mask & ~sets[j])


@njit(cache=True, nogil=True)
def nearest_sets(sets: Masks, weights: Rates, entry: float, count: int) -> NDArray[np.int32]:
    """Return the cheapest sets for each to share an entry with, shape (sets, count), in any order.

    entry  typical traffic of an entry
    """
    n = len(sets)
    heaps = min(n - 1, 8 * count)  # each holds every `heaps`-th set
    heavy, prices, least = np.maximum(weights, entry), np.empty(n), np.empty(heaps)
    near = np.empty((n, count), dtype=np.int32)
    for i in range(n):
        _sharing_costs(sets, heavy, sets[i], weights[i], prices)
        prices[i] = INFINITE_COST
        near[i] = i  # where there are too few
        _minimum_per_class(prices, least)
        most = _rank_threshold(least, count)  # so many heaps, and so sets, are as good at least
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
def _rank_threshold(values: Rates, count: int) -> float:
    """Return a value that at least `count` values do not exceed, and few more."""
    low, high = minimum(values, len(values)), 0.0
    for value in values:
        high = max(high, value) if value < INFINITE_COST else high
    for _ in range(10):
        middle = (low + high) / 2
        if np.sum(values <= middle) >= count:
            high = middle
        else:
            low = middle
    return high


@njit(cache=True, nogil=True, fastmath={"nnan", "nsz", "reassoc", "contract"})
def _minimum_per_class(prices: Rates, least: Rates) -> None:
    """Set `least` to the minimum of each residue class of places."""
    heaps = len(least)
    least[:] = INFINITE_COST
    for begin in range(0, len(prices), heaps):
        for k in range(min(heaps, len(prices) - begin)):
            least[k] = min(least[k], prices[begin + k])
