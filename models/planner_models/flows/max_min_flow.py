"""Max-min fair rates of many demands over all paths, or over given ones, with a proof for every level.

A level is the largest t such that each demand that is not fixed yet gets t times its weight, or its whole
rate. Link prices p prove it: for the distances d of the demands under p,

    sum of weight d t over the others   <=   sum of capacity p - sum of rate d over fixed demands.

A demand with d > 0 cannot have more than its level while the others keep theirs: it is fixed at it, and the
next level is that of the others. The basis of the simplex method (`simplex`) stays: to fix demands only takes
t out of it. Many demands over all paths start on paths that balance the links, so that
few of them leave the basis. At a time limit, demands that are not fixed yet fill the residual capacity of
their main paths. Where routes have limits, the shortest ones under the prices of a level join the known ones
before it is fixed.

For paths that balance the links, a local search moves whole demands, one after another, to their shortest
path under the prices

    price of a link = (utilization / largest utilization)^p / capacity,

which follow each move. The power p grows from pass to pass, so that first all busy links count, and in the
end almost only the busiest ones of each region. Where demands are small beside the links, paths that carry
one demand each come near the optimum over split demands, and a simplex method from them has little to do.

Any prices p bound the level t of max-min fair rates: for the distances d of demands of a weight,
t * sum of weight d <= sum of capacity p.

source  Bertsekas and Gallager, "Data Networks" (1992), 6.5.2; Nace and Pioro, "Max-min fairness and its
        applications to routing and load-balancing in communication networks" (2008); power function of the
        utilization: Fratta, Gerla and Kleinrock, "The flow deviation method" (1973)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

import numpy as np

from planner.arrays import Bools, Floats, Ints, Ints32
from planner.compiled import inner, njit, run_small_in_python
from planner.contract.progress import report
from planner.search.deadline import NEVER, Deadline
from planner.search.tolerances import FEASIBILITY, IMPROVEMENT, NEGLIGIBLE, SOLVER
from planner_models.flows.augmented_lagrangian import PathFlow
from planner_models.flows.fair_rates import Caps, Shares, fill_progressively
from planner_models.flows.path_flow_program import CandidatePaths
from planner_models.flows.path_pool import Demands, order_demands
from planner_models.flows.problem import FlowProblem
from planner_models.flows.shortest_of_demands import find_first, measure_distances, order_paths
from planner_models.flows.simplex import NOISE, PathSimplex
from planner_models.flows.simplex_state import NO_PATHS, GivenPaths, Stop
from planner_models.graphs.indexing import list_ranges, sum_by_index
from planner_models.graphs.path_search import FoundPaths
from planner_models.graphs.shortest_path_trees import Graph, allocate, dijkstra

BALANCED_DEMANDS: Final = 2_000  # from so many on, paths are balanced first
FIXED_GAP: Final = SOLVER  # relative: demands are fixed whose level is proven to that
SHORTER: Final = IMPROVEMENT  # relative: a new route must be shorter than the known ones by that much
ROUNDING: Final = 1e-13  # of the sum of capacity times price
LEAST_DISTANCE: Final = NEGLIGIBLE  # of the largest price; shorter distances count as 0
FIRST_POWER: Final = 3.0
POWER_FACTOR: Final = 1.4  # by which the power grows after a pass
LAST_POWER: Final = 120.0
MIN_MOVED: Final = 1e-3  # of the demands: the search ends with the last power, or where fewer move
SHORTER_PATH: Final = FEASIBILITY  # relative: a path must be shorter than the present one by that much
MIN_PRICE: Final = 1e-100  # times capacity: idle links are not free, and the shortest of them come first
SPARE: Final = 1.2  # times the links of all paths: how long the arrays of a pass are
MAX_EXCESS: Final = 100.0  # of the largest utilization before a pass, which prices follow up to that much


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
        """Return the price of the cheapest route of each demand, and the number of routes that joined."""


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
        shares = Shares(
            np.r_[0, np.cumsum((state.end - state.start)[key])],
            state.link[entry].astype(np.int64),
            np.ones(len(entry)),
        )
        caps = Caps(missing, weight, limit, np.argsort(limit, kind="stable"))
        total[key] += fill_progressively(shares, np.maximum(state.capacity - load, 0.0), caps)
        used = np.flatnonzero(total > 0)
        return used, total[used]


class BalancedPaths(NamedTuple):
    """A path for each demand, and the least bound that prices on the way prove.

    bound  on the smallest rate over weight of all demands, in their unit
    """

    paths: FoundPaths
    bound: float


class _Paths(NamedTuple):
    """The path of demand k goes over link[start[k] : start[k + 1]]."""

    start: Ints
    link: Ints32


class _Prices(NamedTuple):
    """Links with their prices, (A,) each, which follow the load.

    full   load at the largest utilization before the pass
    power  (1,) of the utilization
    """

    capacity: Floats
    full: Floats
    power: Floats
    load: Floats
    price: Floats


def balance_paths(
    graph: Graph, demands: Demands, weight: Floats, capacity: Floats, deadline: Deadline
) -> BalancedPaths:
    """Return a path for each demand, for rates that rise with weights (K,) up to the rates of `demands`.

    deadline  at which the search ends with the paths so far
    """
    first = find_first(graph, demands, NO_PATHS, capacity.max() / capacity)
    amount = _limit_rates(demands, weight, capacity, first)
    paths = _Paths(first.start, first.link)
    load = np.zeros(len(capacity))
    _add_loads(paths, amount, load)
    price, power, moved = 1.0 / capacity, FIRST_POWER, len(amount)
    bound = _bound_level(graph, demands, weight, capacity, price)
    while moved > MIN_MOVED * len(amount) and power <= LAST_POWER:
        if deadline.is_over:
            break
        full = float((load / capacity).max()) * capacity
        prices = _Prices(capacity, full, np.array([power]), load, price)
        moved, paths = _run_pass(graph, demands, amount, prices, paths)
        power *= POWER_FACTOR
        load[:] = 0.0  # free of the rounding errors of many moves
        _add_loads(paths, amount, load)
        bound = min(bound, _bound_level(graph, demands, weight, capacity, price))
    links = paths.link[: paths.start[-1]]
    return BalancedPaths(FoundPaths(demand=np.arange(len(amount)), start=paths.start, link=links), bound)


def _bound_level(graph: Graph, demands: Demands, weight: Floats, capacity: Floats, price: Floats) -> float:
    """Return the bound on the smallest rate over weight of all demands that prices (A,) prove."""
    distance = np.empty(len(weight))
    measure_distances(graph, demands, NO_PATHS, np.r_[price, 0.0], distance)
    return float(price @ capacity) / float(weight @ distance)


def _limit_rates(demands: Demands, weight: Floats, capacity: Floats, paths: FoundPaths) -> Floats:
    """Return the traffic (K,) to balance: that at the highest level at which a link limits these paths."""
    limit = demands.rate / weight
    shares = Shares(paths.start, paths.link.astype(np.int64), np.ones(len(paths.link)))
    caps = Caps(demands.rate, weight, limit, np.argsort(limit, kind="stable"))
    rate = fill_progressively(shares, capacity, caps)
    is_limited = rate < demands.rate * (1 - SHORTER_PATH)
    if not is_limited.any():
        return demands.rate
    level = float((rate[is_limited] / weight[is_limited]).max())
    return np.minimum(demands.rate, weight * level)


def _run_pass(
    graph: Graph, demands: Demands, amount: Floats, prices: _Prices, old: _Paths
) -> tuple[int, _Paths]:
    """Run a pass of moves that update `prices`; return the number of moved demands, and all paths."""
    more = int(np.diff(demands.begin).max()) * graph.nodes  # of the demands of one root
    link = np.empty(int(SPARE * old.start[-1]) + more, dtype=np.int32)
    new = _Paths(np.zeros_like(old.start), link)
    root = moved = 0
    while True:
        root, count = _move_demands(graph, demands, amount, prices, old, new, root)
        moved += count
        if root == len(demands.roots):
            return moved, new
        longer = np.empty(len(new.link) // 2 + more, dtype=np.int32)
        new = new._replace(link=np.r_[new.link, longer])


@run_small_in_python(max_elements=5_000)
@njit(cache=True)
def _add_loads(paths: _Paths, amount: Floats, load: Floats) -> None:
    for k in range(len(amount)):
        for i in range(paths.start[k], paths.start[k + 1]):
            load[paths.link[i]] += amount[k]


@inner
def _price_at(prices: _Prices, e: int, load: float) -> float:
    use = min(max(load, 0.0) / prices.full[e], MAX_EXCESS)
    return (use ** prices.power[0] + MIN_PRICE) / prices.capacity[e]  # type: ignore[no-any-return]


@inner
def _change_load(prices: _Prices, e: int, change: float) -> None:
    prices.load[e] += change
    prices.price[e] = _price_at(prices, e, prices.load[e])


class _Trial(NamedTuple):
    """The tree of a root, by which demands may move.

    parent, distance  (N,) of the tree
    last              (E,) demand whose path was the last to be found on each link
    """

    root: int
    parent: Ints32
    distance: Floats
    last: Ints


@run_small_in_python(max_elements=1_000)
@njit(cache=True)
def _move_demands(
    graph: Graph, demands: Demands, amount: Floats, prices: _Prices, old: _Paths, new: _Paths, root: int
) -> tuple[int, int]:
    """Move demands from row `root` on to paths that are shorter with them, and write the paths of all.

    Returns the row at which the array is full, or the number of roots; and how many demands moved.
    """
    work, parent = allocate(graph.nodes), np.empty(graph.nodes, np.int32)
    last = np.full(len(prices.load), -1)
    moved, used = 0, new.start[demands.begin[root]]
    for e in range(len(prices.load)):
        _change_load(prices, e, 0.0)
    for r in range(root, len(demands.roots)):
        begin, end, goal = demands.begin[r], demands.begin[r + 1], demands.roots[r]
        if used + (end - begin) * graph.nodes + old.start[end] - old.start[begin] > len(new.link):
            return r, moved
        dijkstra(graph, prices.price, goal, work, parent)
        trial = _Trial(goal, parent, work.distance, last)
        for k in range(begin, end):
            if _leave_path(graph, prices, old, trial, k, demands.node[k], amount[k]):
                moved += 1
                v = demands.node[k]
                while v != goal:
                    e = parent[v]
                    new.link[used] = e
                    used += 1
                    _change_load(prices, e, amount[k])
                    v = graph.head[e]
            else:
                for i in range(old.start[k], old.start[k + 1]):
                    new.link[used] = old.link[i]
                    used += 1
            new.start[k + 1] = used
    return len(demands.roots), moved


@inner
def _leave_path(
    graph: Graph, prices: _Prices, old: _Paths, trial: _Trial, k: int, node: int, amount: float
) -> bool:
    """Take demand k off its path where that of the tree is shorter with it; return whether it is."""
    goal, parent, distance, last = trial
    power, now, length = prices.power[0], 0.0, distance[node]
    for i in range(old.start[k], old.start[k + 1]):
        now += prices.price[old.link[i]]
        last[old.link[i]] = k
    limit = now * (1.0 - SHORTER_PATH)
    if not length < limit:
        return False
    v, length = node, 0.0  # prices may have changed since the tree was found; they rise by no less than this
    while v != goal:
        e = parent[v]
        rise = 0.0 if last[e] == k else power * amount / max(prices.load[e], amount)
        length += prices.price[e] * (1.0 + rise)
        v = graph.head[e]
    if not length < limit:
        return False
    for i in range(old.start[k], old.start[k + 1]):
        _change_load(prices, old.link[i], -amount)
    v, length = node, 0.0
    while v != goal:
        e = parent[v]
        length += _price_at(prices, e, prices.load[e] + amount)
        v = graph.head[e]
    if length < limit:
        return True
    for i in range(old.start[k], old.start[k + 1]):
        _change_load(prices, old.link[i], amount)
    return False
