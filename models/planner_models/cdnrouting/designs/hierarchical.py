"""Hierarchical partitioning: coarse totals of clusters first, then clients and routes within them."""

from __future__ import annotations

from planner.contract.design import Decision
from planner.options import Options
from planner.search.deadline import Deadline
from planner_models.cdnrouting.designs.decision import decide_by_cost, gap_of, refuse_shortage
from planner_models.cdnrouting.designs.separate import nearest
from planner_models.cdnrouting.plan.flow_problem import (
    Kinds,
    congestion_cost,
    make_flow_problem,
    ratios_of,
    shortest_ratios,
)
from planner_models.cdnrouting.plan.plan import DeliveryPlan, State
from planner_models.cdnrouting.problem.problem import Delivery
from planner_models.flows.convex_flow import solve_convex_flow


@refuse_shortage
def plan(problem: Delivery, *, options: Options = Options()) -> Decision[DeliveryPlan]:
    """Fix each cluster's traffic by proximity, then select clients and routes within these totals.

    The CDN decides how much each cluster serves where clients get the nearest one with capacity. The ISP
    decides which clients that are, and routes, for the least cost of the network.

    source  Mukerjee 2018, 1.1 (hierarchical partitioning by granularity)
    """
    kinds = Kinds.of(problem)
    totals = nearest(kinds, shortest_ratios(problem), options).sum(axis=0)
    solved = solve_convex_flow(
        make_flow_problem(problem, congestion_cost(problem), kinds.choice(totals=totals)),
        options=options,
        gap=gap_of(problem, options),
        deadline=Deadline.of(options),
    )
    state = State(assigned=kinds.to_groups(solved.assigned), ratios=ratios_of(problem, solved))
    return decide_by_cost(problem, state, solved, scope="the clusters' totals", options=options)
