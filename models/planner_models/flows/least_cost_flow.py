"""The least cost among routings that deliver the most, and the largest total flow itself, both exact.

In the simplex method over paths (`simplex`), links cost what they cost, and leaving out a unit of traffic
costs M. From the same basis, with links that cost nothing, it then finds the largest total flow. Where that
leaves out as much, M was large enough: for link prices p and distances d under cost plus p, no routing that
leaves out as little costs less than

    sum of rate d - sum of capacity p - M times what is left out.
"""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Final

import numpy as np

from planner.arrays import Bools, Floats, Ints
from planner.contract.progress import report
from planner.search.deadline import NEVER, Deadline
from planner.search.tolerances import ROUNDING
from planner_models.flows.augmented_lagrangian import PathFlow
from planner_models.flows.link_flow_program import link_cost
from planner_models.flows.path_flow_program import CandidatePaths
from planner_models.flows.path_pool import Demands, order_demands
from planner_models.flows.previous_routes import PreviousRoutes
from planner_models.flows.problem import FlowProblem
from planner_models.flows.shortest_of_demands import order_paths
from planner_models.flows.simplex import PathSimplex
from planner_models.flows.simplex_state import GivenPaths, Stop
from planner_models.graphs.indexing import sum_by_index
from planner_models.graphs.path_search import FoundPaths
from planner_models.graphs.shortest_path_trees import Graph

SAME_FLOW: Final = ROUNDING  # of the offered traffic: differences of what is left out up to it count as none


FIRST_PENALTY: Final = 4.0  # M, times the cost of the longest of the cheapest paths


PENALTY_FACTOR: Final = 8.0  # by which M rises


MAX_PENALTY: Final = 1e9  # times the cost of the longest of the cheapest paths


DOWN_COST: Final = 2.0  # of a link that is down, where leaving out a unit of traffic costs 1


