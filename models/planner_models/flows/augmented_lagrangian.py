"""The largest total flow, by an augmented Lagrangian of the capacities over paths that are found on the way.

    max sum of x   subject to   sum of x over the paths of a demand <= its rate,   load <= capacity,   x >= 0

Leaving a unit of traffic out costs 1. A link costs its price: the multiplier of its capacity, plus a penalty
times the load above it. A pass takes the demands one by one (Gauss-Seidel): each is offered its shortest path
under the prices, and shifts traffic to its cheapest option by an exact line search, so that loads and prices
are always up to date. Then the prices become the multipliers. The penalty follows the balance of two amounts
that go to 0: the cost of traffic on options that are not the cheapest, and the distance of loads from the
capacities of links with a price. Where demands have values of their own, the sum of value times traffic is
the largest: leaving out a unit costs its value. Where links have a cost, the traffic less its cost is the
largest: the cost is added to the price.

For any multipliers l, the sum of capacity times l, plus the sum over demands of rate times
max(0, 1 - distance), bounds the total flow, less its cost, of all routings. Each plan is fitted into the
capacities: flows are reduced on overloaded links, and demands fill what is left over their own paths. So
there are an incumbent and a bound at any time.

A search may start from the paths of a plan before, with their traffic. Its first penalty is higher: the price
of a link comes to that of traffic left out where its load exceeds the capacity by as much as at the start.

source  Hestenes (1969) and Powell (1969), method of multipliers;
        Jayakrishnan et al. (1994), gradient projection
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from planner.arrays import Floats, Ints, Ints32
from planner.search.deadline import NEVER, Deadline, Stopwatch
from planner.search.tolerances import IMPROVEMENT
from planner_models.flows.path_pool import Options, PathPool, Prices, order_demands, sum_reduced_cost
from planner_models.flows.previous_routes import PreviousRoutes
from planner_models.flows.problem import FlowProblem

INITIAL_PENALTY: Final = (
    0.5  # price of a load of twice the capacity, as a share of the price of traffic left out
)
LEAST_CHANGE: Final = 0.002  # of a load, to which the first penalty after a plan before is adapted
MOST_CHANGE: Final = 0.2
LOST_CHANGE: Final = 0.05  # of a load, where demands lose all their paths
MIN_PENALTY: Final = 0.05
MAX_COST_PENALTY: Final = 0.5  # where links have a cost: higher ones keep traffic on paths that cost more
PENALTY_FACTOR: Final = 1.2  # by which the penalty rises or falls after a pass
FIXED_PENALTY_PASSES: Final = 5  # at the start
BALANCE: Final = 0.3  # excess cost over complementarity, up to which the penalty rises
STALL_PASSES: Final = 10  # over which excess and complementarity are averaged
STALL_RATIO: Final = (
    0.9  # of two such averages, from which the penalty is halved and no longer rises above that
)

MIN_GAIN: Final = 0.1  # of the mean gain of a shift; smaller ones wait
TIE_COST: Final = (
    IMPROVEMENT  # of every link, as a share of the price of traffic left out: short paths come first
)
SEARCH_EVERY: Final = 2  # passes; the others shift traffic between known paths
EVALUATE_EVERY: Final = 5  # passes, for bound and incumbent
COMPACT_EVERY: Final = 8  # passes
MAX_IDLE_PASSES: Final = 6  # after which a path without traffic is removed

MAX_PASSES: Final = 5_000
PATIENCE: Final = 200  # passes in which the gap must fall to seven tenths


@dataclass(frozen=True, kw_only=True, eq=False)
class PathFlow:
    """Traffic on paths: the links of path p are link[start[p] : end[p]].

    demand  (P,) place of each path's demand in the order of the pool; flow (P,) its traffic, positive
    """

    demand: Ints
    flow: Floats
    start: Ints
    end: Ints
    link: Ints32


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """The state of the search: total flow of the incumbent and bound on that of all routings, Mbit/s."""

    passes: int
    seconds: float
    value: float
    bound: float
    penalty: float
    paths: int


class TotalFlow:
    """The search: prices, options of the demands, incumbent and bound.

    order  (K',) demand of the problem for each demand of the pool
    value_of  (K',) value of a Mbit/s of each demand; objective and bound are sums of value times traffic
    """

    def __init__(
        self,
        problem: FlowProblem,
        value: Floats | None = None,
        start: PreviousRoutes | None = None,
        *,
        link_cost: Floats | None = None,
    ) -> None:
        """Prepare the search.

        link_cost  (A,) of a Mbit/s on each link, in the unit of values, which objective and bound are less
        """
        self.graph, self.demands, self.order = order_demands(problem)
        self.value_of = np.ones(len(self.order)) if value is None else value[self.order]
        values, kind = np.unique(self.value_of, return_inverse=True)
        # the largest value first
        self.by_value = np.argsort(-self.value_of, kind="stable")
        self.begin = np.r_[0, np.cumsum(np.bincount(kind)[::-1])]
        self.offered = float(self.demands.rate @ self.value_of)
        self.pool = PathPool.of(self.graph, self.demands, kind)
        links, out = len(problem.links), len(values)
        self.network = slice(0, links)
        self.capacity = problem.capacity_mbps
        self.link_cost = link_cost
        self.prices = Prices(
            capacity=np.r_[self.capacity, np.zeros(out)],
            cost=np.r_[np.full(links, TIE_COST) if link_cost is None else link_cost, values],
            multiplier=np.zeros(links + out),
            penalty=np.zeros(links + out),
            load=np.r_[np.zeros(links), np.bincount(kind, weights=self.demands.rate)],
            length=np.zeros(links + out),
        )
        self.penalty = INITIAL_PENALTY
        if start is not None:
            self._start_from(start, len(problem.demands))
        self.bound, self.value = self.offered, 0.0
        self.best: tuple[Options, Floats] | None = None
        self.watch = Stopwatch(is_wall=True)

    def _start_from(self, start: PreviousRoutes, demands: int) -> None:
        """Take the paths of a plan before with their shares of the demands, and choose the first penalty."""
        index_of = np.full(demands, -1)
        index_of[self.order] = np.arange(len(self.order))
        paths = start.paths
        self.pool.add(index_of[paths.demand], start.share, paths.start, paths.link)
        load = self.pool.load(self.pool.options.flow, len(self.prices.load))
        self.prices.load[:] = load
        over = float((load[self.network] / self.capacity).max(initial=0.0)) - 1.0
        self.penalty = 1.0 / min(max(over, LEAST_CHANGE, LOST_CHANGE * start.lost), MOST_CHANGE)

    def run(self, *, gap: float, deadline: Deadline = NEVER) -> Iterator[Evaluation]:
        """Search to a relative `gap`, or until a deadline, or until the gap stalls."""
        penalty, max_penalty = self.penalty, np.inf if self.link_cost is None else MAX_COST_PENALTY
        threshold, left_to_do = 0.0, []
        gaps: list[float] = []
        for number in range(1, MAX_PASSES + 1):
            self.prices.penalty[self.network] = penalty / self.capacity
            search = number <= FIXED_PENALTY_PASSES or number % SEARCH_EVERY == 0
            result = self.pool.run_pass(self.prices, threshold=threshold, search=search)
            threshold = MIN_GAIN * result.excess / max(result.candidates, 1)
            complementarity = self._update_multipliers()
            if number > FIXED_PENALTY_PASSES:
                penalty *= PENALTY_FACTOR if result.excess < BALANCE * complementarity else 1 / PENALTY_FACTOR
            left_to_do.append(result.excess + complementarity)
            if number % STALL_PASSES == 0 and number > STALL_PASSES:
                now, before = (sum(left_to_do[-k * STALL_PASSES :][:STALL_PASSES]) for k in (1, 2))
                if now > STALL_RATIO * before:
                    max_penalty = min(max_penalty, 0.5 * penalty)
            penalty = max(min(penalty, max_penalty), MIN_PENALTY)
            if number % COMPACT_EVERY == 0:
                self.pool.compact(MAX_IDLE_PASSES, keep=None if self.best is None else self.best[0])
            is_late = deadline.is_over
            if number % EVALUATE_EVERY and not is_late:
                continue
            self._evaluate()
            yield Evaluation(
                passes=number,
                seconds=self.watch.seconds,
                value=self.value,
                bound=self.bound,
                penalty=penalty,
                paths=int(self.pool.options.used[0]) - len(self.demands.rate),
            )
            gaps.append(1 - self.value / self.bound)
            waited = PATIENCE // EVALUATE_EVERY
            if gaps[-1] <= gap or is_late or (len(gaps) > waited and gaps[-1] > 0.7 * gaps[-waited]):
                return

    def _update_multipliers(self) -> float:
        """Make the prices the multipliers; return the sum of multiplier times distance from the capacity."""
        prices, inner = self.prices, self.network
        above = prices.load[inner] - self.capacity
        multiplier = prices.multiplier[inner] + prices.penalty[inner] * above
        prices.multiplier[inner] = np.maximum(multiplier, 0.0)
        return float(prices.multiplier[inner] @ np.abs(above))

    def _evaluate(self) -> None:
        """Update bound and incumbent."""
        price = np.minimum(self.prices.multiplier[self.network], self.value_of.max())
        length = price if self.link_cost is None else price + self.link_cost
        reduced = sum_reduced_cost(self.graph, self.demands, length, self.value_of)
        self.bound = min(self.bound, float(self.capacity @ price) + reduced)
        # free of the rounding errors of many shifts
        self.prices.load[:] = self.pool.load(self.pool.options.flow, len(self.prices.load))
        pool, prices, begin = self.pool, self.prices, self.begin
        flow = pool.fit(prices) if len(begin) == 2 else pool.fit_in_order(prices, self.by_value, begin)
        value = self.offered - float(flow[: len(self.demands.rate)] @ self.value_of)
        if self.link_cost is not None:
            value -= float(pool.load(flow, len(prices.load))[self.network] @ self.link_cost)
        if value > self.value:
            # the search goes on to add options, for which `flow` has no values
            self.value, self.best = value, (self.pool.options, flow[: self.pool.options.used[0]].copy())

    def path_flow(self) -> PathFlow:
        """Return the traffic of the incumbent on its paths."""
        count = len(self.demands.rate)
        options, flow = self.best or (self.pool.options, np.zeros(count))
        used = count + np.flatnonzero(flow[count:] > 0)
        return PathFlow(
            demand=options.owner[used].astype(np.int64),
            flow=flow[used],
            start=options.start[used],
            end=options.end[used],
            link=options.link,
        )
