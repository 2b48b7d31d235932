"""Greedy purchases: the module that saves most for its cost, again and again, until all demands fit."""

from __future__ import annotations

from typing import Final

from planner.contract.design import Decision
from planner.options import Options
from planner.search.deadline import Deadline
from planner_models.capacity.designs.decision import decide
from planner_models.capacity.plan.plan import Purchases
from planner_models.capacity.plan.purchase_search import PurchaseSearch
from planner_models.capacity.problem.problem import CapacityPlanning

KEPT: Final = frozenset({"limits", "capacity", "budget"})


def plan(problem: CapacityPlanning, *, options: Options = Options()) -> Decision[Purchases]:
    """Buy the module that makes most traffic fit for its cost, until all fits; then drop unnecessary ones.

    What a module saves is found by the dual prices of the linear program of what fits in a state. At the time
    limit, the purchases so far are the plan: it may leave demand unserved, or modules that are not needed.
    """
    search = PurchaseSearch.start(problem, deadline=Deadline.of(options))
    search.climb()
    search.drop()
    return decide(problem, search.counts, options=options, guarantees=KEPT, is_cut=search.is_cut)
