"""Exchange of levels at a site: one query becomes finer, alone or with another one that becomes coarser."""

from __future__ import annotations

from typing import Final, NamedTuple

from planner.arrays import Floats, Ints
from planner.compiled import inner, kernel, run_small_in_python
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
                queries = Site(added[site], value[site], use[site], pop_use[site])
                pop = site_pop(site, pop_of, len(added))
                gain = _change_best_pair(site, pop, remaining, queries, 1e-12 * total)
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


class Change(NamedTuple):
    """Change of the level of one query, or of two; -1 for none, and its gain, USD."""

    gain: float
    finer: int
    finer_level: int
    coarser: int
    coarser_level: int


class Site(NamedTuple):
    """Queries of one site, as in `Separate`.

    added                (n,) their levels
    value, use, pop_use  (n, L)
    """

    added: Ints
    value: Floats
    use: Floats
    pop_use: Floats


@inner
def _change_best_pair(site: int, pop: int, remaining: Floats, queries: Site, min_gain: float) -> float:
    """Change the level of one query, or of two, for the greatest gain above the least; return it, or 0."""
    added, use, pop_use = queries.added, queries.use, queries.pop_use
    count, levels = queries.value.shape
    best = Change(min_gain, -1, -1, -1, -1)
    for query in range(count):
        level_now = added[query]
        for level in range(levels):
            gain = queries.value[query, level] - queries.value[query, level_now]
            if gain <= best.gain:
                continue
            need = use[query, level] - use[query, level_now] - remaining[site] - TOLERANCE
            pop_need = pop_use[query, level] - pop_use[query, level_now] - remaining[pop] - TOLERANCE
            if need <= 0 and pop_need <= 0:
                best = Change(gain, query, level, -1, best.coarser_level)
            else:
                best = _find_coarser(queries, Change(gain, query, level, -1, -1), need, pop_need, best)
    if best.finer < 0:
        return 0.0
    for query, level in ((best.finer, best.finer_level), (best.coarser, best.coarser_level)):
        if query >= 0:
            remaining[site] -= use[query, level] - use[query, added[query]]
            remaining[pop] -= pop_use[query, level] - pop_use[query, added[query]]
            added[query] = level
    return best.gain


@inner
def _find_coarser(queries: Site, change: Change, need: float, pop_need: float, best: Change) -> Change:
    """Return the best change of one query to a finer level, with a coarser one that frees its need."""
    added, value, use, pop_use = queries.added, queries.value, queries.use, queries.pop_use
    for other in range(len(added)):
        current = added[other]
        for lower in range(value.shape[1]):
            net = change.gain + value[other, lower] - value[other, current]
            if (
                net > best.gain
                and other != change.finer
                and use[other, current] - use[other, lower] >= need
                and pop_use[other, current] - pop_use[other, lower] >= pop_need
            ):
                best = Change(net, change.finer, change.finer_level, other, lower)
    return best
