"""Linear programs over all paths of many demands, by a primal simplex method that generates columns.

    min  sum of h x - t    subject to    load <= capacity,    x >= 0,
                                         traffic of demand k = fixed_k + slope_k t

x is the traffic on paths, h the cost of a path's links, and t, up to a limit, raises the traffic of demands
together. The last link stands behind the A links of the network, has no capacity, and leaves traffic out.

Every demand has a key path, which takes what its other paths leave (generalized upper bounds). So a basis has
as many columns as there are links: slacks, t, and paths that are not keys. Its inverse is dense and kept in
the rows of links. Under the prices of links each root prices its demands by one tree of shortest paths, and
their shorter paths enter one by one. Key paths that leave are replaced, which most often changes no basis.

source  Dantzig and Van Slyke, "Generalized upper bounding techniques" (1967);
        Ford and Fulkerson, "A suggested computation for maximal multi-commodity network flows" (1958)
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from planner.arrays import Floats, Ints, Ints32
from planner.compiled import njit
from planner_models.traffic.designs.column_generation.shortest_path_trees import Graph, allocate, dijkstra
from planner_models.traffic.designs.path_flow_program import CandidatePaths
from planner_models.traffic.designs.path_flows.path_pool import Demands
from planner_models.traffic.designs.path_search import FoundPaths, take
from planner_models.traffic.problem.problem import sum_by_index

PIVOTS_PER_CALL: Final = 1000  # between two of which the basis is inverted anew
FEASIBILITY: Final = 1e-12  # of a capacity, or of a demand's traffic: what may be missing in the ratio test
LEAST_PIVOT: Final = 1e-8
LEAST_SLOPE: Final = 1e-3  # on the link with the largest one, below which the unit of t is too small
FIRST_TOLERANCE: Final = 0.1  # the same while prices are smoothed
SMOOTHING: Final = (
    0.03  # price of a full link without one, as a share of the largest, to find good paths first
)
SMOOTHING_SLACK: Final = 20.0  # by which the slack of a link weighs more than its capacity
COST_TOLERANCE: Final = 1e-9  # relative: a path must be shorter by that much to enter
UNLIMITED: Final = 1e12  # times a demand: more than any t
NOISE: Final = 1e-12  # of the largest price; smaller prices are rounding

SLACK, PATH, RISE = 0, 1, 2  # kinds of basic columns


class Stop(IntEnum):
    """Reason for the end of a search: an optimum, a call that ends, all demands served, or no limit of t."""

    OPTIMAL = 0
    CALL = 1
    SERVED = 2
    UNBOUNDED = 3


class GivenPaths(NamedTuple):
    """The paths that demands may take: path p goes over link[start[p] : start[p + 1]].

    first  (K + 1,) those of demand k are first[k] to first[k + 1]; without entries all paths are allowed
    """

    first: Ints
    start: Ints
    link: Ints32


NO_PATHS: Final = GivenPaths(np.zeros(0, np.int64), np.zeros(1, np.int64), np.zeros(0, np.int32))


class State(NamedTuple):
    """The basis, of M = A columns, with the paths of K demands.

    capacity, cost  (A,) and (A + 1,) of links
    inverse  (A, A) the inverse of the basis: row by link, column by place in the basis
    kind, item  (A,) basic columns: slack of link `item`, path `item`, or t
    value    (A,) of the basic columns
    place_of (A,) place of the slack of each link, -1 where the link is full
    price    (A,) of links
    key      (K,) path; first (K,) place of the first other basic path of a demand, -1 for none
    after    (A,) place of the next one
    fixed, slope (K,)
    owner, start, end, link  paths, as in `path_pool`; used (2,) how many, and how many entries of `link`
    rise     (A,) column of t: slopes on the key paths
    queue    (K,) demands by the value of t at which they reach their rates
    number   (7,) place of t in the basis (-1 none), next root, roots since the last pivot, pivots, degenerate
             pivots, stage of the search, place in `queue`
    amount   (2,) t and its limit, the next value at which a demand reaches its rate
    """

    capacity: Floats
    cost: Floats
    inverse: Floats
    kind: NDArray[np.int8]
    item: Ints
    value: Floats
    place_of: Ints
    price: Floats
    key: Ints
    first: Ints
    after: Ints
    fixed: Floats
    slope: Floats
    owner: Ints32
    start: Ints
    end: Ints
    link: Ints32
    used: Ints
    rise: Floats
    queue: Ints
    number: Ints
    amount: Floats


@dataclass(eq=False)
class PathSimplex:
    """A linear program over the paths of demands with its basis, which stays when rates and costs change."""

    graph: Graph
    demands: Demands
    given: GivenPaths
    state: State

    @classmethod
    def of(
        cls, graph: Graph, demands: Demands, capacity: Floats, given: GivenPaths | None = None
    ) -> PathSimplex:
        """Return the program in which no demand has traffic; keys are shortest paths by 1 / capacity."""
        links, count = len(capacity), len(demands.rate)
        given = NO_PATHS if given is None else given
        length = capacity.max() / capacity
        first = _find_first(graph, demands, given, length)
        hops, end = np.diff(first.start), first.start[1:]
        paths, entries = cls._sizes(graph, count, int(end[-1]))
        state = State(
            capacity=capacity.astype(float),
            cost=np.zeros(links + 1),
            inverse=np.eye(links),
            kind=np.zeros(links, dtype=np.int8),
            item=np.arange(links),
            value=capacity.astype(float),
            place_of=np.arange(links),
            price=np.zeros(links),
            key=np.arange(count),
            first=np.full(count, -1),
            after=np.full(links, -1),
            fixed=np.zeros(count),
            slope=np.zeros(count),
            owner=np.r_[np.arange(count), np.zeros(paths - count, dtype=np.int64)].astype(np.int32),
            start=np.r_[end - hops, np.zeros(paths - count, dtype=np.int64)],
            end=np.r_[end, np.zeros(paths - count, dtype=np.int64)],
            link=np.zeros(entries, dtype=np.int32),
            used=np.array([count, end[-1]], dtype=np.int64),
            rise=np.zeros(links),
            queue=np.arange(count),
            number=np.array([-1, 0, 0, 0, 0, 1, count], dtype=np.int64),
            amount=np.array([0.0, 0.0]),
        )
        state.link[: end[-1]] = first.link
        return cls(graph, demands, given, state)

    def restart(self, fixed: Floats, slope: Floats, t: float) -> None:
        """Set the traffic of demands to fixed + slope t, (K,) each; the present flows are a solution.

        A slope of 0 fixes a demand; the others rise up to their rates.
        """
        self._release_rise()
        state = self.state
        state.fixed[:], state.slope[:] = fixed, slope
        rising = np.flatnonzero(slope > 0)
        limit = self.demands.rate[rising] / slope[rising]
        order = np.argsort(limit, kind="stable")
        state.queue[: len(rising)] = rising[order]
        state.queue[len(rising) :] = -1
        state.amount[:] = t, limit.min(initial=np.inf)
        state.number[5:7] = 0

    def rise_unit(self, slope: Floats) -> float:
        """Return how much one unit of t should be: slopes (K,) times that have a largest load of 1.

        The load is that of key paths.
        """
        state = self.state
        hops = (state.end - state.start)[state.key]
        at = np.arange(hops.sum()) + np.repeat(state.start[state.key] - np.cumsum(hops) + hops, hops)
        load = sum_by_index(state.link[at], np.repeat(slope, hops), len(state.capacity) + 1)
        return 1.0 / float(load.max())

    def leave_out(self, price: float) -> None:
        """Give every demand its rate, and the option to leave traffic out at this price; all is left out."""
        state = self.state
        links, count = len(state.capacity), len(self.demands.rate)
        state.cost[links] = price
        state.fixed[:], state.slope[:] = self.demands.rate, 0.0
        state.start[:count], state.end[:count] = np.arange(count), np.arange(count) + 1
        state.link[:count] = links
        state.used[:] = count
        state.number[5] = 0

    def send(self, paths: FoundPaths, otherwise: Ints | None = None) -> None:
        """Send demands that are left out over one path each, one after another, where it has free capacity.

        paths      at most one for each demand, by its place here
        otherwise  (K,) the link that is the path of others; by default that of traffic that is left out
        """
        state, count = self.state, len(self.demands.rate)
        fits = np.zeros(len(paths.demand), dtype=bool)
        _find_fitting(paths.demand, paths.start, paths.link, state.fixed, state.capacity.copy(), fits)
        chosen = take(paths, np.flatnonzero(fits))
        hops = np.ones(count, dtype=np.int64)
        hops[chosen.demand] = np.diff(chosen.start)
        end = np.cumsum(hops)
        size, entries = self._sizes(self.graph, count, int(end[-1]))
        start, last = np.zeros(size, dtype=np.int64), np.zeros(size, dtype=np.int64)
        start[:count], last[:count] = end - hops, end
        link = np.full(entries, len(state.capacity), dtype=np.int32)
        if otherwise is not None:
            link[start[:count]] = otherwise
        at = np.arange(len(chosen.link)) + np.repeat(
            start[chosen.demand] - chosen.start[:-1], np.diff(chosen.start)
        )
        link[at] = chosen.link
        owner = np.zeros(size, dtype=np.int32)
        owner[:count] = np.arange(count)
        self.state = state._replace(
            start=start, end=last, link=link, owner=owner, used=np.array([count, end[-1]], dtype=np.int64)
        )

    @staticmethod
    def _sizes(graph: Graph, paths: int, entries: int) -> tuple[int, int]:
        new = PIVOTS_PER_CALL + len(graph.tail) + 2
        return paths + new, entries + new * graph.nodes

    def run(self) -> Stop:
        """Run up to `PIVOTS_PER_CALL` pivots from a fresh inverse; t is in the basis, or enters."""
        self._compact()
        self._invert()
        return Stop(_run(self.graph, self.demands, self.given, self.state, PIVOTS_PER_CALL))

    def _compact(self) -> None:
        """Keep the keys and the basic paths only, and make the arrays long enough for one call."""
        old = self.state
        used = np.concatenate([old.key, old.item[old.kind == PATH]])
        hops = (old.end - old.start)[used]
        end = np.cumsum(hops)
        paths, entries = self._sizes(self.graph, len(used), int(end[-1]))
        owner, link = np.zeros(paths, dtype=np.int32), np.zeros(entries, dtype=np.int32)
        start, last = np.zeros(paths, dtype=np.int64), np.zeros(paths, dtype=np.int64)
        owner[: len(used)] = old.owner[used]
        start[: len(used)], last[: len(used)] = end - hops, end
        at = np.arange(end[-1]) + np.repeat(old.start[used] - (end - hops), hops)
        link[: end[-1]] = old.link[at]
        item = old.item.copy()
        item[old.kind == PATH] = len(old.key) + np.arange(len(used) - len(old.key))
        self.state = old._replace(
            item=item,
            key=np.arange(len(old.key)),
            owner=owner,
            start=start,
            end=last,
            link=link,
            used=np.array([len(used), end[-1]], dtype=np.int64),
        )

    def _invert(self) -> None:
        """Compute the inverse, the values and the prices anew."""
        state = self.state
        links = len(state.capacity)
        full = np.flatnonzero(state.place_of < 0)
        slack = np.flatnonzero(state.place_of >= 0)
        place = np.flatnonzero(state.kind != SLACK)
        state.rise[:] = 0.0
        _add_slopes(state)
        columns = np.zeros((len(place), links))
        cost = np.zeros(len(place))
        right = state.capacity.copy()
        _basic_columns(state, place, columns, cost, right)
        core = np.linalg.inv(columns[:, full].T) if len(place) else np.zeros((0, 0))  # (place, full)
        state.inverse[:] = 0.0
        state.inverse[slack, state.place_of[slack]] = 1.0
        state.inverse[np.ix_(full, place)] = core.T
        state.inverse[np.ix_(full, state.place_of[slack])] = -(columns[:, slack].T @ core).T
        state.value[:] = right @ state.inverse
        state.price[:] = 0.0
        state.price[full] = -(cost @ core)
        if state.number[0] >= 0:
            state.amount[0] = state.value[state.number[0]]

    def _release_rise(self) -> None:
        """Take t out of the basis, at its value; a full link gets a slack instead."""
        state = self.state
        if state.number[0] < 0:
            return
        full = state.place_of < 0
        link = int(np.argmax(np.where(full, np.abs(state.inverse[:, state.number[0]]), -1.0)))
        _enter_slack(state, link)

    def flows(self) -> tuple[Ints, Floats]:
        """Return the paths in use, and their traffic; these are the paths of `state`."""
        state = self.state
        flow = np.zeros(state.used[0])
        _list_flows(state, flow)
        used = np.flatnonzero(flow > 0)
        return used, flow[used]

    def lengths(self, paths: Ints, length: Floats) -> Floats:
        """Return the sum of a length of links, (A + 1,), over each path."""
        state = self.state
        hops = (state.end - state.start)[paths]
        row = np.repeat(np.arange(len(paths)), hops)
        at = np.arange(hops.sum()) + np.repeat(state.start[paths] - np.cumsum(hops) + hops, hops)
        return sum_by_index(row, length[state.link[at]], len(paths))

    def distances(self) -> Floats:
        """Return the length of the shortest path of each demand under the prices, (K,)."""
        length = np.r_[np.maximum(self.state.price, 0.0), 0.0] + self.state.cost
        distance = np.empty(len(self.demands.rate))
        _distances(self.graph, self.demands, self.given, length, distance)
        return distance


def find_shortest(graph: Graph, demands: Demands, length: Floats) -> tuple[FoundPaths, Floats]:
    """Return the shortest path of each demand by a length of arcs, (A,), and its length (K,)."""
    found = _find_first(graph, demands, NO_PATHS, length)
    return found, np.add.reduceat(length[found.link], found.start[:-1])


def _find_first(graph: Graph, demands: Demands, given: GivenPaths, length: Floats) -> FoundPaths:
    """Return the shortest of all paths, or of the given ones, of each demand by a length of arcs, (A,)."""
    hops = np.zeros(len(demands.rate), dtype=np.int64)
    _first_hops(graph, demands, given, length, hops)
    start = np.r_[0, np.cumsum(hops)]
    link = np.empty(start[-1], dtype=np.int32)
    _first_links(graph, demands, given, length, start, link)
    return FoundPaths(demand=np.arange(len(hops)), start=start, link=link)


def order_paths(paths: CandidatePaths, order: Ints) -> GivenPaths:
    """Return the candidate paths in the order of the demands of the search."""
    place = np.full(int(max(order.max(), paths.demand.max())) + 1, -1)
    place[order] = np.arange(len(order))
    found = take(paths.found, np.argsort(place[paths.demand], kind="stable"))
    first = np.searchsorted(place[found.demand], np.arange(len(order) + 1))
    return GivenPaths(first, found.start, found.link)


# --- compiled -----------------------------------------------------------------------------

internal = njit(no_cpython_wrapper=True, no_cfunc_wrapper=True)  # type: ignore[call-overload]
"""Decorator of functions that only compiled functions call: without what Python needs, they compile faster.

