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
from planner.contract.progress import report
from planner.search.deadline import Deadline
from planner_models.flows.augmented_lagrangian import PathFlow, TotalFlow
from planner_models.flows.previous_routes import PreviousRoutes
from planner_models.flows.problem import MIN_GAP, FlowProblem
from planner_models.flows.shortest_of_demands import measure_distances
from planner_models.flows.simplex_state import NO_PATHS

FIRST_PENALTY: Final = 4.0  # M, times the cost of the longest of the cheapest paths
PENALTY_FACTOR: Final = 8.0  # by which M rises


MAX_PENALTIES: Final = 6  # values of M that are tried


SAME_FLOW: Final = 1e-3  # relative: where the plan delivers so much less than the most, M rises


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
