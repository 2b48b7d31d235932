"""Nash bargaining: the plan on the front of both parties' costs that gains most over their reaction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final

import numpy as np
import pandas as pd
from pydantic import Field

from planner.contract.design import Decision
from planner.options import Options
from planner.search.deadline import NEVER, Deadline
from planner.search.judged import feasible
from planner.search.tolerances import COARSE_GAP
from planner_models.cdnrouting.designs.decision import SERVICE, refuse_shortage
from planner_models.cdnrouting.designs.reaction import Rounds, react_informed
from planner_models.cdnrouting.plan.check import evaluate
from planner_models.cdnrouting.plan.flow_problem import (
    Kinds,
    congestion_cost,
    delay_cost,
    make_flow_problem,
    ratios_of,
)
from planner_models.cdnrouting.plan.plan import DeliveryPlan, State, make_plan
from planner_models.cdnrouting.problem.problem import Delivery
from planner_models.flows.convex_flow import solve_convex_flow
from planner_models.flows.link_cost import WeightedCost

Points = Annotated[
    int, Field(ge=1, le=200, description="points of the front, between the ISP's optimum and least delay")
]
GUARANTEED: Final = SERVICE | {"outcome"}
REACTION_SHARE: Final = 0.4
"""Share of the time limit for the reaction that a bargain starts from."""


@dataclass(frozen=True, kw_only=True, eq=False)
class FrontPoint:
    """One plan of the front: its weight of the ISP's cost, its costs, and its state."""

    weight: float
    isp_cost: float
    cdn_delay_ms: float
    state: State


@refuse_shortage
def plan(
    problem: Delivery, *, rounds: Rounds = 10, points: Points = 7, options: Options = Options()
) -> Decision[DeliveryPlan]:
    """Select the plan of the front with the largest product of both parties' gains over their reaction.

    The front has the plans of least weighted sum of the network's cost and all traffic's delay, a convex
    surrogate: the delay of the CDN's traffic alone is not convex in clusters and routes. Where no point is
    better for both, the outcome of the reaction itself is the plan.

    source  Jiang et al. 2009, 5 (Nash bargaining between CDN and ISP); Nash 1950
    """
    kinds, deadline = Kinds.of(problem), Deadline.of(options)
    course = react_informed(kinds, rounds=rounds, options=options, deadline=deadline.share(REACTION_SHARE))
    final = course.final
    reaction = State(assigned=kinds.to_groups(final.assigned), ratios=final.ratios)
    start = measure_state(problem, reaction)
    scale = start.isp_cost, float(delay_cost(problem).value(final.load).sum())
    candidates = front(kinds, points, options, scale, deadline)
    better = [
        point
        for point in candidates
        if point.isp_cost <= start.isp_cost and point.cdn_delay_ms <= start.cdn_delay_ms
    ]
    selected = max(better, key=lambda point: nash_product(start, point), default=start)
    if nash_product(start, selected) <= 0:
        selected = start
    outcome = pd.DataFrame({"isp_cost": [start.isp_cost], "cdn_delay_ms": [start.cdn_delay_ms]})
    columns = {
        name: [getattr(point, name) for point in candidates]
        for name in ("weight", "isp_cost", "cdn_delay_ms")
    }
    decided = make_plan(problem, [selected.state], outcome=outcome, front=pd.DataFrame(columns))
    return Decision(plan=decided, proof=feasible(bound_scope="points on the front"), guarantees=GUARANTEED)


def nash_product(start: FrontPoint, point: FrontPoint) -> float:
    """Return the product of both parties' gains over the start."""
    return (start.isp_cost - point.isp_cost) * (start.cdn_delay_ms - point.cdn_delay_ms)


def measure_state(problem: Delivery, state: State, weight: float = np.nan) -> FrontPoint:
    """Return the costs of both parties in a state."""
    evaluation = evaluate(problem, make_plan(problem, [state]))[0]
    return FrontPoint(
        weight=weight,
        isp_cost=evaluation.isp_cost,
        cdn_delay_ms=evaluation.cdn_delay_ms or 0.0,
        state=state,
    )


def front(
    kinds: Kinds, points: int, options: Options, scale: tuple[float, float], deadline: Deadline = NEVER
) -> list[FrontPoint]:
    """Return points of the front, from the ISP's optimum to the least delay of all traffic.

    scale  the network's cost, and all traffic's delay, that count the same at a weight of 1/2
    """
    problem = kinds.problem
    result: list[FrontPoint] = []
    trees = None
    cost, delay = (max(value, 1e-300) for value in scale)
    for weight in np.linspace(1.0, 0.0, points):
        weighted = WeightedCost(
            first=congestion_cost(problem),
            second=delay_cost(problem),
            weight=weight / cost,
            other_weight=(1 - weight) / delay,
        )
        solved = solve_convex_flow(
            make_flow_problem(problem, weighted, kinds.choice()),
            options=options,
            gap=COARSE_GAP,
            start=trees,
            deadline=deadline,
        )
        trees = solved.trees
        state = State(assigned=kinds.to_groups(solved.assigned), ratios=ratios_of(problem, solved))
        result.append(measure_state(problem, state, float(weight)))
        if deadline.is_over:
            break
    return result
