"""Decisions from states: their plan, guarantees and proof."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Concatenate, Final, ParamSpec

import pandas as pd

from planner.contract.design import Decision
from planner.contract.proof import Proof
from planner.formatting import amount
from planner.options import Options
from planner.search.judged import feasible, infeasible, judged
from planner.search.tolerances import STATED_GAP
from planner_models.cdnrouting.plan.delay_bound import default_gap, mean_delay
from planner_models.cdnrouting.plan.metrics import measure, measure_unservable
from planner_models.cdnrouting.plan.plan import DeliveryPlan, State, make_plan
from planner_models.cdnrouting.problem.problem import Delivery
from planner_models.flows.convex_flow_problem import ConvexFlow

P = ParamSpec("P")
Plan = Callable[Concatenate[Delivery, P], Decision[DeliveryPlan]]
SERVICE: Final = frozenset({"clusters", "served", "clients"})
"""Guarantees of all designs."""


def gap_of(problem: Delivery, options: Options) -> float:
    """Return the gap at which searches end."""
    return default_gap(problem) if options.gap is None else options.gap


def refuse_shortage(plan: Plan[P]) -> Plan[P]:
    """Return the function that proves infeasibility where all must be served and capacity is short."""

    @functools.wraps(plan)
    def plan_or_prove(problem: Delivery, /, *args: P.args, **parameters: P.kwargs) -> Decision[DeliveryPlan]:
        options = parameters.get("options")
        if isinstance(options, Options) and options.service == "all":
            lost = measure_unservable(problem)["unserved_mbps"]
            if lost > 1e-6 * problem.offered_mbps:
                reason = f"clusters and paths are too few for {amount(lost, 'Mbit/s')} of the traffic"
                return Decision(plan=None, proof=infeasible(reason))
        return plan(problem, *args, **parameters)

    return plan_or_prove


def decide_by_delay(
    problem: Delivery, state: State, solved: ConvexFlow, *, options: Options
) -> Decision[DeliveryPlan]:
    """Return the decision of a state of least mean delay, with its bound on all plans."""
    plan = make_plan(problem, [state])
    objective = measure(problem, plan, None)["mean_delay_ms"]
    bound = mean_delay(problem, max(solved.bound, 0.0))
    assert objective is not None
    proof = judged(
        "min",
        objective,
        min(bound, objective),
        gap=STATED_GAP if options.gap is None else options.gap,
        metric="mean_delay_ms",
        backend=solved.backend,
        is_cut=solved.is_cut,
    )
    return Decision(plan=plan, proof=proof, guarantees=SERVICE)


def decide_by_cost(
    problem: Delivery, state: State, solved: ConvexFlow, *, scope: str, options: Options
) -> Decision[DeliveryPlan]:
    """Return the decision of a state of least cost of the network, with its bound within a scope."""
    plan = make_plan(problem, [state])
    objective = measure(problem, plan, None)["isp_cost"]
    assert objective is not None
    proof = judged(
        "min",
        objective,
        min(max(solved.bound, 0.0), objective),
        gap=STATED_GAP if options.gap is None else options.gap,
        metric="isp_cost",
        bound_scope=scope or None,
        backend=solved.backend,
        is_cut=solved.is_cut,
    )
    return Decision(plan=plan, proof=proof, guarantees=SERVICE)


def decide_without_bound(
    problem: Delivery, states: Sequence[State], *, rounds: pd.DataFrame | None = None
) -> Decision[DeliveryPlan]:
    """Return the decision of states that no bound is proven for."""
    plan = make_plan(problem, states, rounds=rounds)
    proof: Proof = feasible()
    return Decision(plan=plan, proof=proof, guarantees=SERVICE)
