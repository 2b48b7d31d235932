"""The shortest routes among all plans with the same utilization: a second objective after the first.

Column generation takes any routes that keep the busiest link as it is. Of all these plans, the simplex method
over paths finds the one with the least sum of routing metric times load. That is the least cost, where links
cost their metric, and each has its capacity times the utilization of the busiest link.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from planner.contract.design import Decision
from planner.options import Options
from planner.search.deadline import Deadline
from planner.search.tolerances import ROUNDING
from planner_models.flows.least_cost_flow import LeastCostFlow
from planner_models.graphs.indexing import sum_by_index
from planner_models.traffic.designs.path_flows.path_flow_plan import make_plan
from planner_models.traffic.designs.path_flows.total_flow import MAX_SIMPLEX_LINKS
from planner_models.traffic.plan.plan import Routing
from planner_models.traffic.problem.problem import Traffic

SAME_UTILIZATION: Final = ROUNDING  # relative difference that may be rounding


def shorten(problem: Traffic, decision: Decision[Routing], options: Options = Options()) -> Decision[Routing]:
    """Return a decision that serves all demands, with the shortest routes of the same utilization.

    The proof stays. So does the plan where the time is short, or where the network has more than 800 links,
    which the simplex method takes too long for.

    decision  for the largest concurrent flow, at least 1, or for the smallest utilization
    """
    if decision.plan is None or not 0 < len(problem.links) <= MAX_SIMPLEX_LINKS:
        return decision
    deadline = Deadline.of(options)
    busiest = float(decision.plan.links["utilization"].max())
    search = LeastCostFlow(problem, capacity_mbps=busiest * problem.capacity_mbps)
    if not search.minimize_cost(deadline, problem.weight):
        return decision
    plan = _make_plan(problem, search)
    is_within = float(plan.links["utilization"].max()) <= busiest * (1 + SAME_UTILIZATION)
    is_shorter = _length(problem, plan) < _length(problem, decision.plan)
    return replace(decision, plan=plan) if is_within and is_shorter else decision


def _make_plan(problem: Traffic, search: LeastCostFlow) -> Routing:
    """Return the plan of a search with the traffic of each demand scaled to its exact rate."""
    flow = search.path_flow()
    sent = sum_by_index(flow.demand, flow.flow, len(search.order))
    scale = problem.rate_mbps[search.order] / np.where(sent > 0, sent, np.inf)
    return make_plan(problem, search.order, replace(flow, flow=flow.flow * scale[flow.demand]))


def _length(problem: Traffic, plan: Routing) -> float:
    """Return the sum of routing metric times load over the links."""
    return float(problem.weight @ plan.links["load_mbps"].to_numpy(float))
