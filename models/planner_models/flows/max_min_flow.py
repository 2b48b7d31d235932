"""Max-min fair rates of many demands over all paths, or over given ones, with a proof for every level.

A level is the largest t such that each demand that is not fixed yet gets t times its weight, or its whole
rate. Link prices p prove it: for the distances d of the demands under p,

    sum of weight d t over the others   <=   sum of capacity p - sum of rate d over fixed demands.

A demand with d > 0 cannot have more than its level while the others keep theirs: it is fixed at it, and the
next level is that of the others. The basis of the simplex method (`simplex`) stays: to fix demands only takes
t out of it. Many demands over all paths start on paths that balance the links (`balanced_paths`), so that
few of them leave the basis. At a time limit, demands that are not fixed yet fill the residual capacity of
their main paths. Where routes have limits, the shortest ones under the prices of a level join the known ones
before it is fixed.

source  Bertsekas and Gallager, "Data Networks" (1992), 6.5.2; Nace and Pioro, "Max-min fairness and its
        applications to routing and load-balancing in communication networks" (2008)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np

from planner.arrays import Bools, Floats, Ints
from planner.contract.progress import report
from planner.search.deadline import NEVER, Deadline
from planner.search.tolerances import IMPROVEMENT, NEGLIGIBLE, SOLVER
from planner_models.flows.augmented_lagrangian import PathFlow
from planner_models.flows.balanced_paths import balance_paths
from planner_models.flows.fair_rates import fill_progressively
from planner_models.flows.path_flow_program import CandidatePaths
from planner_models.flows.path_pool import order_demands
from planner_models.flows.problem import FlowProblem
from planner_models.flows.shortest_of_demands import order_paths
from planner_models.flows.simplex import NOISE, PathSimplex
from planner_models.flows.simplex_state import GivenPaths, Stop
from planner_models.graphs.indexing import list_ranges, sum_by_index

BALANCED_DEMANDS: Final = 2_000  # from so many on, paths are balanced first
FIXED_GAP: Final = SOLVER  # relative: demands are fixed whose level is proven to that
SHORTER: Final = IMPROVEMENT  # relative: a new route must be shorter than the known ones by that much
ROUNDING: Final = 1e-13  # of the sum of capacity times price
LEAST_DISTANCE: Final = NEGLIGIBLE  # of the largest price; shorter distances count as 0


@dataclass(frozen=True, kw_only=True)
class Level:
    """One level: no demand that is fixed at `value`, or later, can have more than `bound` of all those.

    value, bound  rate over weight
    demands       fixed at it
    """

    value: float
    bound: float
    demands: int


class Routes(Protocol):
    """Routes that demands may take, to which others within their limits may join."""

    @property
    def demand(self) -> Ints:
        """(P,) demand of each route."""

    def routes(self, amount: Floats, /) -> tuple[CandidatePaths, Floats]:
        """Return the routes by demand with their amounts (P,), which have the order of `demand`."""

    def find_cheapest(self, demands: Ints, price: Floats, /) -> tuple[Floats, int]:
        """Return the price of the cheapest route of each demand, and how many routes joined."""


class MaxMinFlow:
    """The search: levels so far, and the rates of the demands.

    order   (K',) demand of the problem for each demand of the search
    weight  (K',) in the same order
    """

    def __init__(
        self, problem: FlowProblem, weight: Floats, routes: Routes | None = None, deadline: Deadline = NEVER
    ) -> None:
        """Prepare the search over all routes, or over given ones of explicit paths: every demand has one.

        deadline  at which the search for the first paths ends
        """
        self.graph, demands, self.order = order_demands(problem)
        self.routes = routes
        self.unit = float(problem.capacity_mbps.max())
        self.demands = demands._replace(rate=demands.rate / self.unit)
        self.weight = weight[self.order] / self.unit
        self.first_bound = np.inf  # on the first level, of the prices of the first paths
        capacity, first = problem.capacity_mbps / self.unit, None
        if routes is None and len(self.order) >= BALANCED_DEMANDS:
            first, self.first_bound = balance_paths(self.graph, self.demands, self.weight, capacity, deadline)
        given_paths = None if routes is None else self._order_routes(routes)
        self.simplex = PathSimplex.of(self.graph, self.demands, capacity, given_paths, first)
        self.rising: Bools = np.ones(len(self.order), dtype=bool)
        self.level = 0.0
        self.levels: list[Level] = []
        self.bound = np.inf  # of the present level

    def run(self, deadline: Deadline = NEVER, *, report_as: str | None = None) -> bool:
        """Find all levels, or those up to a deadline; return whether all were found.

        report_as  metric of which the lowest level is reported while it rises
        """
        while self.rising.any():
            if deadline.is_over:
                return False
            self._restart()
            while (stop := self.simplex.run()) is Stop.CALL:
                self._take_level()
                if report_as is not None and not self.levels:
                    self._find_bound()
                    report(report_as, min(self.level, 1.0), min(self.bound, 1.0))
                if deadline.is_over:
                    self._find_bound()
                    return False
                if not self.simplex.has_rise:  # t has a new unit
                    break
            self._take_level()
            if stop is Stop.UNBOUNDED:
                raise ArithmeticError("no link limits the demands")
            if stop is Stop.OPTIMAL and not self._add_routes():
                self._fix(*self._find_bound())
        return True

    def _order_routes(self, routes: Routes) -> GivenPaths:
        return order_paths(routes.routes(np.zeros(len(routes.demand)))[0], self.order)

    def _add_routes(self) -> bool:
        """Add the shortest routes under the present prices; return whether any was shorter than all known."""
        if self.routes is None:
            return False
        price = np.maximum(self.simplex.state.price, 0.0)
        previous_distance = self.simplex.distances()
        demands = np.sort(self.order)
        cheapest, count = self.routes.find_cheapest(demands, price)
        if count:
            self.simplex.given = self._order_routes(self.routes)
        distance = cheapest[np.searchsorted(demands, self.order)]
        return bool(count) and bool(
            (distance < previous_distance * (1 - SHORTER) - NOISE * price.max(initial=0.0)).any()
        )

    def _restart(self) -> None:
        """Let the demands that are not fixed rise; t has a unit in which its largest column entry is 1."""
        self.per_t = self.simplex.rise_unit(np.where(self.rising, self.weight, 0.0))
        slope = np.where(self.rising, self.weight * self.per_t, 0.0)
        self.simplex.restart(self.simplex.state.fixed, slope, self.level / self.per_t)

    def _take_level(self) -> None:
        """Take the present level, and note the demands that are at their rates."""
        state = self.simplex.state
        self.level = self.simplex.t * self.per_t
        self.rising &= state.slope > 0

    def _find_bound(self) -> tuple[Floats, float]:
        """Return the shares of demands in the bound on the present level, (K',), and its rounding error."""
        state = self.simplex.state
        price, distance = np.maximum(state.price, 0.0), self.simplex.distances()
        paid = float(price @ state.capacity)
        surplus = paid - float(distance @ state.fixed)
        weight = np.where(self.rising, self.weight * distance, 0.0)
        total = float(weight.sum())
        if total <= 0:
            self.bound = np.inf
            return weight, 0.0
        self.bound = max(surplus / total, self.level)
        weight[distance <= LEAST_DISTANCE * price.max(initial=0.0)] = 0.0
        return weight / total, ROUNDING * paid / total

    def _fix(self, share: Floats, rounding: float) -> None:
        """Fix the demands that are proven to be at the present level; at least those of the largest share."""
        distance = self.bound - self.level
        if distance <= rounding:
            distance, self.bound = 0.0, self.level
        new = (share > 0) & (share * FIXED_GAP * self.level >= distance)
        if not new.any():
            new = share >= 0.5 * share.max()
        state = self.simplex.state
        state.fixed[new], state.slope[new] = self.weight[new] * self.level, 0.0
        self.rising &= ~new
        self.levels.append(Level(value=self.level, bound=self.bound, demands=int(new.sum())))

    def path_flow(self) -> PathFlow:
        """Return the traffic on paths, Mbit/s; demands that are not fixed yet fill their main paths."""
        used, flow = self.simplex.flows()
        if self.rising.any():
            used, flow = self._fill_main_paths(used, flow)
        state = self.simplex.state
        return PathFlow(
            demand=state.owner[used].astype(np.int64),
            flow=flow * self.unit,
            start=state.start[used],
            end=state.end[used],
            link=state.link,
        )

    def _fill_main_paths(self, used: Ints, flow: Floats) -> tuple[Ints, Floats]:
        """Return the paths in use and their traffic, where rising demands fill their key paths fairly."""
        state, rising = self.simplex.state, np.flatnonzero(self.rising)
        total = np.zeros(len(state.owner))
        total[used] = flow
        which, entry = list_ranges(state.start[used], state.end[used])
        load = sum_by_index(state.link[entry], flow[which], len(state.capacity) + 1)[:-1]
        key, weight = state.key[rising], self.weight[rising]
        which, entry = list_ranges(state.start[key], state.end[key])
        missing = np.maximum(self.demands.rate[rising] - weight * self.level, 0.0)
        limit = missing / weight
        total[key] += fill_progressively(
            np.r_[0, np.cumsum((state.end - state.start)[key])],
            state.link[entry].astype(np.int64),
            np.ones(len(entry)),
            np.maximum(state.capacity - load, 0.0),
            missing,
            weight,
            limit,
            np.argsort(limit, kind="stable"),
        )
        used = np.flatnonzero(total > 0)
        return used, total[used]
