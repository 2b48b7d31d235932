r"""Networks after failures: each returns the feasible part of given rates, and gives a cut for others.

Over all routes, the largest total flow of the rates comes from the simplex method over paths (`least_cost`).
Under latency limits and rules it is that over a pool of routes, which all failures share; the cheapest
routes within the limits under its link prices (`constrained_paths`) join the pool, and give the cut. Over
given paths the pool stays as it is.

For any link prices p, at least 0, and the distance of each demand over the routes that it may take and that
the failure leaves, rates b that fit satisfy

    sum of b_k min(1, dist_k(p))   <=   sum of capacity p

source  metric inequalities: Onaga and Kakusho, "On feasibility conditions of multicommodity flows in
        networks" (1971)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final, NamedTuple, Protocol

import numpy as np

from planner.arrays import Bools, Floats
from planner.search.tolerances import IMPROVEMENT, ROUNDING
from planner_models.flows.constrained_paths import ConstrainedPathSearch
from planner_models.flows.least_cost_flow import LeastCostFlow
from planner_models.flows.path_flow_program import CandidatePaths
from planner_models.flows.path_pool import order_demands
from planner_models.flows.route_limits import RouteLimits
from planner_models.flows.route_pool import RoutePool
from planner_models.graphs.path_search import FoundPaths, take
from planner_models.traffic.problem.failure_sets import FailureSet
from planner_models.traffic.problem.problem import Traffic

MAX_PRICINGS: Final = 50  # of one answer
DEEP_CUT: Final = 0.5  # of what does not fit: a cut that is violated by as much needs no further routes
NEW_ROUTE: Final = IMPROVEMENT  # by so much a new route must be shorter than the known ones
NO_LOSS: Final = ROUNDING  # of all traffic: a failure that loses less loses nothing


class Answer(NamedTuple):
    """Part of rates b (K,) that fits after a failure, (K,) Mbit/s, and a cut.

    coefficient  (K,), limit  of the cut: coefficient @ b <= limit
    routes       with traffic; None where all routes may be taken
    """

    fits_mbps: Floats
    coefficient: Floats
    limit: float
    routes: FoundPaths | None = None


class FailureNetwork(Protocol):
    """The links that a failure leaves.

    has_route  (K,) demands with a rate that it leaves a route; the others do not count in it
    """

    has_route: Bools

    def ask(self, rate_mbps: Floats) -> Answer:
        """Return the feasible part of rates, (K,) Mbit/s, and the cut of its prices."""
        ...


def list_outages(problem: Traffic, failures: FailureSet) -> Bools:
    """Return the links that each different failure takes down, and none, (F, E); none comes first."""
    return np.unique(np.r_[np.zeros((1, len(problem.links)), dtype=bool), failures.link_down], axis=0)


class WholeNetwork:
    """The network without failures: the largest total flow of rates, from which failures begin."""

    def __init__(self, problem: Traffic) -> None:
        self._problem = problem
        self._ordered = order_demands(problem.routable)
        self._rates: Floats | None = None
        self._search: LeastCostFlow | None = None

    def search(self, rate_mbps: Floats) -> LeastCostFlow:
        """Return the largest total flow of rates (K,), from that of the last ones."""
        if self._search is None or self._rates is None or not np.array_equal(rate_mbps, self._rates):
            start = None if self._search is None else self._search.path_flow()
            graph, demands, order = self._ordered
            ordered = graph, demands._replace(rate=rate_mbps[order]), order
            self._search = LeastCostFlow(self._problem, ordered=ordered)
            self._search.deliver_most(start=start)
            self._rates = rate_mbps.copy()
        return self._search


class FreeNetwork:
    """A failure after which demands may take all routes."""

    def __init__(self, problem: Traffic, down: Bools, network: WholeNetwork | None) -> None:
        """Find the demands that have a route.

        network  the network without failures, which failures share; None where no demand has a route
        """
        self._problem, self._down, self._whole = problem, down, network
        self.has_route: Bools = problem.without_links(down).routable.rate_mbps > 0

    def ask(self, rate_mbps: Floats) -> Answer:
        """Return the feasible part of rates, (K,) Mbit/s, and the cut of its prices."""
        fits, coefficient = rate_mbps.copy(), np.zeros(len(rate_mbps))
        if self._whole is None or not self.has_route.any():
            return Answer(fits, coefficient, 0.0)
        search = self._whole.search(rate_mbps).without_links(self._down)
        search.continue_search()
        flow, order = search.path_flow(), search.order
        sent = np.bincount(flow.demand, weights=flow.flow, minlength=len(order))
        fits[order] = np.minimum(sent, rate_mbps[order])
        fits[~self.has_route] = rate_mbps[~self.has_route]
        coefficient[order] = np.minimum(search.simplex.distances(), 1.0)
        coefficient[~self.has_route] = 0.0
        price = np.where(self._down, 0.0, np.maximum(search.simplex.state.price, 0.0))
        return Answer(fits, coefficient, float(price @ self._problem.capacity_mbps))


class LimitedNetwork:
    """A failure after which demands may take the routes of a pool, or all within limits, which join it."""

    def __init__(
        self, problem: Traffic, down: Bools, pool: RoutePool, limits: RouteLimits | None = None
    ) -> None:
        """Find the demands that have a route.

        limits  within which new routes are searched; None: there are only those of the pool
        """
        self._problem, self._down, self._pool = problem, down, pool
        demands = np.flatnonzero(problem.rate_mbps > 0)
        self.has_route = np.zeros(len(problem.demands), dtype=bool)
        self._search: ConstrainedPathSearch | None = None
        self._size, self._known = -1, CandidatePaths(found=pool.paths()[0], width=pool.width)
        if limits is None:
            self.has_route[self._routes().demand] = True
        else:
            remaining_limits = replace(limits, allowed=limits.allowed & ~down)
            first = ConstrainedPathSearch(problem, remaining_limits, demands).search(problem.weight)
            pool.add(first.found, np.arange(len(first.found.demand)))
            self.has_route[demands[np.isfinite(first.cost)]] = True
            self._asked = np.flatnonzero(self.has_route)
            self._search = ConstrainedPathSearch(problem, remaining_limits, self._asked)
        is_asked = np.where(self.has_route, problem.rate_mbps, 0.0)
        self._ordered = order_demands(problem.with_rates(is_asked)) if self.has_route.any() else None

    def _routes(self) -> CandidatePaths:
        """Return the routes of the pool that the failure leaves."""
        if self._size != len(self._pool.links):
            self._size = len(self._pool.links)
            paths, order = self._pool.paths()
            is_up = (self._pool.uses() @ self._down.astype(float))[order] == 0
            surviving = take(paths, np.flatnonzero(is_up))
            self._known = CandidatePaths(found=surviving, width=self._pool.width)
        return self._known

    def ask(self, rate_mbps: Floats) -> Answer:
        """Return the feasible part of rates, (K,) Mbit/s, and the cut of its prices."""
        fits, coefficient = rate_mbps.copy(), np.zeros(len(rate_mbps))
        if self._ordered is None:
            return Answer(fits, coefficient, 0.0)
        graph, demands, order = self._ordered
        ordered_rate = rate_mbps[order]
        limit, routes = 0.0, None
        for _ in range(MAX_PRICINGS):
            paths = self._routes()
            search = LeastCostFlow(
                self._problem, paths, ordered=(graph, demands._replace(rate=ordered_rate), order)
            )
            search.deliver_most()
            flow = search.path_flow()
            sent = np.bincount(flow.demand, weights=flow.flow, minlength=len(order))
            fits[order] = np.minimum(sent, ordered_rate)
            hops = flow.end - flow.start
            entry = np.arange(hops.sum()) + np.repeat(flow.start - np.cumsum(hops) + hops, hops)
            routes = FoundPaths(
                demand=order[flow.demand], start=np.r_[0, np.cumsum(hops)], link=flow.link[entry]
            )
            price = np.maximum(search.simplex.state.price, 0.0)
            shortest_known = np.full(len(rate_mbps), np.inf)
            length = paths.uses @ price
            np.minimum.at(shortest_known, paths.demand, length)
            limit = float(price @ self._problem.capacity_mbps)
            if self._search is None:
                coefficient[order] = np.minimum(shortest_known[order], 1.0)
                break
            cheapest = self._search.search(price)
            coefficient[self._asked] = np.minimum(cheapest.cost, 1.0)
            missing = float((rate_mbps - fits).sum())
            is_deep = float(coefficient @ rate_mbps) - limit >= DEEP_CUT * missing
            if is_deep or missing <= NO_LOSS * float(ordered_rate.sum()):
                break
            paths_found = cheapest.found
            index = np.searchsorted(self._asked, paths_found.demand)
            is_new = cheapest.cost[index] < np.minimum(shortest_known[paths_found.demand], 1.0) - NEW_ROUTE
            if not self._pool.add(paths_found, np.flatnonzero(is_new)):
                break
        return Answer(fits, coefficient, limit, routes)


def free_networks(problem: Traffic, failures: FailureSet) -> Sequence[FailureNetwork]:
    """Return the network that each different failure leaves, that without a failure first, for all routes."""
    network = WholeNetwork(problem) if problem.routable.rate_mbps.any() else None
    return [FreeNetwork(problem, down, network) for down in list_outages(problem, failures)]


def limited_networks(
    problem: Traffic, failures: FailureSet, candidates: CandidatePaths | None, limits: RouteLimits | None
) -> Sequence[FailureNetwork]:
    """Return the network that each different failure leaves, that without a failure first.

    candidates   the paths that demands may take; None: all that keep the limits
    """
    pool = RoutePool(len(problem.links))
    if candidates is not None:
        pool.add(candidates.found, np.arange(len(candidates.demand)))
    searched = limits if candidates is None else None
    return [LimitedNetwork(problem, down, pool, searched) for down in list_outages(problem, failures)]
