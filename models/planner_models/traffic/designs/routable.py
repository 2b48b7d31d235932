"""Demands without a path: every design leaves them out and lists them as shed."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Concatenate, Final, ParamSpec

import numpy as np
import scipy.sparse as sp

from planner.arrays import Bools
from planner.contract.design import Decision
from planner.contract.proof import Status
from planner.contract.tables import shorten_faults
from planner.formatting import number
from planner.options import Options
from planner.search.judged import infeasible, optimal
from planner_models.traffic.plan.classes import divide_among_classes, merge_classes
from planner_models.traffic.plan.plan import Routing, list_shed, routing_by_target
from planner_models.traffic.problem.problem import Traffic
from planner_models.traffic.problem.routable_demands import has_route

ZERO_WHERE_LEFT_OUT: Final = {
    "concurrent_flow": "the concurrent flow",
    "min_rate_share": "the smallest share",
    "geometric_rate_share": "the geometric mean of all shares",
}
"""Metrics of shares of demands that are 0 where one demand gets nothing, in words."""

P = ParamSpec("P")
Decide = Callable[Concatenate[Traffic, P], Decision[Routing]]


def shed_unreachable(decide: Decide[P]) -> Decide[P]:
    """Return the deciding function that routes the demands with a path, and lists the others as shed.

    It decides without regard to classes: demands of a pair are one, and its classes take the same routes.
    """
    return _wrap(decide, is_alike=lambda _: True)


def shed_unreachable_within_limits(decide: Decide[P]) -> Decide[P]:
    """Return the same for a design that keeps latency limits.

    Where classes of a pair have different limits, each class takes routes of its own.
    """
    return _wrap(decide, is_alike=lambda problem: not problem.has_limits_by_class)


def shed_unreachable_by_demand(decide: Decide[P]) -> Decide[P]:
    """Return the same for a design that is fair among demands: each class is a demand of its own."""
    return _wrap(decide, is_alike=lambda _: False)


def shed_unreachable_in_turn(decide: Decide[P]) -> Decide[P]:
    """Return the same for a design that reads the routes of each demand in the plan before, by its class."""
    return _wrap(decide, is_alike=lambda _: False, reads_classes=True)


def _wrap(
    decide: Decide[P], *, is_alike: Callable[[Traffic], bool], reads_classes: bool = False
) -> Decide[P]:
    """Return the deciding function for all demands.

    is_alike       whether classes of a pair are decided as one demand
    reads_classes  whether it reads the routes of classes in the plan before
    """

    @functools.wraps(decide)
    def decide_for_routable(problem: Traffic, /, *args: P.args, **parameters: P.kwargs) -> Decision[Routing]:
        if problem.has_classes and is_alike(problem):
            decide_merged = functools.partial(decide_for_routable, problem.merged, *args)
            return _decide_without_classes(problem, decide_merged, parameters)
        if problem.has_classes and parameters.get("previous") is not None and not reads_classes:
            parameters["previous"] = None  # searches start from routes of pairs
        options = parameters.get("options")
        if isinstance(options, Options) and options.service == "all" and problem.unreachable.any():
            return refuse_demands(problem, problem.unreachable, "has no path")
        if not len(problem.links):  # every plan delivers nothing
            plan = routing_by_target(problem, sp.csr_array((len(problem.targets), 0)))
            proof = optimal(0.0, metric="delivered_mbps")
            return Decision(plan=plan, proof=proof)
        decision = decide(problem.routable, *args, **parameters)
        return (
            decision if problem.routable is problem else shed_demands(problem, problem.unreachable, decision)
        )

    return decide_for_routable


def _decide_without_classes(
    problem: Traffic, decide_merged: Callable[..., Decision[Routing]], parameters: dict[str, Any]
) -> Decision[Routing]:
    """Return the decision on pairs of nodes, whose plan is divided among the classes of each.

    decide_merged  decides on the problem without classes
    """
    previous = parameters.get("previous")
    if isinstance(previous, Decision) and previous.plan is not None:
        merged = merge_classes(problem, previous.plan)
        parameters = parameters | {"previous": replace(previous, plan=merged)}
    decision = decide_merged(**parameters)
    if decision.plan is None:
        return decision
    is_fair = decision.proof.metric == "concurrent_flow"
    return replace(decision, plan=divide_among_classes(problem, decision.plan, is_fair=is_fair))


def refuse_demands(problem: Traffic, left_out: Bools, reason: str) -> Decision[Routing]:
    """Return the decision that not all demand can be served, with the demands (K,) and the reason."""
    names = [problem.demand_labels[k] for k in np.flatnonzero(left_out)]
    reasons = shorten_faults([f"demand {name} {reason}" for name in names], "demands", "without a path")
    return Decision(plan=None, proof=infeasible(*reasons))


def without_share(
    problem: Traffic, left_out: Bools, decision: Decision[Routing], reason: str
) -> Decision[Routing]:
    """Return the decision in which demands, (K,), get nothing, although other plans could serve some of them.

    The smallest share of all demands and the geometric mean of their shares are 0 then: the proof says which
    demands are the reason, and what it is for the others. Demands that no plan can serve do not count.
    """
    proof = decision.proof
    lacking = np.flatnonzero(left_out & has_route(problem))
    if not len(lacking) or proof.objective is None or proof.metric not in ZERO_WHERE_LEFT_OUT:
        return decision
    names = [problem.demand_labels[k] for k in lacking.tolist()]
    count = f"demand {names[0]}" if len(names) == 1 else f"{len(names):,} demands, such as {names[0]},"
    verb = reason if len(names) == 1 else reason.replace("has ", "have ", 1).replace(" its ", " their ")
    what, others = ZERO_WHERE_LEFT_OUT[proof.metric], number(proof.objective)
    said = f"{count} {verb}, so {what} is 0; of the others it is {others}"
    proof = replace(proof, status=Status.OPTIMAL, objective=0.0, bound=0.0, reasons=(*proof.reasons, said))
    return replace(decision, proof=proof)


def shed_demands(problem: Traffic, left_out: Bools, decision: Decision[Routing]) -> Decision[Routing]:
    """Return the decision with the demands `left_out`, (K,), listed as shed besides its own."""
    if decision.plan is None:
        return decision
    missing = np.where(left_out, problem.rate_mbps, 0.0)
    if decision.plan.shed is not None:
        demands = problem.find_demands(decision.plan.shed)
        missing[demands] += decision.plan.shed["rate_mbps"].to_numpy(float)
    plan = replace(decision.plan, shed=list_shed(problem, problem.rate_mbps - missing))
    return replace(decision, plan=plan)
