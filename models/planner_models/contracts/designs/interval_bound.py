"""Bound on the bill of one region by branching on the sum of its billed levels.

What a free window adds is limited by what the levels leave of its traffic, which depends on their sum alone.
Where the sum is known to lie in an interval, the relaxation cannot share a free window out among several
windows that each need only a part of it. Intervals are halved, the one of the least bound first.

source  Land and Doig, Econometrica 1960 (branch and bound)
"""

from __future__ import annotations

import heapq
from typing import Final, NamedTuple

from planner import backends
from planner.arrays import Floats
from planner.contract.proof import Status
from planner.options import Options
from planner.search.deadline import Deadline
from planner_models.contracts.designs import program
from planner_models.contracts.designs.program import Region

GROUPS: Final = 60  # of windows
MOST_INTERVALS: Final = 120


class IntervalBound(NamedTuple):
    """A bound on the bill, and levels (N,) of the relaxation of the interval that it comes from."""

    bound: float
    level: Floats | None


def find_bound(
    region: Region, *, lower: float, enough: float, options: Options, deadline: Deadline
) -> IntervalBound:
    """Return a bound on the bill of the region, at least `lower`.

    lower      a bound that is proven already
    enough     bound at which the search stops
    deadline   when the search ends
    """
    paid = ~region.is_mean
    lowest, highest = (float(limit[paid].sum()) for limit in region.level_limits)
    open_intervals: list[tuple[float, float, float, Floats | None]] = [(lower, lowest, highest, None)]
    for _ in range(MOST_INTERVALS):
        bound, low, high, level = open_intervals[0]
        if bound >= enough or deadline.is_over or high - low <= 1e-6 * max(highest, 1.0):
            break
        heapq.heappop(open_intervals)
        middle = (low + high) / 2
        for interval in ((low, middle), (middle, high)):
            entry: tuple[float, float, float, Floats | None]
            built = program.build(region, groups=GROUPS, total=interval)
            solution = backends.solve(built.program, options)
            if solution.x is not None and solution.bound is not None:
                entry = (max(bound, solution.bound), *interval, built.level.values(solution.x))
            elif solution.status is Status.INFEASIBLE:
                continue
            else:
                entry = (bound, *interval, level)
            heapq.heappush(open_intervals, entry)
        if not open_intervals:
            return IntervalBound(lower, None)
    bound, _, _, level = open_intervals[0]
    return IntervalBound(bound, level)
