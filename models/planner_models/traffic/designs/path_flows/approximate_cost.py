"""The least cost of flows too many for the simplex method, by the augmented Lagrangian, with a bound.

The search for the largest total flow (`augmented_lagrangian`) is run with a cost of links, where leaving out
a Mbit/s costs M: some times the cost of the longest of the cheapest paths. It bounds D - C / M from above by
B, for all routings that deliver D at a cost of C. So no routing that delivers as much as the incumbent, D',
costs less than M (D' - B). The largest total flow is searched for first: where the incumbent delivers less,
M rises.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from planner.arrays import Floats
from planner.contract.design import Decision
from planner.contract.progress import report
from planner.contract.proof import relative_gap
from planner.options import Options
from planner.search.deadline import Deadline
from planner.search.judged import judged
from planner.search.tolerances import OPTIMALITY
from planner_models.flows.augmented_lagrangian import PathFlow, TotalFlow
from planner_models.flows.link_flow_program import link_cost
from planner_models.flows.previous_routes import PreviousRoutes
from planner_models.flows.problem import MIN_GAP
from planner_models.flows.shortest_of_demands import measure_distances
from planner_models.flows.simplex_state import NO_PATHS
from planner_models.traffic.plan.flow_decision import refuse_solver_options, routing_of_paths
from planner_models.traffic.plan.plan import Routing
from planner_models.traffic.problem.problem import Traffic

DEFAULT_GAP: Final = OPTIMALITY  # relative, where options give none
FIRST_PENALTY: Final = 4.0  # M, times the cost of the longest of the cheapest paths
PENALTY_FACTOR: Final = 8.0  # by which M rises
MAX_PENALTIES: Final = 6  # values of M that are tried
SAME_FLOW: Final = 1e-3  # relative: where the plan delivers so much less than the most, M rises
PROVEN_FLOW: Final = (
    OPTIMALITY  # relative: a plan that delivers so much less than the bound delivers the most
)
TOTAL_SHARE: Final = 0.3  # of the time limit, for the largest total flow
PLAN_S_PER_DEMAND: Final = 3e-6  # of the time limit, reserved for the tables of the plan
BACKEND: Final = "augmented Lagrangian"


def route(
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
    result = _search(problem, price, max_flow, start, gap, deadline)
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
        backend=BACKEND,
    )
    return Decision(plan=plan, proof=proof, guarantees=frozenset({"capacity", "demand"}))


@dataclass(frozen=True, kw_only=True)
class _Result:
    """A flow, and the least cost of all that deliver as much."""

    flow: PathFlow
    bound: float


def _search(
    problem: Traffic,
    price: Floats,
    max_flow: TotalFlow,
    start: PreviousRoutes | None,
    gap: float,
    deadline: Deadline,
) -> _Result:
    """Return the cheapest flow under the first M with which nearly the most is delivered, or the last."""
    result: _Result | None = None
    penalty = FIRST_PENALTY * max(_longest_path(max_flow, price), 1e-300)
    for _ in range(MAX_PENALTIES):
        search = TotalFlow(problem, start=start, link_cost=price / penalty)
        for state in search.run(gap=MIN_GAP, deadline=deadline):  # of the value: that of the cost is larger
            flow = search.path_flow()
            delivered = float(flow.flow.sum())
            cost = max(penalty * (delivered - state.value), 0.0)
            result = _Result(flow=flow, bound=penalty * (delivered - state.bound))
            report("cost", cost, min(max(result.bound, 0.0), cost))
            if cost - result.bound <= gap * cost:
                break
        is_late = deadline.is_over
        if is_late or (result is not None and result.flow.flow.sum() >= max_flow.value * (1 - SAME_FLOW)):
            break
        penalty *= PENALTY_FACTOR
    return _Result(flow=max_flow.path_flow(), bound=0.0) if result is None else result


def _longest_path(max_flow: TotalFlow, price: Floats) -> float:
    """Return the cost of a Mbit/s on the longest of the cheapest paths of all demands."""
    distance = np.empty(len(max_flow.demands.rate))
    measure_distances(max_flow.graph, max_flow.demands, NO_PATHS, np.r_[price, 0.0], distance)
    return float(distance.max())
