"""Least cost among routings that deliver the most, by the simplex method over paths."""

from __future__ import annotations

from typing import Final

from planner.contract.design import Decision
from planner.contract.proof import relative_gap
from planner.options import Options
from planner.search.deadline import Deadline
from planner.search.judged import judged
from planner.search.tolerances import OPTIMALITY
from planner_models.flows.least_cost_flow import LeastCostFlow
from planner_models.flows.link_flow_program import link_cost
from planner_models.flows.path_flow_program import CandidatePaths
from planner_models.flows.previous_routes import PreviousRoutes
from planner_models.flows.problem import MIN_GAP
from planner_models.traffic.designs.column_generation.decision import refuse_solver_options
from planner_models.traffic.designs.path_flows.path_flow_plan import make_plan
from planner_models.traffic.plan.plan import Routing
from planner_models.traffic.problem.problem import Traffic

DEFAULT_GAP: Final = OPTIMALITY  # relative, where options give none
BACKEND: Final = "primal simplex over paths"
PLAN_S_PER_DEMAND: Final = 3e-6  # of the time limit, reserved for the tables of the plan


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
    plan = make_plan(problem, search.order, search.best or search.path_flow())
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
