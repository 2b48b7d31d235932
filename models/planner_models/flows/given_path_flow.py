"""Flows over given paths from a plan before: the largest total flow, and the least utilization, both exact.

The simplex method over paths starts with the main path of each demand in the plan before, so that most of the
basis is known. From nothing, the interior-point method solves for the same.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from planner.arrays import Floats
from planner.backends import Solution
from planner.contract.proof import Status, relative_gap
from planner.options import Options
from planner.search.deadline import Deadline
from planner_models.flows.least_cost_flow import LeastCostFlow
from planner_models.flows.path_flow_program import CandidatePaths
from planner_models.flows.path_pool import order_demands
from planner_models.flows.previous_routes import PreviousRoutes, find_among
from planner_models.flows.problem import MIN_GAP, FlowProblem
from planner_models.flows.shortest_of_demands import order_paths
from planner_models.flows.simplex import UNLIMITED, PathSimplex
from planner_models.flows.simplex_state import LINKS, Stop
from planner_models.graphs.indexing import sum_by_index
from planner_models.graphs.path_search import FoundPaths, take

BACKEND: Final = "primal simplex over paths"


def solve_total(
    problem: FlowProblem, paths: CandidatePaths, start: PreviousRoutes, options: Options
) -> Solution:
    """Return the largest total flow over given paths; `x` is the traffic (P,) of the paths, Mbit/s.

    start  routes of the plan before that are given paths
    """
    search = LeastCostFlow(problem, paths, start=start)
    search.deliver_most(Deadline.of(options))
    flow = search.path_flow()
    hops = flow.end - flow.start
    entry = np.arange(hops.sum()) + np.repeat(flow.start - np.cumsum(hops) + hops, hops)
    used = FoundPaths(
        demand=search.order[flow.demand], start=np.r_[0, np.cumsum(hops)], link=flow.link[entry]
    )
    x = sum_by_index(find_among(used, paths), flow.flow, len(paths.demand))
    return _solution(x, float(x.sum()), search.total_bound_mbps(), options)


def solve_utilization(
    problem: FlowProblem, paths: CandidatePaths, start: PreviousRoutes, options: Options
) -> Solution | None:
    """Return the least utilization of the busiest link over given paths; `x`, `start` as above.

    It is 1 over the largest t at which t times all demands fit. None where the time limit comes first.
    """
    graph, demands, order = order_demands(problem)
    unit = float(problem.capacity_mbps.max())
    rate = demands.rate / unit
    simplex = PathSimplex.of(
        graph,
        demands._replace(rate=rate * UNLIMITED),
        problem.capacity_mbps / unit,
        order_paths(paths, order),
    )
    simplex.send(_complete(start.main_paths(order, len(problem.demands)), simplex))
    per_t = simplex.rise_unit(rate)
    simplex.restart(np.zeros(len(rate)), rate * per_t, 0.0)
    deadline = Deadline.of(options)
    while simplex.run() is Stop.CALL and not deadline.is_over:
        pass
    t = simplex.t * per_t
    if t <= 0:
        return None
    state, price = simplex.state, np.maximum(simplex.state.price, 0.0)
    used, flow = simplex.flows()
    hops = (state.end - state.start)[used]
    entry = np.arange(hops.sum()) + np.repeat(state.start[used] - np.cumsum(hops) + hops, hops)
    paths_used = FoundPaths(
        demand=order[state.owner[used]], start=np.r_[0, np.cumsum(hops)], link=state.link[entry]
    )
    x = sum_by_index(find_among(paths_used, paths), flow * unit / t, len(paths.demand))
    value = float(((x @ paths.uses) / problem.capacity_mbps).max())
    paid = float(price @ problem.capacity_mbps) / unit
    bound = float(rate @ simplex.distances()) / paid if paid > 0 else 0.0
    return _solution(x, value, min(bound, value), options)


def _complete(main: FoundPaths, simplex: PathSimplex) -> FoundPaths:
    """Return a path of each demand: the main one, or the first one of the program."""
    state, count = simplex.state, len(simplex.demands.rate)
    first = FoundPaths(
        demand=np.arange(count), start=np.r_[state.start[:count], state.used[LINKS]], link=state.link
    )
    remaining = take(first, np.setdiff1d(first.demand, main.demand))
    both = FoundPaths(
        demand=np.r_[main.demand, remaining.demand],
        start=np.r_[main.start, main.start[-1] + remaining.start[1:]],
        link=np.r_[main.link, remaining.link],
    )
    return take(both, np.argsort(both.demand))


def _solution(x: Floats, value: float, bound: float, options: Options) -> Solution:
    gap = relative_gap(value, bound)
    is_optimal = gap is not None and gap <= max(options.gap or 0.0, MIN_GAP * 100)
    status = Status.OPTIMAL if is_optimal else Status.FEASIBLE
    return Solution(status=status, backend=BACKEND, x=x, objective=value, bound=bound)
