"""The linear program over paths under a limit of rerouted traffic, in the simplex method over given paths.

Rows are those of links, then that of moved traffic, and those of shed traffic: one for each level of classes.
A part of a demand takes its present path, or a path with the row of moved traffic at its end; what has to
change in any case takes any path. Leaving traffic out is a path over the row of its level alone, which costs
what the traffic is valued at. Under the prices of an optimum, each demand gets its shortest path, which joins
the paths of its parts where that improves on them; then the simplex method goes on from its basis.

The least utilization U is 1 over the largest t at which t times all demands fit, with t times the limit of
moved traffic. That limit is set by the bound on U so far; what is moved beyond it goes back to present paths.

source  Dantzig-Wolfe decomposition; the bound on U: Dinkelbach, "On nonlinear fractional programming" (1967)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

import numpy as np
import scipy.sparse as sp

from planner.arrays import Bools, Floats, Ints, Ints32
from planner.search import tolerances
from planner.search.deadline import Deadline
from planner.search.tolerances import IMPROVEMENT, NEGLIGIBLE, SOLVER
from planner_models.flows.constrained_paths import ConstrainedPathSearch
from planner_models.flows.path_flow_program import CandidatePaths
from planner_models.flows.path_pool import Demands, order_demands
from planner_models.flows.previous_routes import decompose_by_demand
from planner_models.flows.route_limits import RouteLimits
from planner_models.flows.shortest_of_demands import find_shortest
from planner_models.flows.simplex import UNLIMITED, PathSimplex
from planner_models.flows.simplex_state import GivenPaths, Stop
from planner_models.graphs.indexing import index_distinct, sum_by_index
from planner_models.graphs.path_search import FoundPaths, take
from planner_models.graphs.shortest_path_trees import Graph
from planner_models.traffic.designs.class_priorities import Level
from planner_models.traffic.designs.limited_moves.kept_flows import CheapestWays
from planner_models.traffic.designs.limited_moves.search import MoveLimit
from planner_models.traffic.plan.moved_traffic import PresentFlow
from planner_models.traffic.problem.problem import Traffic

DEFAULT_GAP: Final = 2e-7  # relative, where options give none
MAX_ROUNDS: Final = 500
LEAST_MOVED: Final = 1e-10  # of the traffic that can stay
LEAST_SHARE: Final = NEGLIGIBLE  # of a demand; less on a present path is routed anew
REDUCED_COST: Final = IMPROVEMENT  # relative, by which a new path must be shorter
ROUNDING: Final = SOLVER  # of a demand
HELD: Final = tolerances.ROUNDING  # of what is offered, by which later levels may leave more out
SAME_LIMIT: Final = (
    tolerances.ROUNDING
)  # relative change of the limit of moved traffic that needs no new start

Oracle = Callable[[Floats], tuple[FoundPaths, Floats]]
"""Function of lengths of links (E,): shortest paths of demands, and their lengths (K,) or lower bounds."""


def over_all_paths(problem: Traffic) -> Oracle:
    """Return the search for shortest paths."""
    graph, demands, order = order_demands(problem, by_target=True)

    def find(length: Floats) -> tuple[FoundPaths, Floats]:
        shortest, lowest_cost = find_shortest(graph, demands, length)
        distance = np.full(len(problem.demands), np.inf)
        distance[order] = lowest_cost
        return FoundPaths(demand=order[shortest.demand], start=shortest.start, link=shortest.link), distance

    return find


def over_routes_within(problem: Traffic, limits: RouteLimits) -> Oracle:
    """Return the search for shortest paths that keep limits."""
    demands = np.flatnonzero(problem.rate_mbps > 0)
    search = ConstrainedPathSearch(problem, limits, demands)

    def find(length: Floats) -> tuple[FoundPaths, Floats]:
        cheapest = search.search(length)
        distance = np.full(len(problem.demands), np.inf)
        distance[demands] = cheapest.cost
        return cheapest.found, distance

    return find


def over_given_paths(problem: Traffic, candidates: CandidatePaths) -> Oracle:
    """Return the search for the shortest of given paths, those of each demand together."""
    first = np.flatnonzero(np.r_[True, np.diff(candidates.demand) != 0][: len(candidates.demand)])
    demand = candidates.demand[first]

    def find(length: Floats) -> tuple[FoundPaths, Floats]:
        cost = candidates.uses @ length
        distance = np.full(len(problem.demands), np.inf)
        if len(first):
            distance[demand] = np.minimum.reduceat(cost, first)
        best = np.flatnonzero(cost <= distance[candidates.demand])
        _, first_best = np.unique(candidates.demand[best], return_index=True)
        return take(candidates.found, best[first_best]), distance

    return find


class _Parts(NamedTuple):
    """Parts of demands, by target, then by demand.

    demand  (N,); rate (N,) Mbit/s; stays (N,) whether the part has a present path
    """

    demand: Ints
    rate: Floats
    stays: Bools


@dataclass
class _Pool:
    """Paths of parts over rows, in the order found."""

    part: list[Ints] = field(default_factory=list)
    hops: list[Ints] = field(default_factory=list)
    row: list[Ints32] = field(default_factory=list)

    def add(self, part: Ints, paths: FoundPaths, last: Ints) -> None:
        """Add one path for each of some parts, with a row (n,) at its end; -1 for none."""
        self.part.append(part)
        self.hops.append(np.diff(paths.start) + (last >= 0))
        self.row.append(np.insert(paths.link, paths.start[1:][last >= 0], last[last >= 0]).astype(np.int32))

    def given(self, parts: int, more: FoundPaths | None = None) -> GivenPaths:
        """Return the paths by part, in the order found; then `more`, one for each part."""
        group_of, hops, row = list(self.part), list(self.hops), list(self.row)
        if more is not None:
            group_of, hops, row = [*group_of, more.demand], [*hops, np.diff(more.start)], [*row, more.link]
        every = FoundPaths(
            demand=np.concatenate(group_of),
            start=np.r_[0, np.cumsum(np.concatenate(hops))],
            link=np.concatenate(row),
        )
        order = np.argsort(every.demand, kind="stable")
        paths = take(every, order)
        first = np.searchsorted(paths.demand, np.arange(parts + 1))
        return GivenPaths(first, paths.start, paths.link.astype(np.int32))


@dataclass(frozen=True, kw_only=True, eq=False)
class PathTraffic:
    """Traffic on paths, those of each demand together: rate (P,) Mbit/s."""

    paths: CandidatePaths
    rate: Floats


@dataclass(frozen=True, kw_only=True, eq=False)
class Found:
    """Traffic that serves everything, or a share of it, and its proof.

    traffic     None where there is none
    value       the least utilization, or the largest share, of this traffic
    bound       of all plans under the limit
    move_price  by how much the value improves with each Mbit/s more that may be moved
    """

    traffic: PathTraffic | None
    value: float
    bound: float
    move_price: float = 0.0


class PathProgram:
    """The program with the paths found so far.

    start  paths that traffic may be routed over, to begin with: those of the plan without the limit
    """

    def __init__(
        self,
        problem: Traffic,
        limit: MoveLimit,
        oracle: Oracle,
        start: FoundPaths,
        limits: RouteLimits | None,
    ) -> None:
        self.problem, self.limit, self.oracle = problem, limit, oracle
        self.links, self.unit = len(problem.links), float(problem.capacity_mbps.max())
        self.parts, self.kept = _divide(problem, limit.present, limits)
        # a little more than nothing, so that it has a price; `_read` keeps to the limit itself
        self.most_moved_mbps = max(limit.most_moved_mbps, LEAST_MOVED * limit.present.total_mbps)
        self.pool = _Pool()
        self.pool.add(self.kept.demand, self.kept, np.full(len(self.kept.demand), -1))
        for paths in (self.oracle(problem.weight)[0], start):
            self._offer(paths, None)
        self.simplex: PathSimplex | None = None
        self.levels = _Rows.of(problem, [])
        self.cost_unit = 1.0

    @property
    def is_served(self) -> bool:
        """True where each part has a path, apart from leaving it out."""
        has_path = np.zeros(len(self.parts.demand), dtype=bool)
        has_path[np.concatenate(self.pool.part)] = True
        return bool(has_path.all())

    # --- the least utilization, and the largest share -------------------------------------

    def spread(self, gap: float, deadline: Deadline, *, enough: float = np.inf) -> Iterator[Found]:
        """Yield better and better traffic that serves everything, for the least utilization.

        enough  once it is proven that the utilization exceeds this, the search may end
        """
        if not self.is_served:
            return
        capacity, max_moved = self.problem.capacity_mbps, self.most_moved_mbps
        best = Found(traffic=None, value=np.inf, bound=self._bound_utilization(1 / capacity, 0.0)[1])
        simplex, limit = None, 0.0
        for _ in range(MAX_ROUNDS):
            next_limit = max_moved / best.bound
            if simplex is None or abs(next_limit - limit) > SAME_LIMIT * limit:
                limit = next_limit
                simplex, per_t = self._rise(limit)
            else:
                self._continue(simplex)
            is_done = self._run(simplex, deadline)
            price = np.maximum(simplex.state.price, 0.0)
            t = simplex.t * per_t
            traffic = self._read(simplex, 1 / t) if t > 0 else None
            value = best.value
            if traffic is not None:
                value = float(((traffic.rate @ traffic.paths.uses) / capacity).max())
            new, bound = self._bound_utilization(price[: self.links], float(price[self.links]), simplex)
            best = Found(
                traffic=traffic if value < best.value else best.traffic,
                value=min(value, best.value),
                bound=min(max(bound, best.bound), value, best.value),
                move_price=float(price[self.links] / (price[: self.links] @ capacity)),
            )
            yield best
            is_late = not is_done or deadline.is_over
            is_same = abs(max_moved / best.bound - limit) <= SAME_LIMIT * limit
            is_proven = best.value - best.bound <= gap * best.value or best.bound > enough
            if is_proven or is_late or (not new and is_same):
                return

    def _bound_utilization(
        self, price: Floats, move_price: float, simplex: PathSimplex | None = None
    ) -> tuple[int, float]:
        """Return the number of new paths, and the bound on the utilization, under prices of links (E,)."""
        total = float(price @ self.problem.capacity_mbps)
        new, ways = self._find_paths(price, move_price, simplex)
        return new, (ways.cost_of(np.inf) - move_price * self.limit.most_moved_mbps) / total

    def grow(self, gap: float, deadline: Deadline) -> Found | None:
        """Return the traffic of the largest share of all demands, at most 1; scaled to serve everything."""
        if not self.is_served:
            return None
        simplex, per_t = self._rise(self.most_moved_mbps)
        traffic, t, bound, move_price = None, 0.0, 1.0, 0.0
        for _ in range(MAX_ROUNDS):
            is_done = self._run(simplex, deadline)
            t = simplex.t * per_t
            price = np.maximum(simplex.state.price, 0.0)
            # in these units one more of the share of all demands costs 1
            scale = 1 / max(float(self._duals(simplex) @ self.parts.rate), 1e-300)
            new, ways = self._find_paths(price[: self.links], float(price[self.links]), simplex)
            price, ways = price * scale, replace(ways, cost=ways.cost * scale)
            paid = float(price[: self.links] @ self.problem.capacity_mbps)
            move_price = float(price[self.links])
            bound = min(bound, ways.largest_share(paid + move_price * self.limit.most_moved_mbps))
            if t >= bound * (1 - gap) or not new or not is_done:
                break
            self._continue(simplex)
        if t > 0:
            traffic = self._read(simplex, 1 / t, served=t)
        return Found(traffic=traffic, value=t, bound=max(bound, t), move_price=move_price)

    def _rise(self, limit_mbps: float) -> tuple[PathSimplex, float]:
        """Return a program in which all demands rise together from 0, and t per unit of its own t."""
        simplex = self._begin(limit_mbps, _Rows.of(self.problem, []))
        rate = self.parts.rate / self.unit
        per_t = simplex.rise_unit(rate)
        simplex.restart(np.zeros(len(rate)), rate * per_t, 0.0)
        return simplex, per_t

    # --- the most traffic, and the least cost ---------------------------------------------

    def deliver(self, levels: Sequence[Level], gap: float, deadline: Deadline) -> list[float | None]:
        """Find the most traffic of each level that those before leave; return the bounds of the levels."""
        problem = self.problem
        rows = self.levels = _Rows.of(problem, levels)
        self.cost_unit = 1.0
        simplex = self.simplex = self._begin(self.most_moved_mbps, rows)
        state, bounds = simplex.state, list[float | None]()
        is_done = True
        for number, level in enumerate(levels):
            if not is_done:
                bounds.append(None)
                continue
            simplex.state.cost[:] = 0.0
            simplex.state.cost[self.links + 1 : -1] = np.where(rows.level == number, rows.value, 0.0)
            offered, bound = level.objective(problem.rate_mbps), np.inf
            for _ in range(MAX_ROUNDS):
                is_done = self._run(simplex, deadline)
                value = offered - float(simplex.state.cost[self.links + 1 : -1] @ self._shed(simplex))
                price = np.maximum(simplex.state.price, 0.0)
                new, ways = self._find_paths(price[: self.links], float(price[self.links]), simplex)
                bound = min(bound, self._bound_level(number, price, ways))
                if value >= bound * (1 - gap) - HELD * offered or not new or not is_done:
                    break
                self._continue(simplex)
            bounds.append(bound)
            here = np.flatnonzero(rows.level == number)
            shed = self._shed(simplex)[here]
            state = simplex.state
            state.capacity[self.links + 1 + here] = (shed + HELD * rows.offered[here]) / self.unit
        return bounds

    def _bound_level(self, number: int, price: Floats, ways: CheapestWays) -> float:
        """Return the largest possible value of a level with those before held fixed."""
        problem, rows = self.problem, self.levels
        simplex = self.simplex
        assert simplex is not None
        at_row = price[self.links + 1 :]
        value = np.where(rows.level == number, rows.value, 0.0)
        paid = 0.0
        for before in range(number):
            here = rows.level == before
            factor = float((at_row[here] / rows.value[here]).max())
            value[here] = factor * rows.value[here]
            served = rows.offered[here] - simplex.state.capacity[self.links + 1 :][here] * self.unit
            paid += float(value[here] @ served)
        ceiling = value[rows.of_demand]
        links = float(price[: self.links] @ problem.capacity_mbps)
        links += float(price[self.links]) * self.limit.most_moved_mbps
        return float(ceiling @ problem.rate_mbps) - ways.cost_of(ceiling) + links - paid

    def find_cheapest(self, link_price: Floats, gap: float, deadline: Deadline) -> float:
        """Find the least cost of traffic that leaves out as little as the present one; return the bound."""
        simplex, rows = self.simplex, self.levels
        assert simplex is not None
        unit = max(float(link_price.max()), 1e-300)
        simplex.state.cost[:] = 0.0
        simplex.state.cost[: self.links] = link_price / unit
        simplex.state.price[:] = 0.0
        best = 0.0
        for _ in range(MAX_ROUNDS):
            self._continue(simplex)
            is_done = self._run(simplex, deadline)
            price = np.maximum(simplex.state.price, 0.0)
            length = price[: self.links] + simplex.state.cost[: self.links]
            new, ways = self._find_paths(length, float(price[self.links]), simplex)
            at_row = price[self.links + 1 :]
            left_out = float(at_row @ simplex.state.capacity[self.links + 1 :]) * self.unit
            paid = float(price[: self.links] @ self.problem.capacity_mbps)
            paid += float(price[self.links]) * self.limit.most_moved_mbps
            best = max(best, ways.cost_of(at_row[rows.of_demand]) - paid - left_out)
            traffic = self.traffic()
            value = float(traffic.rate @ (traffic.paths.uses @ link_price)) / unit
            if value - best <= gap * value or not new or not is_done:
                break
        self.cost_unit = unit
        return best * unit

    def move_price(self) -> float:
        """Return the improvement of the objective by each Mbit/s more that may be moved."""
        assert self.simplex is not None
        return max(float(self.simplex.state.price[self.links]), 0.0) * self.cost_unit

    def traffic(self) -> PathTraffic:
        """Return the present traffic of `deliver` or `find_cheapest`."""
        assert self.simplex is not None
        return self._read(self.simplex, 1.0)

    def _shed(self, simplex: PathSimplex) -> Floats:
        """Return the traffic on each row of shed traffic, Mbit/s."""
        state = simplex.state
        used, flow = simplex.flows()
        row = state.link[state.start[used]] - self.links - 1
        is_shed = row >= 0
        return sum_by_index(row[is_shed], flow[is_shed], len(self.levels.level)) * self.unit

    # --- the simplex method ---------------------------------------------------------------

    def _begin(self, limit_mbps: float, rows: _Rows) -> PathSimplex:
        """Return the program; with rows of shed traffic, present paths are taken where they fit."""
        problem, parts = self.problem, self.parts
        self.levels = rows
        capacity = np.r_[problem.capacity_mbps, limit_mbps, 2 * rows.offered]
        extra = np.zeros(1 + len(rows.offered), dtype=np.int64)
        graph = Graph.of(len(problem.nodes), np.r_[problem.tail, extra], np.r_[problem.head, extra])
        roots, row = index_distinct(problem.target[parts.demand], len(problem.nodes))
        demands = Demands(
            roots=roots.astype(np.int32),
            begin=np.searchsorted(row, np.arange(len(roots) + 1)),
            node=problem.source[parts.demand].astype(np.int32),
            rate=parts.rate / self.unit * (1.0 if len(rows.offered) else UNLIMITED),
        )
        given_paths = self._given()
        simplex = PathSimplex.of(graph, demands, capacity / self.unit, given_paths)
        owner = np.repeat(np.arange(len(parts.demand)), np.diff(given_paths.first))
        main = take(
            FoundPaths(demand=owner, start=given_paths.start, link=given_paths.link), given_paths.first[:-1]
        )
        if len(rows.offered):
            simplex.state.fixed[:] = demands.rate
            simplex.send(main, otherwise=self.links + 1 + rows.of_demand[parts.demand])
        else:
            simplex.send(main)
        return simplex

    def _given(self) -> GivenPaths:
        """Return the paths of all parts; with rows of shed traffic, leaving it out is the last of each."""
        parts = np.arange(len(self.parts.demand))
        shed = None
        if len(self.levels.offered):
            row = self.links + 1 + self.levels.of_demand[self.parts.demand]
            shed = FoundPaths(demand=parts, start=np.r_[parts, len(parts)], link=row.astype(np.int32))
        return self.pool.given(len(parts), shed)

    def _continue(self, simplex: PathSimplex) -> None:
        """Go on from the present basis, over all paths found so far."""
        simplex.given = self._given()
        simplex.smooth_prices()

    def _run(self, simplex: PathSimplex, deadline: Deadline) -> bool:
        """Run to the optimum over the paths so far; return False where the time comes first."""
        while (stop := simplex.run()) is Stop.CALL:
            if deadline.is_over:
                return False
        if stop is not Stop.OPTIMAL:
            raise ArithmeticError(f"the simplex method over paths ended with {stop.name}")
        return True

    def _duals(self, simplex: PathSimplex) -> Floats:
        """Return the length of the present path of each part under costs and prices, (N,)."""
        state = simplex.state
        return simplex.lengths(state.key, np.r_[np.maximum(state.price, 0.0), 0.0] + state.cost)

    # --- paths ----------------------------------------------------------------------------

    def _find_paths(
        self, length: Floats, move_price: float, simplex: PathSimplex | None
    ) -> tuple[int, CheapestWays]:
        """Add shorter paths of parts than their present ones; return their number, and the cheapest ways.

        length  (E,) of links
        """
        paths, distance = self.oracle(length)
        ways = CheapestWays.of(self.problem, self.limit.present, length, distance, move_price)
        if simplex is None:
            return 0, ways
        dual = self._duals(simplex)
        anew = distance[self.parts.demand] + np.where(self.parts.stays, move_price, 0.0)
        is_useful = anew < dual - REDUCED_COST * np.maximum(np.abs(dual), float(length.max(initial=0.0)))
        return self._offer(paths, is_useful), ways

    def _offer(self, paths: FoundPaths, is_useful: Bools | None) -> int:
        """Add paths of demands to all their parts, or to the requested ones; return their number."""
        demand, stays = self.parts.demand, self.parts.stays
        usable = np.ones(len(demand), dtype=bool) if is_useful is None else is_useful
        order = np.argsort(paths.demand, kind="stable")
        count = np.bincount(paths.demand, minlength=len(self.problem.demands))
        begin = np.cumsum(count) - count
        group = np.flatnonzero(usable & (count[demand] > 0))
        several = count[demand[group]]
        offset = np.arange(several.sum()) - np.repeat(np.cumsum(several) - several, several)
        path = order[np.repeat(begin[demand[group]], several) + offset]
        group = np.repeat(group, several)
        if len(group):
            self.pool.add(group, take(paths, path), np.where(stays[group], self.links, -1))
        return len(group)

    def _read(self, simplex: PathSimplex, scale: float, *, served: float = 1.0) -> PathTraffic:
        """Return the traffic of the program times a scale, without shed traffic.

        What is moved beyond the limit goes back to its present path.

        served  share of the traffic that is sent in the end
        """
        most_moved_mbps = self.limit.most_moved_mbps / served
        state, parts = simplex.state, self.parts
        used, flow = simplex.flows()
        is_sent = state.link[state.start[used]] <= self.links
        used, rate = used[is_sent], flow[is_sent] * self.unit * scale
        hops, group = (state.end - state.start)[used], state.owner[used].astype(np.int64)
        last = state.link[state.end[used] - 1]
        is_moved = last == self.links
        hops = hops - is_moved
        start = np.r_[0, np.cumsum(hops)]
        entry = np.arange(start[-1]) + np.repeat(state.start[used] - start[:-1], hops)
        link = state.link[entry]
        index_of = np.full(len(parts.demand), -1)
        index_of[self.kept.demand] = np.arange(len(self.kept.demand))
        can_stay = is_moved & (index_of[group] >= 0)
        moved, unmovable = float(rate[can_stay].sum()), float(rate[is_moved & ~can_stay].sum())
        if moved + unmovable > most_moved_mbps and moved > 0:
            share = min(max((most_moved_mbps - unmovable) / moved, 0.0), 1.0)
            back = take(self.kept, index_of[group[can_stay]])
            group, start = np.r_[group, group[can_stay]], np.r_[start, start[-1] + back.start[1:]]
            link = np.r_[link, back.link]
            rate = np.r_[np.where(can_stay, share * rate, rate), (1 - share) * rate[can_stay]]
        paths, rate = _merge(FoundPaths(demand=parts.demand[group], start=start, link=link), rate)
        return PathTraffic(paths=CandidatePaths(found=paths, width=self.links), rate=rate)


class _Rows(NamedTuple):
    """Rows of shed traffic: one for each level, and for each value of its traffic.

    level, value, offered  (S,) number of the level, value of a Mbit/s, and what the demands offer, Mbit/s
    of_demand  (K,) row of each demand
    """

    level: Ints
    value: Floats
    offered: Floats
    of_demand: Ints

    @classmethod
    def of(cls, problem: Traffic, levels: Sequence[Level]) -> _Rows:
        """Return the rows of levels; none for no levels."""
        of_demand = np.zeros(len(problem.demands), dtype=np.int64)
        level: list[int] = []
        value: list[float] = []
        for number, item in enumerate(levels):
            for amount in np.unique(item.value[item.members]).tolist():
                of_demand[item.value == amount] = len(level)
                level.append(number)
                value.append(amount)
        offered = sum_by_index(of_demand, problem.rate_mbps, len(level)) if levels else np.zeros(0)
        return cls(np.array(level, dtype=np.int64), np.array(value), offered, of_demand)


def _divide(problem: Traffic, present: PresentFlow, limits: RouteLimits | None) -> tuple[_Parts, FoundPaths]:
    """Return the parts, and the present paths of those that have one, by part."""
    rate, stays = problem.rate_mbps, present.stays
    flow = sp.csr_array(sp.diags_array((stays > 0) * 1.0) @ present.flow)
    paths, carried = decompose_by_demand(problem, flow, LEAST_SHARE)
    if limits is not None:
        keeps = [
            limits.keeps(problem, k, paths.link[paths.start[p] : paths.start[p + 1]].tolist())
            for p, k in enumerate(paths.demand.tolist())
        ]
        paths, carried = take(paths, np.flatnonzero(keeps)), carried[np.array(keeps, dtype=bool)]
    total = sum_by_index(paths.demand, carried, len(rate))
    is_whole = np.abs(total - stays) <= ROUNDING * rate
    factor = np.divide(stays, total, out=np.ones(len(rate)), where=(total > 0) & (is_whole | (total > stays)))
    carried = carried * factor[paths.demand]
    missing = np.where(is_whole, 0.0, np.maximum(stays - total, 0.0))
    new = np.where(rate - stays > ROUNDING * rate, rate - stays, 0.0)
    others = [np.flatnonzero(missing > 0), np.flatnonzero(new > 0)]
    demand = np.concatenate([paths.demand, *others])
    amount = np.concatenate([carried, missing[others[0]], new[others[1]]])
    is_staying = np.arange(len(demand)) < len(paths.demand) + len(others[0])
    order = np.lexsort((demand, problem.target[demand]))
    has_path = order < len(paths.demand)
    selected = take(paths, order[has_path])
    parts = _Parts(demand=demand[order], rate=amount[order], stays=is_staying[order])
    return parts, FoundPaths(demand=np.flatnonzero(has_path), start=selected.start, link=selected.link)


def _merge(paths: FoundPaths, rate: Floats) -> tuple[FoundPaths, Floats]:
    """Return the paths by demand, each of them once, with its traffic."""
    number: dict[tuple[int, tuple[int, ...]], int] = {}
    start, link = paths.start.tolist(), paths.link.tolist()
    of_path = [
        number.setdefault((k, tuple(link[start[p] : start[p + 1]])), len(number))
        for p, k in enumerate(paths.demand.tolist())
    ]
    _, first = np.unique(of_path, return_index=True)
    total = sum_by_index(np.array(of_path, dtype=np.int64), rate, len(number))
    order = np.argsort(paths.demand[first], kind="stable")
    return take(paths, first[order]), total[order]
