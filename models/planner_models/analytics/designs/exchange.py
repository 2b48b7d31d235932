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
    remaining: Floats, added: Ints, pop_of: Ints, value: Floats, use: Floats, pop_use: Floats, total: float
) -> float:
    """Change levels (S, n) of separate queries in place for the best pair of each site, until none gains.

    remaining   (M,) what is left of uplinks, which changes too
    total  value before, USD; returned with what is gained
    """
    for _ in range(PASSES):
        before = total
        for site in range(len(added)):
            while True:
                gain = _change_best_pair(
                    site, site_pop(site, pop_of, len(added)), remaining, added[site], value[site], use[site],
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
    site: int, pop: int, remaining: Floats, added: Ints, value: Floats, use: Floats, pop_use: Floats,
min_gain: float ) -> float:  # fmt: skip
    """Change the level of one query, or of two, for the greatest gain above the least; return it, or 0.

    added                (n,) levels of the site, changed in place
    value, use, pop_use  (n, L) of the site
    """
    count, levels = value.shape
    best, finer, finer_level, coarser, coarser_level = min_gain, -1, -1, -1, -1
    for query in range(count):
        level_now = added[query]
        for level in range(levels):
            gain = value[query, level] - value[query, level_now]
            if gain <= best:
                continue
            need = use[query, level] - use[query, level_now] - remaining[site] - TOLERANCE
            pop_need = pop_use[query, level] - pop_use[query, level_now] - remaining[pop] - TOLERANCE
            if need <= 0 and pop_need <= 0:
                best, finer, finer_level, coarser = gain, query, level, -1
                continue
            for other in range(count):
                current_lower = added[other]
                for lower in range(levels):
                    net = gain + value[other, lower] - value[other, current_lower]
                    if (
                        net > best
                        and other != query
                        and use[other, current_lower] - use[other, lower] >= need
                        and pop_use[other, current_lower] - pop_use[other, lower] >= pop_need
                    ):
                        best, finer, finer_level, coarser, coarser_level = net, query, level, other, lower
    if finer < 0:
        return 0.0
    for query, level in ((finer, finer_level), (coarser, coarser_level)):
        if query >= 0:
            remaining[site] -= use[query, level] - use[query, added[query]]
            remaining[pop] -= pop_use[query, level] - pop_use[query, added[query]]
            added[query] = level
    return best
