"""Search for the largest total flow, and for its least cost, by the augmented Lagrangian.

The augmented Lagrangian comes near the optimum fast, but may close its gap slowly. The simplex method is
exact, but takes many steps from nothing. So it starts with the paths that the former found: first over these
alone, then over all. Its basis has a row and a column for each link: up to some hundred of them.

For the least cost of flows too many for the simplex method, the search is run with a cost of links, where
leaving out a Mbit/s costs M: some times the cost of the longest of the cheapest paths. It bounds D - C / M
from above by B, for all routings that deliver D at a cost of C. So no routing that delivers as much as the
incumbent, D', costs less than M (D' - B). The largest total flow is searched for first: where the incumbent
delivers less, M rises.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from planner.arrays import Floats, Ints
from planner.contract.progress import report
from planner.search.deadline import Deadline
from planner.search.tolerances import OPTIMALITY
from planner_models.flows.augmented_lagrangian import PathFlow, TotalFlow
from planner_models.flows.least_cost_flow import LeastCostFlow
from planner_models.flows.previous_routes import PreviousRoutes
from planner_models.flows.problem import MIN_GAP, FlowProblem
from planner_models.flows.shortest_of_demands import measure_distances
from planner_models.flows.simplex_state import NO_PATHS

DEFAULT_GAP: Final = OPTIMALITY  # relative, where options give none
PASSES_BEFORE_SIMPLEX: Final = 20
"""Passes of the augmented Lagrangian: most searches end before, and more hardly help the simplex method."""
MAX_SIMPLEX_LINKS: Final = 800  # rows and columns of the dense inverse of its basis
FIRST_PENALTY: Final = 4.0  # M, times the cost of the longest of the cheapest paths
PENALTY_FACTOR: Final = 8.0  # by which M rises
MAX_PENALTIES: Final = 6  # values of M that are tried
SAME_FLOW: Final = 1e-3  # relative: where the plan delivers so much less than the most, M rises


class TotalFlowResult(NamedTuple):
    """The largest total flow that was found, and a bound on it.

    order  demand of the problem for each demand of the flow
    """

    order: Ints
    flow: PathFlow
    bound: float
    backend: str


def find_total_flow(
    problem: FlowProblem, *, start: PreviousRoutes | None, exact: bool, gap: float, deadline: Deadline
) -> TotalFlowResult:
    """Search for the largest total flow over all routes, to a relative gap or up to a deadline.

    start  routes to start from
    exact  where the gap is left after some passes, end with the simplex method over paths on small networks
    """
    exact = exact and len(problem.links) <= MAX_SIMPLEX_LINKS
    search = TotalFlow(problem, start=start)
    for state in search.run(gap=gap, deadline=deadline):
        report("delivered_mbps", state.value, state.bound)
        if exact and state.passes >= PASSES_BEFORE_SIMPLEX:
            break
    result = TotalFlowResult(search.order, search.path_flow(), search.bound, "augmented Lagrangian")
    value = float(result.flow.flow.sum())
    if not exact or value >= result.bound * (1 - gap) or deadline.is_over:
        return result
    simplex = LeastCostFlow(problem)
    simplex.deliver_most(deadline, search.path_flow())
    result = result._replace(bound=min(result.bound, simplex.total_bound_mbps()))
    flow = simplex.path_flow()
    if float(flow.flow.sum()) < value:
        return result
    return result._replace(flow=flow, backend="primal simplex over paths")


@dataclass(frozen=True, kw_only=True)
class CheapFlow:
    """A flow, and the least cost of all that deliver as much."""

    flow: PathFlow
    bound: float


def search(
    problem: FlowProblem,
    price: Floats,
    max_flow: TotalFlow,
    start: PreviousRoutes | None,
    gap: float,
    deadline: Deadline,
) -> CheapFlow:
    """Return the cheapest flow under the first M with which nearly the most is delivered, or the last.

    price     (E,) of a Mbit/s on each link
    max_flow  the search for the largest total flow, which has ended; start  routes from which it started
    """
    result: CheapFlow | None = None
    penalty = FIRST_PENALTY * max(_longest_path(max_flow, price), 1e-300)
    for _ in range(MAX_PENALTIES):
        search = TotalFlow(problem, start=start, link_cost=price / penalty)
        for state in search.run(gap=MIN_GAP, deadline=deadline):  # of the value: that of the cost is larger
            flow = search.path_flow()
            delivered = float(flow.flow.sum())
            cost = max(penalty * (delivered - state.value), 0.0)
            result = CheapFlow(flow=flow, bound=penalty * (delivered - state.bound))
            report("cost", cost, min(max(result.bound, 0.0), cost))
            if cost - result.bound <= gap * cost:
                break
        is_late = deadline.is_over
        if is_late or (result is not None and result.flow.flow.sum() >= max_flow.value * (1 - SAME_FLOW)):
            break
        penalty *= PENALTY_FACTOR
    return CheapFlow(flow=max_flow.path_flow(), bound=0.0) if result is None else result


def _longest_path(max_flow: TotalFlow, price: Floats) -> float:
    """Return the cost of a Mbit/s on the longest of the cheapest paths of all demands."""
    distance = np.empty(len(max_flow.demands.rate))
    measure_distances(max_flow.graph, max_flow.demands, NO_PATHS, np.r_[price, 0.0], distance)
    return float(distance.max())
