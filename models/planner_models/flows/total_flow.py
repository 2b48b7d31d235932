"""Search for the largest total flow: the augmented Lagrangian, ended by the simplex method over paths.

The augmented Lagrangian comes near the optimum fast, but may close its gap slowly. The simplex method is
exact, but takes many steps from nothing. So it starts with the paths that the former found: first over these
alone, then over all. Its basis has a row and a column for each link: up to some hundred of them.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from planner.arrays import Ints
from planner.contract.progress import report
from planner.search.deadline import Deadline
from planner.search.tolerances import OPTIMALITY
from planner_models.flows.augmented_lagrangian import PathFlow, TotalFlow
from planner_models.flows.least_cost_flow import LeastCostFlow
from planner_models.flows.previous_routes import PreviousRoutes
from planner_models.flows.problem import FlowProblem

DEFAULT_GAP: Final = OPTIMALITY  # relative, where options give none
PASSES_BEFORE_SIMPLEX: Final = 20
"""Passes of the augmented Lagrangian: most searches end before, and more hardly help the simplex method."""
MAX_SIMPLEX_LINKS: Final = 800  # rows and columns of the dense inverse of its basis


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
