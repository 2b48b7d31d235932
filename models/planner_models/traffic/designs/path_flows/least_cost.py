"""Least cost among routings that deliver the most, by the simplex method over paths.

The shortest routes among all plans with the same utilization are a second objective after the first: column
generation takes any routes that keep the busiest link as it is. Of all these plans, the simplex method
over paths finds the one with the least sum of routing metric times load. That is the least cost, where links
cost their metric, and each has its capacity times the utilization of the busiest link.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from planner.contract.design import Decision
from planner.contract.proof import relative_gap
from planner.options import Options
from planner.search.deadline import Deadline
from planner.search.judged import judged
from planner.search.tolerances import OPTIMALITY, ROUNDING
from planner_models.flows.least_cost_flow import LeastCostFlow
from planner_models.flows.link_flow_program import link_cost
from planner_models.flows.path_flow_program import CandidatePaths
from planner_models.flows.previous_routes import PreviousRoutes
from planner_models.flows.problem import MIN_GAP
from planner_models.graphs.indexing import sum_by_index
from planner_models.traffic.designs.path_flows.total_flow import MAX_SIMPLEX_LINKS
from planner_models.traffic.plan.flow_decision import refuse_solver_options, routing_of_paths
from planner_models.traffic.plan.plan import Routing
from planner_models.traffic.problem.problem import Traffic

DEFAULT_GAP: Final = OPTIMALITY  # relative, where options give none
BACKEND: Final = "primal simplex over paths"
PLAN_S_PER_DEMAND: Final = 3e-6  # of the time limit, reserved for the tables of the plan
SAME_UTILIZATION: Final = ROUNDING  # relative difference that may be rounding


def route(
    problem: Traffic,
    *,
    paths: CandidatePaths | None = None,
    scope: str | None = None,
    options: Options = Options(),
    previous: Decision[Routing] | None = None,
) -> Decision[Routing]:
    """Search for the least cost among routings that deliver the most, over all routes or given paths.

    Routes of `previous` are in the first basis. At a time limit it returns the routing so far; without a
    proof that it delivers the most, without a bound.

    returns  Decision with a Routing within the capacities
    raises   InputError for a backend or an algorithm: it is its own solver; and for links without a cost
    """
    refuse_solver_options("columns", options)
    deadline = Deadline.of(options).reserve(PLAN_S_PER_DEMAND * len(problem.demands))
    plan = None if previous is None else previous.plan
    start = None if plan is None else PreviousRoutes.of(problem, plan)
    if start is not None and paths is not None:
        start = start.among(paths)
    search = LeastCostFlow(problem, paths, start=start)
    delivers_most = search.minimize_cost(deadline)
    plan = routing_of_paths(problem, search.order, search.best or search.path_flow())
    cost = float(link_cost(problem) @ plan.links["load_mbps"].to_numpy(float))
    bound = search.bound
    if bound is not None and not delivers_most:
        bound = min(bound, cost)  # what delivers less may cost less
    if bound is not None and abs(cost - bound) <= MIN_GAP * max(cost, 1e-9):
        bound = cost
    gap = relative_gap(cost, bound)
    is_optimal = delivers_most and gap is not None and gap <= max(options.gap or DEFAULT_GAP, MIN_GAP)
    proof = judged(
        "min",
        cost,
        bound,
        is_optimal=is_optimal,
        metric="cost",
        bound_scope=scope or ("plans that deliver the most" if search.leaves_out else None),
        backend=BACKEND,
    )
    return Decision(plan=plan, proof=proof, guarantees=frozenset({"capacity", "demand"}))


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
    return routing_of_paths(problem, search.order, replace(flow, flow=flow.flow * scale[flow.demand]))


def _length(problem: Traffic, plan: Routing) -> float:
    """Return the sum of routing metric times load over the links."""
    return float(problem.weight @ plan.links["load_mbps"].to_numpy(float))
