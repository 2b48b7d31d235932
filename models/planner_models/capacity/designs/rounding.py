"""Rounding: fractional purchases by cutting planes, rounded up link by link to the cheapest modules."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from planner.arrays import Floats
from planner.contract.design import Decision
from planner.options import Options
from planner.search.tolerances import ROUNDING
from planner_models.capacity.designs.cutting_planes import Master
from planner_models.capacity.designs.decision import Proven, decide
from planner_models.capacity.designs.greedy import (
    PurchaseSearch,
    largest_later,
    lasting_cost,
    on_lines_later,
)
from planner_models.capacity.plan.check import least_shed
from planner_models.capacity.plan.plan import Purchases
from planner_models.capacity.problem.problem import CapacityPlanning
from planner_models.capacity.routing import capacity_by_year

KEPT: Final = frozenset({"limits", "capacity"})
MOST_NODES = 20_000
"""Partial choices that are tried for a link; after them the best one found is kept."""


def plan(problem: CapacityPlanning, *, options: Options = Options()) -> Decision[Purchases]:
    """Round the linear relaxation up: each link gets the cheapest modules for its fractional capacity.

    Then modules that are not needed are dropped. The relaxation bounds the cost of every plan that delivers
    all. With a budget, the plan may cost more.
    """
    unlimited = problem.without_budget()
    master = Master(unlimited, options)
    must = least_shed(unlimited)
    relaxed = master.iterate(allowed=must, integer=False)
    counts = np.zeros((len(problem.year_numbers), len(problem.options.link)))
    if relaxed is None:
        return decide(problem, counts, options=options, guarantees=KEPT)
    search = PurchaseSearch.start(unlimited, master.program)
    search.counts = round_up(unlimited, relaxed.counts)
    search.climb()
    search.drop()
    return decide(
        problem,
        search.counts,
        options=options,
        guarantees=KEPT,
        proven=Proven(
            least_unserved=float(must.max(initial=0.0)) if problem.budget is None else None,
            least_cost=relaxed.bound,
            backend="cutting planes",
            is_cut=master.deadline.is_over,
        ),
    )


def round_up(problem: CapacityPlanning, fractional: Floats) -> Floats:
    """Return the cheapest whole modules with the capacity of fractional ones in each year, (Y, M)."""
    target = capacity_by_year(problem, fractional)
    counts = np.zeros_like(fractional)
    for year in range(len(counts)):
        have = capacity_by_year(problem, counts)[year]
        gap = target[year] - have
        for line in np.flatnonzero(gap > 1e-7 * np.maximum(target[year], 1.0)).tolist():
            counts[year] += cheapest_modules(problem, line, float(gap[line]), counts, year)
    return counts


def cheapest_modules(
    problem: CapacityPlanning, line: int, gap_mbps: float, counts: Floats, year: int
) -> Floats:
    """Return the additional modules of a link for `gap_mbps` more capacity, at the least cost, (M,).

    Where the limits allow less than that, it is as much as they allow. Leased modules cost what they cost
    from the year to the end.

    counts  (Y, M) modules that are bought already, which count against the limits
    year    index of the year from which the capacity is needed
    """
    more = np.zeros(len(problem.options.link))
    kinds = np.flatnonzero(problem.options.link == line)
    if gap_mbps <= 0 or not len(kinds):
        return more
    size, cost = problem.options.size[kinds], lasting_cost(problem, year)[kinds]
    remaining = np.maximum(problem.options.limit[kinds] - largest_later(problem, counts, year)[kinds], 0.0)
    if problem.one_module:
        remaining = np.where(on_lines_later(problem, counts, year)[kinds] > 0, 0.0, remaining)
        able = np.flatnonzero(remaining > 0)
        enough = able[size[able] >= gap_mbps * (1 - ROUNDING)]
        if len(enough):
            more[kinds[enough[np.lexsort((-size[enough], cost[enough]))[0]]]] = 1
        elif len(able):
            more[kinds[able[np.argmax(size[able])]]] = 1
        return more
    order = np.argsort(-size, kind="stable")
    more[kinds[order]] = _cover(size[order], cost[order], remaining[order], gap_mbps * (1 - ROUNDING))
    return more


def _cover(size: Floats, cost: Floats, limit: Floats, gap: float) -> Floats:
    """Return the cheapest counts with sizes that add up to a gap; all of them if they do not."""
    if float(np.where(np.isinf(limit), np.inf, limit * size).sum()) < gap:
        return limit.copy()
    # cheapest cost per unit among the kinds from each on, a bound on what the rest costs
    rate = np.minimum.accumulate((cost / size)[::-1])[::-1]
    best_cost, best = math.inf, limit.copy()
    tried = 0
    stack: list[tuple[int, float, float, tuple[float, ...]]] = [(0, gap, 0.0, ())]
    while stack and tried < MOST_NODES:
        kind, remaining, spent, counts = stack.pop()
        tried += 1
        if remaining <= 0:
            if spent < best_cost:
                best_cost, best = spent, np.array([*counts, *[0.0] * (len(size) - len(counts))])
            continue
        if kind == len(size) or spent + remaining * rate[kind] >= best_cost:
            continue
        largest = min(math.ceil(remaining / size[kind] - ROUNDING), limit[kind])
        smallest = 0.0 if kind + 1 < len(size) else largest
        stack += [  # the largest count is tried first
            (kind + 1, remaining - count * size[kind], spent + count * cost[kind], (*counts, count))
            for count in np.arange(smallest, largest + 1).tolist()
        ]
    return best
