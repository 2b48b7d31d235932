"""Curves of sites: value of queries with additive values by uplink capacity, at prices of the next uplink."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from planner.arrays import Floats, Ints
from planner.compiled import kernel, run_small_in_python
from planner.search.tolerances import ROUNDING
from planner_models.analytics.designs.choices import Separate

TOLERANCE: Final = ROUNDING  # of a link's capacity


class Curves(NamedTuple):
    """Most value of each site's separate queries by remaining capacity of its uplink, less the price of use
    of the uplink of its point of presence: concave, piecewise linear.

    start   (S + 1,) first breakpoint of each site
    use     (n,) breakpoints, of the uplink's capacity; the first of a site is the least use
    value   (n,) value there, USD
    least      (G,) least use of the uplinks of points of presence
    pop_price  (G,) their prices, USD
    """

    start: Ints
    use: Floats
    value: Floats
    least: Floats
    pop_price: Floats


def find_curves(pop_of: Ints, separate: Separate, pop_price: Floats) -> Curves:
    """Return the curves of all sites at prices of points of presence, (G,) USD."""
    pop_price = np.ascontiguousarray(pop_price)
    start, use, value = _find_curves(pop_of, separate.value, separate.use, separate.pop_use, pop_price)
    possible = np.where(np.isfinite(separate.value), separate.pop_use, np.inf)
    smallest = possible.min(axis=2, initial=np.inf).sum(axis=1)
    of_pops = np.bincount(pop_of, weights=smallest, minlength=len(pop_price)).astype(float)
    return Curves(start, use, value, of_pops, pop_price)


@run_small_in_python(max_elements=1_000)
@kernel
def _find_curves(  # noqa: C901 - one compiled loop
    pop_of: Ints, value: Floats, use: Floats, pop_use: Floats, pop_price: Floats
) -> tuple[Ints, Floats, Floats]:
    sites, count, levels = value.shape
    start = np.zeros(sites + 1, dtype=np.int64)
    size = sites * (count * levels + 1)
    at_use, at_value = np.empty(size), np.empty(size)
    more_use, more_value = np.empty(count * levels), np.empty(count * levels)
    total = 0
    for site in range(sites):
        price = pop_price[pop_of[site]]
        steps = 0
        first_use = first_value = 0.0
        for query in range(count):
            current, at_profit = -1, 0.0
            for level in range(levels):
                if value[site, query, level] == -np.inf:
                    continue
                profit = value[site, query, level] - price * pop_use[site, query, level]
                if (
                    current < 0
                    or use[site, query, level] < use[site, query, current]
                    or (use[site, query, level] == use[site, query, current] and profit > at_profit)
                ):
                    current, at_profit = level, profit
            if current < 0:
                first_value = -np.inf
                continue
            first_use += use[site, query, current]
            first_value += at_profit
            while current >= 0:
                best, ratio, best_profit = -1, 0.0, 0.0
                for level in range(levels):
                    if value[site, query, level] == -np.inf:
                        continue
                    profit = value[site, query, level] - price * pop_use[site, query, level]
                    more = use[site, query, level] - use[site, query, current]
                    if profit > at_profit and more > 0 and (profit - at_profit) / more > ratio:
                        best, ratio, best_profit = level, (profit - at_profit) / more, profit
                if best >= 0:
                    more_use[steps] = use[site, query, best] - use[site, query, current]
                    more_value[steps] = best_profit - at_profit
                    steps += 1
                    at_profit = best_profit
                current = best
        at_use[total], at_value[total] = first_use, first_value
        total += 1
        order = np.argsort(-(more_value[:steps] / more_use[:steps]))
        for index in range(steps):
            step = order[index]
            at_use[total] = at_use[total - 1] + more_use[step]
            at_value[total] = at_value[total - 1] + more_value[step]
            total += 1
        start[site + 1] = total
    return start, at_use[:total].copy(), at_value[:total].copy()


@kernel
def bound_sites(remaining: Floats, curves: Curves, slope: Floats) -> tuple[float, float]:
    """Return a bound on the value of separate queries in the remaining capacity (M,); -inf if none fits.

    Also returns the part of it that is left at slope times nothing. Writes the slopes of the curves, (S,),
    which are prices of all of each site's uplink, USD.
    """
    sites = len(slope)
    start, use, value = curves.start, curves.use, curves.value
    constant = total = 0.0
    fits = True
    for pop in range(len(curves.pop_price)):
        fits = fits and remaining[sites + pop] >= curves.least[pop] - TOLERANCE
        total += curves.pop_price[pop] * remaining[sites + pop]
    for site in range(sites):
        low, high, available = start[site], start[site + 1] - 1, remaining[site]
        fits = fits and available >= use[low] - TOLERANCE
        if available >= use[high] or high == low:
            slope[site] = 0.0
            constant += value[high]
            continue
        while high - low > 1:
            middle = (low + high) // 2
            if use[middle] <= available:
                low = middle
            else:
                high = middle
        slope[site] = (value[high] - value[low]) / (use[high] - use[low])
        constant += value[low] - slope[site] * use[low]
        total += slope[site] * available
    return (total + constant if fits else -np.inf), constant
