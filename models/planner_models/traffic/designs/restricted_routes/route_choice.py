"""Routes that demands may take: tunnels, a number of paths, or all that keep latency limits and rules.

The latter are found as they are needed: prices of links say which path of each demand is the cheapest, and
paths that are new join the known ones (column generation).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Literal

import numpy as np
import scipy.sparse as sp

from planner.arrays import Bools, Floats, Ints
from planner.contract.design import Decision
from planner.options import Options
from planner_models.flows.constrained_paths import ConstrainedPathSearch
from planner_models.flows.path_flow_program import CandidatePaths
from planner_models.flows.route_limits import RouteLimits
from planner_models.flows.route_pool import RoutePool
from planner_models.graphs.path_search import PathChoice
from planner_models.traffic.designs.restricted_routes.candidates import (
    describe_lack,
    describe_paths,
    find_candidates,
    require_paths,
)
from planner_models.traffic.designs.routable import refuse_demands, shed_demands, without_share
from planner_models.traffic.plan.plan import Routing
from planner_models.traffic.problem.problem import Traffic

ALL_WITHIN_LIMITS: Final = "routes that keep latency limits and rules"
"""The scope of a bound over all of them."""


@dataclass(eq=False)
class RouteChoice:
    """The routes known so far of the demands that have one.

    scope    of a bound over these routes
    without_path  (K,) demands with a rate that none of the routes serves
    given    tunnels or a number of paths; None where all routes within limits count
    columns  the routes found so far, where all count
    """

    problem: Traffic
    scope: str
    without_path: Bools
    given: CandidatePaths | None = None
    columns: RoutePool | None = None
    limits: RouteLimits | None = None
    _uses: sp.csr_array | None = field(default=None, init=False)

    @classmethod
    def of(
        cls,
        problem: Traffic,
        paths: int | Literal["any", "tunnels"],
        choice: PathChoice = "shortest",
        max_hops: int | None = None,
    ) -> RouteChoice | None:
        """Return the routes; None where all routes of the network count.

        raises  InputError for tunnels where the problem has none, or a hop limit without a number of paths
        """
        require_paths(paths, max_hops)
        limits = RouteLimits.of(problem)
        if paths != "any":
            candidates = find_candidates(problem, paths, choice, max_hops, limits)
            scope = describe_paths(paths, choice, max_hops, limits)
            return cls(problem, scope, candidates.without_path(problem), given=candidates)
        if limits is None:
            return None
        demands = np.flatnonzero(problem.rate_mbps > 0)
        first = ConstrainedPathSearch(problem, limits, demands).search(problem.weight).found
        columns = RoutePool(len(problem.links))
        columns.add(first, np.arange(len(first.demand)))
        without_path = problem.rate_mbps > 0
        without_path[first.demand] = False
        return cls(problem, ALL_WITHIN_LIMITS, without_path, columns=columns, limits=limits)

    def route_rest(
        self,
        decide: Callable[[Traffic], Decision[Routing]],
        options: Options,
        max_hops: int | None = None,
    ) -> Decision[Routing]:
        """Return the decision of `decide` for the demands with a route, with the others as shed.

        With `options.service` "all" the problem is infeasible where there are others.
        """
        left_out = self.without_path
        if not left_out.any():
            return decide(self.problem)
        if options.service == "all":
            return refuse_demands(self.problem, left_out, describe_lack(self.problem, self.given, max_hops))
        remainder = self.problem.with_rates(np.where(left_out, 0.0, self.problem.rate_mbps))
        decision = shed_demands(self.problem, left_out, decide(remainder))
        return without_share(
            self.problem, left_out, decision, describe_lack(self.problem, self.given, max_hops)
        )

    @property
    def demand(self) -> Ints:
        """(P,) demand of each route; those found later are behind the others."""
        if self.given is not None:
            return self.given.demand
        assert self.columns is not None
        return self.columns.demand

    @property
    def uses(self) -> sp.csr_array:
        """(P, E) share of a route's traffic that goes over each link."""
        if self.given is not None:
            return self.given.uses
        assert self.columns is not None
        uses = self._uses
        if uses is None or uses.shape[0] < len(self.columns.demand):
            new = self.columns.uses(0 if uses is None else uses.shape[0])
            self._uses = new if uses is None else sp.csr_array(sp.vstack([uses, new]))
            return self._uses
        return uses

    def routes(self, amount: Floats) -> tuple[CandidatePaths, Floats]:
        """Return the routes by demand with their amounts (P,), given in the order in which they are here."""
        if self.given is not None:
            return self.given, amount
        assert self.columns is not None
        routes, order = self.columns.paths(len(amount))
        return CandidatePaths(found=routes, width=len(self.problem.links)), amount[order]

    def find_cheapest(self, demands: Ints, price: Floats) -> tuple[Floats, int]:
        """Return the least price of a route of each of some demands, and the number of added routes.

        demands  ascending demands, each with a route; price  (E,) of the links, at least 0
        """
        if self.limits is None or self.columns is None:
            return self.known_distance(demands, price), 0
        search_result = ConstrainedPathSearch(self.problem, self.limits, demands).search(price)
        # of equal price: a search that ends before has only a bound
        distance = np.minimum(self.known_distance(demands, price), search_result.cost)
        return distance, self.columns.add(search_result.found, np.arange(len(search_result.found.demand)))

    def known_distance(self, demands: Ints, price: Floats) -> Floats:
        """Return the least price of the known routes of each demand, shape of `demands`."""
        shortest = np.full(len(self.problem.demands), np.inf)
        np.minimum.at(shortest, self.demand, self.uses @ price)
        return shortest[demands]