Constants among their arguments have a type, such as np.int64(-1): each literal would be compiled anew.
"""


@internal
def _shortest_given(given, k, length):  # type: ignore[no-untyped-def]
    """Return the shortest of the given paths of a demand, and its length."""
    best, least = -1, np.inf
    for p in range(given.first[k], given.first[k + 1]):
        total = 0.0
        for j in range(given.start[p], given.start[p + 1]):
            total += length[given.link[j]]
        if total < least:
            best, least = p, total
    return best, least


@njit(cache=True)
def _find_fitting(demand, start, link, rate, residual, fits):  # type: ignore[no-untyped-def]
    """Write which paths have free capacity for their demands, one after another; uses up `residual`."""
    for p in range(len(demand)):
        k = demand[p]
        fits[p] = True
        for j in range(start[p], start[p + 1]):
            fits[p] = fits[p] and residual[link[j]] >= rate[k]
        if fits[p]:
            for j in range(start[p], start[p + 1]):
                residual[link[j]] -= rate[k]


@njit(cache=True)
def _first_hops(graph, demands, given, length, hops):  # type: ignore[no-untyped-def]
    work, parent = allocate(graph.nodes), np.empty(graph.nodes, np.int32)
    if len(given.first) > 0:
        for k in range(len(hops)):
            p, _ = _shortest_given(given, k, length)
            hops[k] = given.start[p + 1] - given.start[p]
        return
    for r in range(len(demands.roots)):
        dijkstra(graph, length, demands.roots[r], work, parent)
        for k in range(demands.begin[r], demands.begin[r + 1]):
            v = demands.node[k]
            while v != demands.roots[r]:
                v = graph.head[parent[v]]
                hops[k] += 1


@njit(cache=True)
def _first_links(graph, demands, given, length, start, link):  # type: ignore[no-untyped-def]
    work, parent = allocate(graph.nodes), np.empty(graph.nodes, np.int32)
    if len(given.first) > 0:
        for k in range(len(demands.rate)):
            p, _ = _shortest_given(given, k, length)
            for j in range(given.start[p], given.start[p + 1]):
                link[start[k] + j - given.start[p]] = given.link[j]
        return
    for r in range(len(demands.roots)):
        dijkstra(graph, length, demands.roots[r], work, parent)
        for k in range(demands.begin[r], demands.begin[r + 1]):
            v, i = demands.node[k], start[k]
            while v != demands.roots[r]:
                link[i] = parent[v]
                v = graph.head[parent[v]]
                i += 1


@njit(cache=True)
def _distances(graph, demands, given, length, distance):  # type: ignore[no-untyped-def]
    work, parent = allocate(graph.nodes), np.empty(graph.nodes, np.int32)
    ceiling = length[len(graph.tail)]
    for r in range(len(demands.roots)):
        if len(given.first) == 0:
            dijkstra(graph, length, demands.roots[r], work, parent)
        for k in range(demands.begin[r], demands.begin[r + 1]):
            if len(given.first) > 0:
                _, distance[k] = _shortest_given(given, k, length)
            else:
                distance[k] = work.distance[demands.node[k]]
            if ceiling > 0.0:
                distance[k] = min(distance[k], ceiling)


@internal
def _add_slope(state, k, factor):  # type: ignore[no-untyped-def]
    """Add factor times the slope of demand k on its key path to the column of t."""
    key = state.key[k]
    for j in range(state.start[key], state.end[key]):
        if state.link[j] < len(state.rise):
            state.rise[state.link[j]] += factor * state.slope[k]


@njit(cache=True)
def _add_slopes(state):  # type: ignore[no-untyped-def]
    for k in range(len(state.key)):
        if state.slope[k] > 0.0:
            _add_slope(state, k, 1.0)


@njit(cache=True)
def _basic_columns(state, place, columns, cost, right):  # type: ignore[no-untyped-def]  # noqa: C901
    """Write the columns (P, A) of the basis that are no slacks, their costs, and the right-hand side."""
    links = len(state.capacity)
    for i in range(len(place)):
        p = place[i]
        if state.kind[p] == 1:
            q = state.item[p]
            key = state.key[state.owner[q]]
            for j in range(state.start[q], state.end[q]):
                e = state.link[j]
                cost[i] += state.cost[e]
                if e < links:
                    columns[i, e] += 1.0
            for j in range(state.start[key], state.end[key]):
                e = state.link[j]
                cost[i] -= state.cost[e]
                if e < links:
                    columns[i, e] -= 1.0
        else:
            cost[i] -= 1.0
            for e in range(links):
                columns[i, e] = state.rise[e]
                cost[i] += state.rise[e] * state.cost[e]
    t = state.amount[0] if state.number[0] < 0 else 0.0
    for k in range(len(state.key)):
        amount = state.fixed[k] + state.slope[k] * t
        if amount > 0.0:
            for j in range(state.start[state.key[k]], state.end[state.key[k]]):
                e = state.link[j]
                if e < links:
                    right[e] -= amount


@internal
def _key_flow(state, k):  # type: ignore[no-untyped-def]
    flow = state.fixed[k] + state.slope[k] * state.amount[0]
    i = state.first[k]
    while i >= 0:
        flow -= state.value[i]
        i = state.after[i]
    return flow


@njit(cache=True)
def _list_flows(state, flow):  # type: ignore[no-untyped-def]
    for k in range(len(state.key)):
        flow[state.key[k]] = _key_flow(state, k)
        i = state.first[k]
        while i >= 0:
            flow[state.item[i]] = state.value[i]
            i = state.after[i]


@internal
def _add_row(state, e, factor, change):  # type: ignore[no-untyped-def]
    """Add factor times the row of link e of the inverse to `change`."""
    i = state.place_of[e]
    if i >= 0:
        change[i] += factor
    else:
        row = state.inverse[e]
        for j in range(len(change)):
            change[j] += factor * row[j]


@internal
def _path_direction(state, q, key, side, change):  # type: ignore[no-untyped-def]
    """Write what a unit of path q instead of the key takes from each basic column."""
    links = len(state.capacity)
    for j in range(len(change)):
        change[j] = 0.0
    for j in range(state.start[q], state.end[q]):
        side[state.link[j]] += 1
    for j in range(state.start[key], state.end[key]):
        side[state.link[j]] -= 1
    for p in (q, key):
        for j in range(state.start[p], state.end[p]):
            e = state.link[j]
            if side[e] != 0 and e < links:
                _add_row(state, e, float(side[e]), change)
            side[e] = 0


@internal
def _rise_direction(state, change):  # type: ignore[no-untyped-def]
    """Write what a unit of t takes from each basic column; return its reduced cost."""
    cost = -1.0
    for j in range(len(change)):
        change[j] = 0.0
    for e in range(len(state.rise)):
        if state.rise[e] > 0.0:
            _add_row(state, e, state.rise[e], change)
            cost += state.rise[e] * (state.cost[e] + state.price[e])
    return cost


@internal
def _ratio_test(state, change, entering, rise, rate, seen):  # type: ignore[no-untyped-def]  # noqa: C901
    """Return (kind, index, step): place leaves (0), key leaves (1), t at its limit (2), no limit (3).

    entering  demand of the entering path, -1 for none
    rise      1 where t enters, else 0; rate (K,) is scratch space, 0 before and after
    """
    place = state.number[0]
    if rise == 0.0 and place >= 0:
        rise = -change[place]
    count = 0
    if entering >= 0:
        seen[0] = entering
        count = 1
    for i in range(len(change)):
        if state.kind[i] == 1:
            k = state.owner[state.item[i]]
            if state.first[k] == i and k != entering:
                seen[count] = k
                count += 1
            rate[k] -= change[i]
    for j in range(count):
        k = seen[j]
        rate[k] -= state.slope[k] * rise
        if k == entering:
            rate[k] += 1.0
    most = np.inf
    if rise > 1e-14:
        most = max(state.amount[1] - state.amount[0], 0.0) / rise
    for i in range(len(change)):
        if change[i] > LEAST_PIVOT and state.kind[i] != 2:
            size = state.capacity[state.item[i]]
            if state.kind[i] == 1:
                k = state.owner[state.item[i]]
                size = state.fixed[k] + state.slope[k] * state.amount[0]
            most = min(most, (max(state.value[i], 0.0) + FEASIBILITY * size) / change[i])
    for j in range(count):
        k = seen[j]
        if rate[k] > LEAST_PIVOT:
            size = state.fixed[k] + state.slope[k] * state.amount[0]
            most = min(most, (max(_key_flow(state, k), 0.0) + FEASIBILITY * size) / rate[k])
    kind, index, step, largest = 3, -1, np.inf, 0.0
    for i in range(len(change)):
        if change[i] > largest and change[i] > LEAST_PIVOT and state.kind[i] != 2:
            limit = max(state.value[i], 0.0) / change[i]
            if limit <= most:
                kind, index, step, largest = 0, i, limit, change[i]
    for j in range(count):
        k = seen[j]
        if rate[k] > largest and rate[k] > LEAST_PIVOT:
            limit = max(_key_flow(state, k), 0.0) / rate[k]
            if limit <= most:
                kind, index, step, largest = 1, k, limit, rate[k]
    if rise > 1e-14:
        limit = max(state.amount[1] - state.amount[0], 0.0) / rise
        if limit <= most and (kind == 3 or limit <= step):
            kind, index, step = 2, place, limit
    for j in range(count):
        rate[seen[j]] = 0.0
    for i in range(len(change)):
        if state.kind[i] == 1:
            rate[state.owner[state.item[i]]] = 0.0
    return kind, index, step


@internal
def _remove_path(state, i):  # type: ignore[no-untyped-def]
    """Take the path in place i off the list of its demand."""
    k = state.owner[state.item[i]]
    if state.first[k] == i:
        state.first[k] = state.after[i]
    else:
        j = state.first[k]
        while state.after[j] != i:
            j = state.after[j]
        state.after[j] = state.after[i]
    state.after[i] = -1


@internal
def _swap_key(state, k, change, own):  # type: ignore[no-untyped-def]
    """Make the basic path of demand k with most traffic its key; return the place where the old key is.

    own  what a unit of the entering column takes from the key itself
    """
    best, i = state.first[k], state.first[k]
    while i >= 0:
        if state.value[i] > state.value[best]:
            best = i
        i = state.after[i]
    flow = _key_flow(state, k)
    place, slope = state.number[0], state.slope[k]
    with_rise = place >= 0 and slope > 0.0
    for e in range(len(state.price)):
        total = 0.0
        row = state.inverse[e]
        i = state.first[k]
        while i >= 0:
            total -= row[i]
            i = state.after[i]
        if with_rise:
            total += slope * row[place]
        row[best] = total
    total = own
    i = state.first[k]
    while i >= 0:
        total -= change[i]
        i = state.after[i]
    if with_rise:
        total += slope * change[place]
    change[best] = total
    old = state.key[k]
    if slope > 0.0:
        _add_slope(state, k, -1.0)
    state.key[k] = state.item[best]
    if slope > 0.0:
        _add_slope(state, k, 1.0)
    state.item[best] = old
    state.value[best] = flow
    return best


@internal
def _eliminate(state, change, r, reduced_cost):  # type: ignore[no-untyped-def]
    """Update inverse and prices where the entering column replaces the one in place r."""
    pivot = change[r]
    for e in range(len(state.price)):
        row = state.inverse[e]
        if row[r] != 0.0:
            factor = row[r] / pivot
            for j in range(len(change)):
                row[j] -= factor * change[j]
            row[r] = factor
            state.price[e] -= reduced_cost * factor


@internal
def _leave(state, r):  # type: ignore[no-untyped-def]
    if state.kind[r] == 0:
        state.place_of[state.item[r]] = -1
    elif state.kind[r] == 1:
        _remove_path(state, r)
    else:
        state.number[0] = -1


@internal
def _move(state, change, step):  # type: ignore[no-untyped-def]
    for i in range(len(change)):
        state.value[i] -= step * change[i]
    if state.number[0] >= 0:
        state.amount[0] = state.value[state.number[0]]


@internal
def _pivot(state, change, kind, item, entering, reduced_cost, test):  # type: ignore[no-untyped-def]  # noqa: C901
    """Let a column of this kind enter as the ratio test says; return whether t is at its limit."""
    what, index, step = test
    state.number[3] += 1
    if step <= 0.0:
        state.number[4] += 1
    if what == 1 and index == entering and state.first[index] < 0:  # the path replaces its demand's key
        _move(state, change, step)
        place, slope = state.number[0], state.slope[entering]
        if slope > 0.0:
            _add_slope(state, entering, -1.0)
        state.key[entering] = item
        if slope > 0.0:
            _add_slope(state, entering, 1.0)
        if place >= 0 and slope > 0.0:
            for i in range(len(change)):
                change[i] *= slope
            change[place] += 1.0
            _eliminate(state, change, place, slope * reduced_cost)
        return False
    r = index
    if what == 1:
        own = 1.0 if index == entering else 0.0
        if kind == 2:
            own = -state.slope[index]
        r = _swap_key(state, index, change, own)
    _move(state, change, step)
    if kind == 2:
        step += state.amount[0]
    at_limit = what == 2
    _leave(state, r)
    if at_limit:
        state.amount[0] = state.amount[1]
    _eliminate(state, change, r, reduced_cost)
    state.kind[r], state.item[r], state.value[r] = kind, item, step
    if kind == 0:
        state.place_of[item] = r
    elif kind == 1:
        k = state.owner[item]
        state.after[r] = state.first[k]
        state.first[k] = r
    else:
        state.number[0] = r
        state.amount[0] = step
    return at_limit


@njit(cache=True)
def _enter_slack(state, e):  # type: ignore[no-untyped-def]
    """Let the slack of link e replace t in the basis, at its value."""
    change = state.inverse[e].copy()
    r = state.number[0]
    _leave(state, r)
    _eliminate(state, change, r, state.price[e])
    state.kind[r], state.item[r], state.value[r] = 0, e, 0.0
    state.place_of[e] = r


@internal
def _enter_full_links(state, change, rate, seen, most):  # type: ignore[no-untyped-def]
    """Let slacks of negative price enter; return the number of pivots, negative where t came to its limit."""
    count, none = 0, np.int64(-1)
    while count < most:
        worst, scale = none, 0.0
        for e in range(len(state.price)):
            scale = max(scale, abs(state.price[e]))
        least = -COST_TOLERANCE * scale
        for e in range(len(state.price)):
            if state.place_of[e] < 0 and state.price[e] < least:
                worst, least = np.int64(e), state.price[e]
        if worst < 0:
            return count
        for j in range(len(change)):
            change[j] = state.inverse[worst, j]
        test = _ratio_test(state, change, none, 0.0, rate, seen)
        if test[0] == 3:
            return count
        count += 1
        if _pivot(state, change, np.int64(SLACK), worst, none, state.price[worst], test):
            return -count
    return count


@internal
def _length_of(state, path):  # type: ignore[no-untyped-def]
    total, links = 0.0, len(state.price)
    for j in range(state.start[path], state.end[path]):
        e = state.link[j]
        total += state.cost[e]
        if e < links:
            total += state.price[e]
    return total


@internal
def _add_path(state, graph, given, k, root, node, parent, chosen):  # type: ignore[no-untyped-def]
    """Write a path behind the known ones, without counting it in; return its number.

    chosen  -2: leave traffic out; -1: the path of the tree; else a given path
    """
    p, i = state.used[0], state.used[1]
    state.owner[p] = k
    state.start[p] = i
    if chosen == -2:
        state.link[i] = len(state.price)
        i += 1
    elif chosen >= 0:
        for j in range(given.start[chosen], given.start[chosen + 1]):
            state.link[i] = given.link[j]
            i += 1
    else:
        v = node
        while v != root:
            state.link[i] = parent[v]
            i += 1
            v = graph.head[parent[v]]
    state.end[p] = i
    return p


@internal
def _fix_served(demands, state):  # type: ignore[no-untyped-def]
    """Fix the demands that are at their rates, and set the next limit of t; return whether none is left."""
    t, at = state.amount[1] * (1.0 + 1e-12), state.number[6]
    while at < len(state.queue) and state.queue[at] >= 0:
        k = state.queue[at]
        if demands.rate[k] > t * state.slope[k]:
            break
        _add_slope(state, k, -1.0)
        state.fixed[k], state.slope[k] = demands.rate[k], 0.0
        at += 1
    state.number[6] = at
    if at == len(state.queue) or state.queue[at] < 0:
        return True
    k = state.queue[at]
    state.amount[1] = demands.rate[k] / state.slope[k]
    return False


@internal
def _enter_rise(demands, state, change, rate, seen):  # type: ignore[no-untyped-def]
    """Let t enter the basis, past all limits at which demands are served; return -1 where it has."""
    none = np.int64(-1)
    while True:
        reduced_cost = _rise_direction(state, change)
        test = _ratio_test(state, change, none, 1.0, rate, seen)
        if test[0] == 3:
            return 3
        if test[0] != 2:
            _pivot(state, change, np.int64(RISE), none, none, reduced_cost, test)
            return -1
        _move(state, change, test[2])
        state.amount[0] = state.amount[1]
        if _fix_served(demands, state):
            return 2
        largest = 0.0
        for e in range(len(state.rise)):
            largest = max(largest, state.rise[e])
        if largest < LEAST_SLOPE:
            return 1


@njit(cache=True, nogil=True)
def _run(graph, demands, given, state, most):  # type: ignore[no-untyped-def]  # noqa: C901 - one compiled loop
    links, nodes = len(state.price), graph.nodes
    work, parent = allocate(nodes), np.empty(nodes, np.int32)
    change, side = np.empty(links), np.zeros(links + 1, np.int8)
    rate, seen = np.zeros(len(state.key)), np.empty(links + 2, np.int64)
    length, exact, distance = np.empty(links + 1), np.empty(links + 1), np.empty(nodes)
    ceiling, dearest = state.cost[links], 0.0
    for e in range(links):
        dearest = max(dearest, state.cost[e])
    done = 0
    state.number[2] = 0
    is_rising = state.amount[1] > 0.0
    while True:
        if is_rising and state.number[0] < 0:
            if state.amount[0] >= state.amount[1] and _fix_served(demands, state):
                return 2
            stop = _enter_rise(demands, state, change, rate, seen)
            if stop >= 0:
                return stop
            done += 1
            state.number[2] = 0
        if done >= most:
            return 1
        if state.number[2] >= len(demands.roots):
            if state.number[5] == 1:
                return 0
            state.number[5], state.number[2] = 1, 0
        is_exact = state.number[5] == 1
        share = COST_TOLERANCE if is_exact else FIRST_TOLERANCE
        made = _enter_full_links(state, change, rate, seen, most - done)
        done += abs(made)
        if made != 0:
            state.number[2] = 0
        if made < 0 or done >= most:
            continue
        scale = 0.0
        for e in range(links):
            scale = max(scale, state.price[e])
        length[links] = exact[links] = ceiling
        reference = dearest if dearest > 0.0 else max(scale, ceiling)
        for e in range(links):
            price = state.price[e]
            exact[e] = state.cost[e] + (price if price > NOISE * scale else 0.0)
            length[e] = exact[e]
            if not is_exact:
                slack = max(state.value[state.place_of[e]], 0.0) if state.place_of[e] >= 0 else 0.0
                length[e] += SMOOTHING * reference / (state.capacity[e] + SMOOTHING_SLACK * slack)
        r = state.number[1]
        root = demands.roots[r]
        if len(given.first) == 0:
            reached = dijkstra(graph, length, root, work, parent)
            distance[root] = 0.0
            for i in range(1, reached):
                v = work.order[i]
                distance[v] = distance[graph.head[parent[v]]] + exact[parent[v]]
        state.number[2] += 1
        for k in range(demands.begin[r], demands.begin[r + 1]):
            if state.fixed[k] <= 0.0 and state.slope[k] <= 0.0:
                continue
            now = _length_of(state, state.key[k])
            least = share * now + 10.0 * NOISE * scale
            chosen = -1
            if len(given.first) > 0:
                chosen, shortest = _shortest_given(given, k, length)
                if chosen >= 0 and not is_exact:
                    shortest = 0.0  # the length of the chosen path follows
            else:
                shortest = distance[demands.node[k]]
            if 0.0 < ceiling < shortest:
                chosen, shortest = -2, ceiling
            if shortest >= now - least:
                continue
            q = _add_path(state, graph, given, k, root, demands.node[k], parent, chosen)
            reduced_cost = _length_of(state, q) - now
            if reduced_cost >= -least:
                continue
            _path_direction(state, q, state.key[k], side, change)
            test = _ratio_test(state, change, k, 0.0, rate, seen)
            if test[0] == 3:
                return 3
            state.used[0], state.used[1] = q + 1, state.end[q]
            state.number[2] = 0
            done += 1
            if _pivot(state, change, np.int64(PATH), q, k, reduced_cost, test) or done >= most:
                break
        state.number[1] = (r + 1) % len(demands.roots)
