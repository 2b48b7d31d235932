"""Exchange of levels at a site: one query becomes finer, alone or with another one that becomes coarser."""

from __future__ import annotations

from typing import Final

from planner.arrays import Floats, Ints
from planner.compiled import kernel, run_small_in_python
from planner.search.tolerances import ROUNDING

TOLERANCE: Final = ROUNDING  # of a link's capacity
PASSES: Final = 3


@run_small_in_python(max_elements=1_000)
@kernel
def exchange(
    left: Floats, added: Ints, pop_of: Ints, value: Floats, use: Floats, pop_use: Floats, total: float
) -> float:
    """Change levels (S, n) of separate queries in place for the best pair of each site, until none gains.

    left   (M,) what is left of uplinks, which changes too
    total  value before, USD; returned with what is gained
    """
    for _ in range(PASSES):
        before = total
        for site in range(len(added)):
            while True:
                gain = _change_best_pair(
                    site, site_pop(site, pop_of, len(added)), left, added[site], value[site], use[site],
                    pop_use[site], 1e-12 * total,
                )  # fmt: skip
                if gain <= 0:
                    break
                total += gain
        if total <= before:
            break
    return total


@kernel
def site_pop(site: int, pop_of: Ints, sites: int) -> int:
    """Return the uplink of a site's point of presence."""
    return int(sites + pop_of[site])


@kernel
def _change_best_pair(  # noqa: C901 - one compiled loop
    site: int, pop: int, left: Floats, added: Ints, value: Floats, use: Floats, pop_use: Floats, least: float
) -> float:  # fmt: skip
    """Change the level of one query, or of two, for the greatest gain above the least; return it, or 0.

    added                (n,) levels of the site, changed in place
    value, use, pop_use  (n, L) of the site
    """
    count, levels = value.shape
    best, finer, finer_level, coarser, coarser_level = least, -1, -1, -1, -1
    for one in range(count):
        at = added[one]
        for level in range(levels):
            gain = value[one, level] - value[one, at]
            if gain <= best:
                continue
            need = use[one, level] - use[one, at] - left[site] - TOLERANCE
            pop_need = pop_use[one, level] - pop_use[one, at] - left[pop] - TOLERANCE
            if need <= 0 and pop_need <= 0:
                best, finer, finer_level, coarser = gain, one, level, -1
                continue
            for other in range(count):
                kept = added[other]
                for lower in range(levels):
                    net = gain + value[other, lower] - value[other, kept]
                    if (
                        net > best
                        and other != one
                        and use[other, kept] - use[other, lower] >= need
                        and pop_use[other, kept] - pop_use[other, lower] >= pop_need
                    ):
                        best, finer, finer_level, coarser, coarser_level = net, one, level, other, lower
    if finer < 0:
        return 0.0
    for query, level in ((finer, finer_level), (coarser, coarser_level)):
        if query >= 0:
            left[site] -= use[query, level] - use[query, added[query]]
            left[pop] -= pop_use[query, level] - pop_use[query, added[query]]
            added[query] = level
    return best