class LeastCostFlow:
    """The search, with rates in the unit of the largest capacity.

    order       (K',) demand of the problem for each demand of the search
    best        flow of least cost so far, with a bound; leaves_out: whether no flow delivers all
    """

    def __init__(
        self,
        problem: FlowProblem,
        paths: CandidatePaths | None = None,
        *,
        ordered: tuple[Graph, Demands, Ints] | None = None,
        capacity_mbps: Floats | None = None,
        start: PreviousRoutes | None = None,
    ) -> None:
        """Prepare the search.

        ordered        what `order_demands` returns, with other rates if need be
        capacity_mbps  (A,) of the links, in place of the problem's
        start          routes, of which the main one of each demand is in the first basis, if it fits
        """
        self.problem = problem
        self.capacity_mbps = problem.capacity_mbps if capacity_mbps is None else capacity_mbps
        graph, demands, self.order = order_demands(problem) if ordered is None else ordered
        self.unit = float(self.capacity_mbps.max())
        demands = demands._replace(rate=demands.rate / self.unit)
        candidates = None if paths is None else order_paths(paths, self.order)
        self.simplex = PathSimplex.of(graph, demands, self.capacity_mbps / self.unit, candidates)
        self.offered = float(demands.rate.sum())
        self.penalty, self.cost_unit = 1.0, 1.0
        self.simplex.leave_out(self.penalty)
        if start is not None:
            self._start_from(start)
        self.best: PathFlow | None = None
        self.bound: float | None = None
        self.leaves_out = True
        self.down: Bools | None = None

    def _start_from(self, start: PreviousRoutes) -> None:
        """Send demands over the path that took most of each before, where that fits."""
        self.simplex.send(start.main_paths(self.order, len(self.problem.demands)))

    def deliver_most(self, deadline: Deadline = NEVER, start: PathFlow | None = None) -> bool:
        """Find the largest total flow; return False where the time comes first.

        start  a flow near it, of the same demands in the same order: the search begins over its paths alone,
               with the main path of each demand in the basis where it fits
        """
        simplex = self.simplex
        if start is not None:
            simplex.send(self._main_paths(start))
        state = simplex.state
        state.cost[:] = 0.0
        state.cost[-1] = self.penalty = 1.0
        if start is not None:
            allowed, simplex.given = simplex.given, given_paths(start, len(simplex.demands.rate))
            self._run(deadline, None)
            simplex.given = allowed
        return self._run(deadline, "delivered_mbps")

    def _main_paths(self, flow: PathFlow) -> FoundPaths:
        """Return the path of more than half of each demand, of its rate and of the delivery of a flow."""
        rate = self.simplex.demands.rate * self.unit
        sent = sum_by_index(flow.demand, flow.flow, len(rate))  # more than the rate, where that was higher
        main = np.flatnonzero(flow.flow > 0.5 * np.maximum(rate, sent)[flow.demand])
        hops = (flow.end - flow.start)[main]
        end = np.cumsum(hops)
        entry = np.arange(hops.sum()) + np.repeat(flow.start[main] - end + hops, hops)
        return FoundPaths(demand=flow.demand[main], start=np.r_[0, end], link=flow.link[entry])

    def without_links(self, down: Bools) -> LeastCostFlow:
        """Return a search for the largest total flow without some links, (A,), that starts from this optimum.

        Its basis stays a solution, as capacities do: links that are down cost more than to leave traffic out.
        """
        other = copy.copy(self)
        state = copy.deepcopy(self.simplex.state)
        state.cost[:-1] = np.where(down, DOWN_COST, 0.0)
        state.cost[-1] = other.penalty = 1.0
        other.simplex = replace(self.simplex, state=state)
        other.down = down
        return other

    def continue_search(self, deadline: Deadline = NEVER) -> bool:
        """Go on from the present basis; return False where the time comes first."""
        return self._run(deadline, None)

    def minimize_cost(self, deadline: Deadline = NEVER, price: Floats | None = None) -> bool:
        """Find the least cost of all flows that leave out the least; return False where time is up.

        `best` is the flow, and `bound` that on its cost.

        price  (A,) per Mbit/s on each link; by default the links' cost
        """
        price = link_cost(self.problem) if price is None else price
        self.cost_unit = max(float(price.max()), 1e-300)
        self._set_costs(price, 0.0)
        longest = max(float(self.simplex.distances().max()), 1.0)
        penalty = FIRST_PENALTY * longest
        while penalty <= MAX_PENALTY * longest:
            self._set_costs(price, penalty)
            is_done = self._run(deadline, None)
            self.best, min_cost, left_out = self.path_flow(), self._least(), self.left_out()
            if not is_done:
                return False
            if left_out > SAME_FLOW * self.offered and not self.deliver_most(deadline):
                return False
            unserved = min(self.left_out(), left_out)
            self.leaves_out = unserved > SAME_FLOW * self.offered
            self.bound = max(min_cost - penalty * unserved, 0.0) * self.unit * self.cost_unit
            if left_out <= unserved + SAME_FLOW * self.offered:
                return True
            penalty *= PENALTY_FACTOR
        return False

    def _set_costs(self, price: Floats, penalty: float) -> None:
        state = self.simplex.state
        state.cost[:-1], state.cost[-1] = price / self.cost_unit, penalty
        state.price[:] = 0.0
        self.penalty = penalty

    def _run(self, deadline: Deadline, metric: str | None) -> bool:
        self.simplex.smooth_prices()
        while (stop := self.simplex.run()) is Stop.CALL:
            if metric is not None:
                report(metric, self.delivered_mbps(), self.total_bound_mbps())
            if deadline.is_over:
                return False
        return stop is Stop.OPTIMAL

    def left_out(self) -> float:
        """Return the traffic that the present flow leaves out, in the unit of the largest capacity."""
        state = self.simplex.state
        used, flow = self.simplex.flows()
        return float(flow[state.link[state.start[used]] == len(state.capacity)].sum())

    def delivered_mbps(self) -> float:
        """Return the traffic that the present flow delivers."""
        return (self.offered - self.left_out()) * self.unit

    def _least(self) -> float:
        """Return a bound on the cost of all routings, with the omitted traffic at its penalty."""
        state = self.simplex.state
        price = np.maximum(state.price, 0.0)
        return float(self.simplex.distances() @ self.simplex.demands.rate - price @ state.capacity)

    def total_bound_mbps(self) -> float:
        """Return a bound on the total flow of all routings, while links cost nothing."""
        return (self.offered - max(self._least(), 0.0)) * self.unit

    def path_flow(self) -> PathFlow:
        """Return the traffic on paths through the network, Mbit/s, within the capacities."""
        state, capacity = self.simplex.state, self.capacity_mbps
        used, flow = self.simplex.flows()
        is_sent = state.link[state.start[used]] < len(capacity)
        if self.down is not None:  # rounding may leave some traffic there
            is_sent &= self.simplex.lengths(used, np.r_[self.down, False]) == 0
        used, flow = used[is_sent], flow[is_sent] * self.unit
        hops = state.end[used] - state.start[used]
        entry = np.arange(hops.sum()) + np.repeat(state.start[used] - np.cumsum(hops) + hops, hops)
        load = sum_by_index(state.link[entry], np.repeat(flow, hops), len(capacity))
        return PathFlow(
            demand=state.owner[used].astype(np.int64),
            flow=flow / max(1.0, float((load / capacity).max())),  # rounding of many pivots
            start=state.start[used],
            end=state.end[used],
            link=state.link,
        )


def given_paths(flow: PathFlow, demands: int) -> GivenPaths:
    """Return the paths of a flow by demand; a demand without traffic has none."""
    order = np.argsort(flow.demand, kind="stable")
    start, hops = flow.start[order], (flow.end - flow.start)[order]
    end = np.cumsum(hops)
    entry = np.arange(hops.sum()) + np.repeat(start - end + hops, hops)
    first = np.searchsorted(flow.demand[order], np.arange(demands + 1))
    return GivenPaths(first, np.r_[0, end], flow.link[entry])
