"""Designs over paths without linear programs: the largest total flow, the least cost, the shortest routes.

The least cost among routings that deliver the most comes from the simplex method over paths
(`least_cost_flow`), or for very many demands, to a gap, from the augmented Lagrangian (`total_flow`).

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
from planner_models.flows import total_flow
from planner_models.flows.augmented_lagrangian import TotalFlow
from planner_models.flows.least_cost_flow import LeastCostFlow
from planner_models.flows.link_flow_program import link_cost
from planner_models.flows.path_flow_program import CandidatePaths
from planner_models.flows.previous_routes import PreviousRoutes
from planner_models.flows.problem import MIN_GAP
from planner_models.flows.total_flow import DEFAULT_GAP, MAX_SIMPLEX_LINKS, find_total_flow
from planner_models.graphs.indexing import sum_by_index
from planner_models.traffic.plan.flow_decision import refuse_solver_options, routing_of_paths
from planner_models.traffic.plan.plan import Routing
from planner_models.traffic.problem.problem import Traffic

LAGRANGIAN: Final = "augmented Lagrangian"
SIMPLEX: Final = "primal simplex over paths"
PLAN_S_PER_DEMAND: Final = 3e-6  # of the time limit, reserved for the tables of the plan
TOTAL_SHARE: Final = 0.3  # of the time limit, for the largest total flow before the least cost
PROVEN_FLOW: Final = OPTIMALITY  # relative: so much less than the bound is the most
SAME_UTILIZATION: Final = ROUNDING  # relative difference that may be rounding


def route_most(
    problem: Traffic,
    *,
    exact: bool = True,
    options: Options = Options(),
    previous: Decision[Routing] | None = None,
) -> Decision[Routing]:
    """Search for the largest total flow over all routes.

    Stops at `options.gap`, by default 1e-6, or where the gap stalls; at a time limit it returns the incumbent
    with its bound. It starts from the routes of `previous`, if any. `problem` must have a demand with a rate
    and a path.

    exact    where the gap is left after 60 passes, end with the simplex method over paths, on up to 800 links

    returns  Decision with a Routing within the capacities; the bound holds for all routings
    raises   InputError for a backend or an algorithm: it is its own solver
    """
    refuse_solver_options("columns", options)
    deadline = Deadline.of(options).reserve(PLAN_S_PER_DEMAND * len(problem.demands))
    gap = DEFAULT_GAP if options.gap is None else options.gap
    plan = None if previous is None else previous.plan
    start = None if plan is None else PreviousRoutes.of(problem, plan)
    result = find_total_flow(problem, start=start, exact=exact, gap=gap, deadline=deadline)
    value, bound = float(result.flow.flow.sum()), result.bound
    if bound <= value * (1 + MIN_GAP):  # rounding may put it on the wrong side of the value
        bound = value
    reached = relative_gap(value, bound)
    is_optimal = reached is not None and reached <= max(gap, MIN_GAP)
    proof = judged(
        "max", value, bound, is_optimal=is_optimal, metric="delivered_mbps", backend=result.backend
    )
    plan = routing_of_paths(problem, result.order, result.flow)
    return Decision(plan=plan, proof=proof, guarantees=frozenset({"capacity", "demand"}))


def route_cheapest(
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
    bound = _bound_cost(cost, search.bound, delivers_most=delivers_most)
    gap = relative_gap(cost, bound)
    is_optimal = delivers_most and gap is not None and gap <= max(options.gap or DEFAULT_GAP, MIN_GAP)
    proof = judged(
        "min",
        cost,
        bound,
        is_optimal=is_optimal,
        metric="cost",
        bound_scope=scope or ("plans that deliver the most" if search.leaves_out else None),
        backend=SIMPLEX,
    )
    return Decision(plan=plan, proof=proof, guarantees=frozenset({"capacity", "demand"}))


def _bound_cost(cost: float, bound: float | None, *, delivers_most: bool) -> float | None:
    """Return the bound on the cost of any plan, without rounding errors; less delivered may cost less."""
    if bound is None:
        return None
    bound = bound if delivers_most else min(bound, cost)
    return cost if abs(cost - bound) <= MIN_GAP * max(cost, 1e-9) else bound


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


def route_cheaply(
    problem: Traffic,
    *,
    scope: str | None = None,
    options: Options = Options(),
    previous: Decision[Routing] | None = None,
) -> Decision[Routing]:
    """Search for the least cost among routings that deliver the most, over all routes, to a gap.

    Stops at `options.gap`, by default 1e-6, or where the gap stalls; at a time limit it returns the incumbent
    with its bound. It starts from the routes of `previous`, if any. The bound holds for all routings that
    deliver as much as the plan.

    returns  Decision with a Routing within the capacities; optimal where it also delivers the most
    raises   InputError for a backend or an algorithm: it is its own solver; and for links without a cost
    """
    refuse_solver_options("columns", options)
    deadline = Deadline.of(options).reserve(PLAN_S_PER_DEMAND * len(problem.demands))
    gap = DEFAULT_GAP if options.gap is None else options.gap
    before = None if previous is None else previous.plan
    start = None if before is None else PreviousRoutes.of(problem, before)
    price = link_cost(problem)
    max_flow = TotalFlow(problem, start=start)
    for _ in max_flow.run(gap=DEFAULT_GAP, deadline=deadline.share(TOTAL_SHARE)):
        pass
    result = total_flow.search(problem, price, max_flow, start, gap, deadline)
    plan = routing_of_paths(problem, max_flow.order, result.flow)
    cost = float(price @ plan.links["load_mbps"].to_numpy(float))
    bound = min(max(result.bound, 0.0), cost)  # what delivers less than the bound is for may cost less
    if cost - bound <= MIN_GAP * max(cost, 1e-9):
        bound = cost
    reached = relative_gap(cost, bound)
    delivers_most = float(result.flow.flow.sum()) >= max_flow.bound * (1 - PROVEN_FLOW)
    is_optimal = delivers_most and reached is not None and reached <= max(gap, MIN_GAP)
    leaves_out = max_flow.bound < max_flow.offered * (1 - PROVEN_FLOW)
    proof = judged(
        "min",
        cost,
        bound,
        is_optimal=is_optimal,
        metric="cost",
        bound_scope=scope or ("plans that deliver as much" if leaves_out or not delivers_most else None),
        backend=LAGRANGIAN,
    )
    return Decision(plan=plan, proof=proof, guarantees=frozenset({"capacity", "demand"}))
