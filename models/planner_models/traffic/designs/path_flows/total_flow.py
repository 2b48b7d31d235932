"""Decisions for the largest total flow: the augmented Lagrangian, ended by the simplex method over paths.

The augmented Lagrangian comes near the optimum fast, but may close its gap slowly. The simplex method is
exact, but takes many steps from nothing. So it starts with the paths that the former found: first over these
alone, then over all. Its basis has a row and a column for each link: up to some hundred of them.
"""

from __future__ import annotations

from typing import Final

from planner.contract.design import Decision
from planner.contract.progress import report
from planner.contract.proof import relative_gap
from planner.options import Options
from planner.search.deadline import Deadline
from planner.search.judged import judged
from planner.search.tolerances import OPTIMALITY
from planner_models.flows.augmented_lagrangian import TotalFlow
from planner_models.flows.least_cost_flow import LeastCostFlow
from planner_models.flows.previous_routes import PreviousRoutes
from planner_models.flows.problem import MIN_GAP
from planner_models.traffic.plan.flow_decision import refuse_solver_options, routing_of_paths
from planner_models.traffic.plan.plan import Routing
from planner_models.traffic.problem.problem import Traffic

DEFAULT_GAP: Final = OPTIMALITY  # relative, where options give none
PLAN_S_PER_DEMAND: Final = 3e-6  # of the time limit, reserved for the tables of the plan
PASSES_BEFORE_SIMPLEX: Final = 20
"""Passes of the augmented Lagrangian: most searches end before, and more hardly help the simplex method."""
MAX_SIMPLEX_LINKS: Final = 800  # rows and columns of the dense inverse of its basis


def route(
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
    exact = exact and len(problem.links) <= MAX_SIMPLEX_LINKS
    plan = None if previous is None else previous.plan
    search = TotalFlow(problem, start=None if plan is None else PreviousRoutes.of(problem, plan))
    for state in search.run(gap=gap, deadline=deadline):
        report("delivered_mbps", state.value, state.bound)
        if exact and state.passes >= PASSES_BEFORE_SIMPLEX:
            break
    flow, bound, backend = search.path_flow(), search.bound, "augmented Lagrangian"
    value = float(flow.flow.sum())
    if exact and value < bound * (1 - gap) and not deadline.is_over:
        simplex = LeastCostFlow(problem)
        simplex.deliver_most(deadline, search.path_flow())
        bound = min(bound, simplex.total_bound_mbps())
        path_flow = simplex.path_flow()
        if float(path_flow.flow.sum()) >= value:
            flow, value, backend = path_flow, float(path_flow.flow.sum()), "primal simplex over paths"
    if bound <= value * (1 + MIN_GAP):  # rounding may put it on the wrong side of the value
        bound = value
    reached = relative_gap(value, bound)
    is_optimal = reached is not None and reached <= max(gap, MIN_GAP)
    proof = judged("max", value, bound, is_optimal=is_optimal, metric="delivered_mbps", backend=backend)
    plan = routing_of_paths(problem, search.order, flow)
    return Decision(plan=plan, proof=proof, guarantees=frozenset({"capacity", "demand"}))
