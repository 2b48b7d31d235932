"""Rounding: the best fractional purchases by cutting planes, rounded up link by link."""

from __future__ import annotations

from typing import Final

import numpy as np

from planner.arrays import Floats
from planner.contract.design import Decision
from planner.options import Options
from planner_models.capacity.designs.cutting_planes import Master
from planner_models.capacity.designs.decision import Proven, decide
from planner_models.capacity.designs.greedy import PurchaseSearch
from planner_models.capacity.designs.module_choice import cheapest_modules
from planner_models.capacity.plan.check import least_shed
from planner_models.capacity.plan.plan import Purchases
from planner_models.capacity.problem.problem import CapacityPlanning
from planner_models.capacity.routing import capacity_by_year

KEPT: Final = frozenset({"limits", "capacity"})


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
            counts[year] += cheapest_modules(problem, line, float(gap[line]), counts.sum(axis=0))
    return counts
