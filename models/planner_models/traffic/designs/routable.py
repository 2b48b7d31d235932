"""Demands without a path: every design leaves them out and lists them as shed."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import replace
from typing import Concatenate, ParamSpec

import numpy as np

from planner.contract.design import Decision
from planner.contract.proof import Proof, Status
from planner.contract.tables import shorten_faults
from planner.options import Options
from planner_models.traffic.plan.plan import Routing, list_shed
from planner_models.traffic.problem.problem import Traffic

P = ParamSpec("P")
Decide = Callable[Concatenate[Traffic, P], Decision[Routing]]


def shed_unreachable(decide: Decide[P]) -> Decide[P]:
    """Return the deciding function that routes the demands with a path, and lists the others as shed."""

    @functools.wraps(decide)
    def decide_for_routable(problem: Traffic, /, *args: P.args, **parameters: P.kwargs) -> Decision[Routing]:
        options = parameters.get("options")
        if isinstance(options, Options) and options.service == "all" and problem.unreachable.any():
            names = [problem.demand_labels[k] for k in np.flatnonzero(problem.unreachable)]
            reasons = shorten_faults(
                [f"demand {name} has no path" for name in names], "demands", "without a path"
            )
            return Decision(plan=None, proof=Proof(status=Status.INFEASIBLE, reasons=tuple(reasons)))
        decision = decide(problem.routable, *args, **parameters)
        if decision.plan is None or problem.routable is problem:
            return decision
        left_out = np.where(problem.unreachable, problem.rate_mbps, 0.0)
        if decision.plan.shed is not None:
            found = problem.find_demands(decision.plan.shed)
            left_out[found] += decision.plan.shed["rate_mbps"].to_numpy(float)
        plan = replace(decision.plan, shed=list_shed(problem, problem.rate_mbps - left_out))
        return replace(decision, plan=plan)

    return decide_for_routable
