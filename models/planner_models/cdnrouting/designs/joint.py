"""Clusters and routes together, for the least mean delay of all traffic or the least cost of the network."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Literal

from pydantic import Field

from planner.contract.design import Decision
from planner.contract.progress import report
from planner.options import Options
from planner.search.deadline import Deadline
from planner_models.cdnrouting.designs.decision import (
    decide_by_cost,
    decide_by_delay,
    gap_of,
    refuse_shortage,
)
from planner_models.cdnrouting.plan.delay_bound import mean_delay
from planner_models.cdnrouting.plan.flow_problem import (
    Kinds,
    congestion_cost,
    delay_cost,
    make_flow_problem,
    ratios_of,
)
from planner_models.cdnrouting.plan.plan import DeliveryPlan, State
from planner_models.cdnrouting.problem.problem import Delivery
from planner_models.flows.convex_flow import solve_convex_flow

Objective = Annotated[
    Literal["delay", "isp_cost"],
    Field(description="delay: mean delay of all traffic; isp_cost: congestion cost of the network"),
]


@refuse_shortage
def plan(
    problem: Delivery, *, objective: Objective = "delay", options: Options = Options()
) -> Decision[DeliveryPlan]:
    """Plan clusters and routes together by column generation with tangents, with a proven bound.

    Ends at `options.gap`, by default 0.01% or 0.1% of large networks, or at a time limit with the incumbent
    and its bound.
    """
    kinds = Kinds.of(problem)
    is_delay = objective == "delay"
    cost = delay_cost(problem) if is_delay else congestion_cost(problem)
    solved = solve_convex_flow(
        make_flow_problem(problem, cost, kinds.choice()),
        options=options,
        gap=gap_of(problem, options),
        deadline=Deadline.of(options),
        observe=partial(_report, problem) if is_delay else None,
    )
    state = State(assigned=kinds.to_groups(solved.assigned), ratios=ratios_of(problem, solved))
    if is_delay:
        return decide_by_delay(problem, state, solved, options=options)
    return decide_by_cost(problem, state, solved, scope="", options=options)


def _report(problem: Delivery, objective: float, bound: float) -> None:
    """Report the incumbent and the bound as mean delays."""
    report("mean_delay_ms", mean_delay(problem, objective), mean_delay(problem, max(bound, 0.0)))
