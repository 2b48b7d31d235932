"""Two-way priority ranking: the CDN offers clusters for each location; the ISP selects and routes."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from pydantic import Field

from planner.arrays import Bools
from planner.contract.design import Decision
from planner.options import Options
from planner.search.deadline import Deadline
from planner_models.cdnrouting.designs.decision import decide_by_cost, gap_of, refuse_shortage
from planner_models.cdnrouting.designs.isp_ranks import first_of, stated_ranks
from planner_models.cdnrouting.designs.path_usage import PathUsage
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

Offered = Annotated[int, Field(ge=1, le=10_000, description="clusters that the CDN offers to each location")]


@refuse_shortage
def plan(problem: Delivery, *, k: Offered = 2, options: Options = Options()) -> Decision[DeliveryPlan]:
    """Let the ISP select among the k clusters that the CDN ranks first for each location, and route.

    The CDN ranks by latency at rest, or as its ranks in the problem's table say. It also offers the clusters
    that it would use alone within their capacities, so that all clients are served. Clusters and routes have
    the least cost of the network.

    source  Mukerjee 2018, chapter 3 (VDX), applied to the example of 1.1
    """
    kinds = Kinds.of(problem)
    solved = solve_convex_flow(
        make_flow_problem(problem, congestion_cost(problem), kinds.choice(allowed=offers(kinds, k, options))),
        options=options,
        gap=gap_of(problem, options),
        deadline=Deadline.of(options),
    )
    state = State(assigned=kinds.to_groups(solved.assigned), ratios=ratios_of(problem, solved))
    scope = f"the clusters on offer for k = {k}"
    return decide_by_cost(problem, state, solved, scope=scope, options=options)


def offers(kinds: Kinds, k: int, options: Options = Options()) -> Bools:
    """Return whether the CDN offers a cluster to a kind of clients, (K, S)."""
    ratios = shortest_ratios(kinds.problem)
    ranked = stated_ranks(kinds, "cdn")
    if ranked is None:
        ranked = PathUsage.of(kinds, ratios).latency(kinds.problem.network.latency)
    count = np.full(len(kinds.amount), k, dtype=np.int64)
    used = nearest(kinds, ratios, options) > 0
    return np.asarray(first_of(kinds, ranked, count) | used)
