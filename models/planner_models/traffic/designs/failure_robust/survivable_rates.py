r"""The largest rates that every failure of a set leaves routable, by cutting planes over the failures.

$$\max \sum_k v_k b_k \quad\text{s.t.}\quad 0 \le b \le d,\quad
b \text{ can be routed without the links of } s \;\forall s$$

A failure s answers with the largest total flow of rates b over the network that it leaves, and with a cut
where not all of them fit. A demand that the failure leaves without a path does not count in it. The master
problem, over b alone, is solved by an interior point without crossover, whose solutions lie in the middle of
all optima: cuts there are far fewer than at vertices. Its dual values give the bound. Rates that fit less and
less, failure after failure, are a feasible solution.

Classes follow one another by priority, each with its values v: cuts stay, and what the levels before reached
is kept.

Networks after failures: over all routes, the largest total flow of the rates comes from the simplex method
over paths (`least_cost`). Under latency limits and rules it is that over a pool of routes, which all failures
share; the cheapest routes within the limits under its link prices (`constrained_paths`) join the pool, and
give the cut. Over given paths the pool stays as it is.

For any link prices p, at least 0, and the distance of each demand over the routes that it may take and that
the failure leaves, rates b that fit satisfy

    sum of b_k min(1, dist_k(p))   <=   sum of capacity p

source  metric inequalities: Onaga and Kakusho, "On feasibility conditions of multicommodity flows in
        networks" (1971); Kelley, "The cutting-plane method for solving convex programs" (1960)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple, Protocol

import numpy as np
import scipy.sparse as sp

from planner.arrays import Bools, Floats, Ints
from planner.backends.linear_program import LinearProgram
from planner.contract.progress import report
from planner.contract.proof import Status
from planner.options import Options
from planner.search.deadline import NEVER, Deadline
from planner.search.tolerances import IMPROVEMENT, NEGLIGIBLE, OPTIMALITY, ROUNDING, SOLVER
from planner_models.flows.constrained_paths import ConstrainedPathSearch, RoutePool
from planner_models.flows.least_cost_flow import LeastCostFlow
from planner_models.flows.path_flow_program import CandidatePaths
from planner_models.flows.path_pool import order_demands
from planner_models.flows.route_limits import RouteLimits
from planner_models.graphs.path_search import FoundPaths, take
from planner_models.traffic.designs.class_priorities import HELD
from planner_models.traffic.problem.failure_sets import FailureSet
from planner_models.traffic.problem.problem import Traffic

MAX_PRICINGS: Final = 50  # of one answer
DEEP_CUT: Final = 0.5  # of what does not fit: a cut that is violated by as much needs no further routes
NEW_ROUTE: Final = IMPROVEMENT  # by so much a new route must be shorter than the known ones
NO_LOSS: Final = ROUNDING  # of all traffic: a failure that loses less loses nothing
DEFAULT_GAP: Final = OPTIMALITY  # relative, where options give none
MAX_ROUNDS: Final = 1_000
MAX_STEPS: Final = 100  # of the common share in one failure
SMALLEST_RATE: Final = NEGLIGIBLE  # of a demand; less that fits is rounding
LEAST_RATE: Final = SOLVER  # of a demand, asked for besides, so that every demand has a coefficient in cuts
FIT_SHARE: Final = 0.3  # of the gap: rates that lose no more in the failures asked first are fitted into all
ACTIVE_ROUNDS: Final = 3  # after its last cut, in which a failure is asked before the others


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


class SurvivableRates:
    """The search: best rates so far, with their value, and a bound on that of all.

    best   (K,) Mbit/s; None before the first
    value  of the best rates in the present level, whose bound is `bound`
    """

    def __init__(self, offered_mbps: Floats, networks: Sequence[FailureNetwork]) -> None:
        self.offered = offered_mbps
        self._networks = networks
        self.best: Floats | None = None if offered_mbps.any() else offered_mbps.copy()
        self._least = NO_LOSS * float(offered_mbps.sum())
        self._last_cut = np.full(len(networks), -ACTIVE_ROUNDS)
        self._master = _Master(offered_mbps)
        self._round = 0
        self._held: list[tuple[Floats, float]] = []
        self.maximize(np.ones(len(offered_mbps)))

    def maximize(self, weight: Floats) -> None:
        """Take values of a Mbit/s of each demand, (K,); from the start they are 1."""
        self._weight = weight
        self._master.maximize(weight)
        self.value = 0.0 if self.best is None else float(weight @ self.best)
        self.bound = float(weight @ self.offered)

    def next_level(self, weight: Floats) -> None:
        """Keep the values of the levels so far, and go on with values of a Mbit/s of each demand, (K,)."""
        if self.best is not None:
            self._held.append((self._weight, self.value))
            self._master.keep(self._weight, self.value)
        self.maximize(weight)

    def run(self, options: Options, deadline: Deadline = NEVER) -> None:
        """Search to the gap of the options, or until a deadline."""
        gap = DEFAULT_GAP if options.gap is None else options.gap
        if self.bound - self.value <= gap * self.bound:
            return
        rates, is_exact = self.offered, False
        if self._round:
            rates = self._solve(options, is_exact=False)
        for _ in range(MAX_ROUNDS):
            rates = np.clip(rates, 0.0, self.offered)
            some = np.maximum(rates, LEAST_RATE * self.offered)
            active = np.flatnonzero(self._round - self._last_cut <= ACTIVE_ROUNDS)
            lost = self._ask(some, rates, active, deadline) if len(active) and self._round else {}
            few = FIT_SHARE * gap * min([self.bound, *(value for _, value in self._held)])
            if sum(lost.values()) <= few:
                lost = self._ask_all(some, rates, few, deadline)
                self._fit(rates, lost, gap, deadline)
            if self._is_late(deadline):
                return
            if self._round and not self._held:
                report("delivered_mbps", self.value, self.bound)
            if self.bound - self.value <= gap * self.bound or (is_exact and not lost):
                return
            # where the middle of the optima fits, only a vertex has more
            is_exact = not lost
            self._round += 1
            rates = self._solve(options, is_exact=is_exact)

    def _solve(self, options: Options, *, is_exact: bool) -> Floats:
        rates, bound = self._master.solve(options, is_exact=is_exact)
        self.bound = max(min(self.bound, bound), self.value)
        return rates

    @staticmethod
    def _is_late(deadline: Deadline) -> bool:
        return deadline.is_over

    def _ask_all(self, some: Floats, rates: Floats, few: float, deadline: Deadline) -> dict[int, float]:
        """Return the rates lost by each failure; ask first with the least rates of all demands.

        few  Mbit/s; where the least rates lose no more, they may lose more than the rates themselves
        """
        failures = np.arange(len(self._networks))
        lost = self._ask(some, rates, failures, deadline)
        return lost if sum(lost.values()) > few else self._ask(rates, rates, failures, deadline)

    def _ask(self, asked: Floats, rates: Floats, selected: Ints, deadline: Deadline) -> dict[int, float]:
        """Test the rates in failures; add their cuts, and return the loss of each lossy one, Mbit/s.

        asked  at least the rates; what is asked beyond them may be lost
        """
        lost: dict[int, float] = {}
        tolerance_mbps = self._least + float((asked - rates).sum())
        for index in selected.tolist():
            if self._is_late(deadline):
                break
            answer = self._networks[index].ask(asked)
            missing = float((asked - answer.fits_mbps).sum())
            if missing > tolerance_mbps:
                lost[index] = missing
                self._last_cut[index] = self._round
                self._master.add(answer)
        return lost

    def _fit(self, rates: Floats, lost: dict[int, float], gap: float, deadline: Deadline) -> None:
        """Take rates that fit in each failure, those first that lose most: the others lose less then."""
        for index in sorted(lost, key=lambda network_index: -lost[network_index]):
            if self._is_late(deadline):
                return
            answer = self._networks[index].ask(rates)
            rates = np.minimum(rates, answer.fits_mbps)
            rates = np.where(rates > SMALLEST_RATE * self.offered, rates, 0.0)
            self._master.add(answer)
        is_kept = all(float(weight @ rates) >= value * (1 - gap) for weight, value in self._held)
        value = float(self._weight @ rates)
        if not self._is_late(deadline) and is_kept and (self.best is None or value > self.value):
            self.best, self.value = rates, value


def grow_together(
    offered_mbps: Floats, networks: Sequence[FailureNetwork], deadline: Deadline
) -> tuple[float | None, float]:
    """Return the largest share of all demands alike that every failure leaves routable, and a bound on it.

    In each failure, the cut of a share that does not fit gives the next share, until one fits: Newton's
    method from above, so that every share is a bound. The share is None where time is up.
    """
    share, smallest = 1.0, NO_LOSS * float(offered_mbps.sum())
    for network in networks:
        demand_mbps = np.where(network.has_route, offered_mbps, 0.0)
        for _ in range(MAX_STEPS):
            if deadline.is_over:
                return None, share
            answer = network.ask(share * demand_mbps)
            if float((share * demand_mbps - answer.fits_mbps).sum()) <= smallest:
                break
            smaller = answer.limit / float(answer.coefficient @ demand_mbps)
            if smaller >= share * (1 - NO_LOSS):
                break
            share = smaller
    return share, share


class _Master:
    """The master problem over rates in one session of HiGHS: the largest value under the cuts so far."""

    def __init__(self, offered_mbps: Floats) -> None:
        from planner.backends import highs  # imports the solver, so only where it is needed

        self._highs = highs
        self._unit = max(float(offered_mbps.max(initial=0.0)), 1e-300)
        self._most = offered_mbps / self._unit
        count = len(offered_mbps)
        self._weight = np.ones(count)
        program = LinearProgram.build(
            sense="max", cost=self._weight, upper=self._most, name="traffic survivable rates"
        )
        self._session: Any = highs.load(program, Options(threads=1))
        # rows "at most"; a level that is kept is one with its signs turned
        self._coefficients: list[Floats] = []
        self._limits: list[float] = []

    def maximize(self, weight: Floats) -> None:
        """Take values of a Mbit/s of each demand, (K,)."""
        self._weight = weight
        columns = np.arange(len(weight), dtype=np.int32)
        self._session.changeColsCost(len(weight), columns, -weight)  # the session minimizes

    def keep(self, weight: Floats, value: float) -> None:
        """Keep at least a value, for values of a Mbit/s of each demand, (K,)."""
        self._add_row(-weight, -value * (1 - HELD) / self._unit)

    def add(self, answer: Answer) -> None:
        """Add the cut of an answer."""
        if (answer.coefficient > 0).any():
            self._add_row(answer.coefficient, answer.limit / self._unit)

    def _add_row(self, coefficient: Floats, limit: float) -> None:
        used = np.flatnonzero(coefficient)
        self._session.addRow(-np.inf, limit, len(used), used.astype(np.int32), coefficient[used])
        self._coefficients.append(coefficient.copy())
        self._limits.append(limit)

    def solve(self, options: Options, *, is_exact: bool) -> tuple[Floats, float]:
        """Return rates (K,) and a bound on the value of all, Mbit/s; exact: a vertex of the optima."""
        self._session.setOptionValue("solver", "simplex" if is_exact else "ipm")
        self._session.setOptionValue("run_crossover", "off")
        status = self._highs.run(self._session, self._highs.NAME)
        if status is not Status.OPTIMAL and not is_exact:  # its tolerance may be out of reach
            return self.solve(options, is_exact=True)
        solution = self._session.getSolution()
        cuts, limits = sp.csr_array(np.array(self._coefficients)), np.array(self._limits)
        # any prices at least 0 give a bound
        price = np.maximum(-np.array(solution.row_dual), 0.0)
        gain = np.maximum(self._weight - cuts.T @ price, 0.0)
        bound = float(price @ limits + gain @ self._most) * self._unit
        return np.array(solution.col_value) * self._unit, bound
