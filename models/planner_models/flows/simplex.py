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
from typing import Final

import numpy as np

from planner.arrays import Bools, Floats, Ints, Ints32
from planner.compiled import inner, njit, run_small_in_python
from planner.search.tolerances import SUM_ROUNDING
from planner_models.flows.path_pool import Demands
from planner_models.flows.shortest_of_demands import find_first, measure_distances, shortest_given
from planner_models.flows.simplex_pivots import (
    COST_TOLERANCE,
    NO_LIMIT,
    Tree,
    add_key_loads,
    add_path,
    add_slopes,
    enter_full_links,
    enter_rise,
    enter_slack,
    fix_served,
    length_of,
    limit_step,
    list_flows,
    pivot,
    write_basic_columns,
    write_path_direction,
)
from planner_models.flows.simplex_state import (
    CALL,
    EXACT,
    LIMIT,
    LINKS,
    NEXT_ROOT,
    NO_PATHS,
    NOW,
    OPTIMAL,
    PATH,
    PATHS,
    QUEUE_PLACE,
    RISE_PLACE,
    ROOTS_WITHOUT,
    SERVED,
    SLACK,
    SMOOTHED,
    STAGE,
    UNBOUNDED,
    GivenPaths,
    State,
    Stop,
)
from planner_models.graphs.indexing import sum_by_index
from planner_models.graphs.path_search import FoundPaths, take
from planner_models.graphs.shortest_path_trees import Graph, Workspace, allocate, dijkstra

PIVOTS_PER_CALL: Final = 1000  # between two of which the basis is inverted anew
MIN_PIVOTS: Final = 100
MULTIPLICATIONS_PER_CALL: Final = 1e9  # of the inverse, in fewer pivots where it is large
CALLS_PER_COMPACTION: Final = 2  # at least, with as many new paths as there can be
FIRST_TOLERANCE: Final = 0.1  # relative: by how much a path must be shorter under smoothed prices
SMOOTHING: Final = 0.03  # price of a full link without one, as a share of the largest
SMOOTHING_SLACK: Final = 20.0  # by which the slack of a link weighs more than its capacity
UNLIMITED: Final = 1e12  # times a demand: more than any t
NOISE: Final = SUM_ROUNDING  # of the largest price; smaller prices are rounding


@dataclass(eq=False)
class PathSimplex:
    """A linear program over the paths of demands with its basis, which stays when rates and costs change."""

    graph: Graph
    demands: Demands
    given: GivenPaths
    state: State

    @classmethod
    def of(
        cls,
        graph: Graph,
        demands: Demands,
        capacity: Floats,
        given_paths: GivenPaths | None = None,
        first: FoundPaths | None = None,
    ) -> PathSimplex:
        """Return the program in which no demand has traffic.

        first  the key path of each demand, in their order; by default the shortest ones by 1 / capacity
        """
        links, count = len(capacity), len(demands.rate)
        given_paths = NO_PATHS if given_paths is None else given_paths
        if first is None:
            first = find_first(graph, demands, given_paths, capacity.max() / capacity)
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
            number=np.array([-1, 0, 0, 0, 0, EXACT, count], dtype=np.int64),
            amount=np.array([0.0, 0.0]),
        )
        state.link[: end[-1]] = first.link
        return cls(graph, demands, given_paths, state)

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
        state.number[STAGE], state.number[QUEUE_PLACE] = SMOOTHED, 0

    def rise_unit(self, slope: Floats) -> float:
        """Return the size of one unit of t: slopes (K,) times that have a largest load of 1.

        The load is that of key paths.
        """
        load = np.zeros(len(self.state.capacity) + 1)
        add_key_loads(self.state, slope, load)
        return 1.0 / float(load.max())

    @property
    def t(self) -> float:
        """Return the value of t."""
        return float(self.state.amount[NOW])

    @property
    def has_rise(self) -> bool:
        """Return whether t is in the basis."""
        return bool(self.state.number[RISE_PLACE] >= 0)

    def smooth_prices(self) -> None:
        """Search under smoothed prices first, as after a change of costs or rates good paths are unknown."""
        self.state.number[STAGE] = SMOOTHED

    def leave_out(self, price: float) -> None:
        """Give every demand its rate, and the option to leave traffic out at this price; all is left out."""
        state = self.state
        links, count = len(state.capacity), len(self.demands.rate)
        state.cost[links] = price
        state.fixed[:], state.slope[:] = self.demands.rate, 0.0
        state.start[:count], state.end[:count] = np.arange(count), np.arange(count) + 1
        state.link[:count] = links
        state.used[:] = count
        state.number[STAGE] = SMOOTHED

    def send(self, paths: FoundPaths, otherwise: Ints | None = None) -> None:
        """Send demands that are left out over one path each, one after another, where it has free capacity.

        paths      at most one for each demand, by its place here
        otherwise  (K,) the link that is the path of others; by default that of traffic that is left out
        """
        state, count = self.state, len(self.demands.rate)
        fits = np.zeros(len(paths.demand), dtype=bool)
        _find_fitting(paths.demand, paths.start, paths.link, state.fixed, state.capacity.copy(), fits)
        fitting = take(paths, np.flatnonzero(fits))
        hops = np.ones(count, dtype=np.int64)
        hops[fitting.demand] = np.diff(fitting.start)
        end = np.cumsum(hops)
        size, entries = self._sizes(self.graph, count, int(end[-1]))
        start, last = np.zeros(size, dtype=np.int64), np.zeros(size, dtype=np.int64)
        start[:count], last[:count] = end - hops, end
        link = np.full(entries, len(state.capacity), dtype=np.int32)
        if otherwise is not None:
            link[start[:count]] = otherwise
        entry = np.arange(len(fitting.link)) + np.repeat(
            start[fitting.demand] - fitting.start[:-1], np.diff(fitting.start)
        )
        link[entry] = fitting.link
        owner = np.zeros(size, dtype=np.int32)
        owner[:count] = np.arange(count)
        self.state = state._replace(
            start=start, end=last, link=link, owner=owner, used=np.array([count, end[-1]], dtype=np.int64)
        )

    @staticmethod
    def _sizes(graph: Graph, paths: int, entries: int, calls: int = 1) -> tuple[int, int]:
        """Return the number of paths and entries of `link` that there may be after some calls."""
        new = calls * (PIVOTS_PER_CALL + len(graph.tail) + 2)
        return paths + new, entries + new * graph.nodes

    def run(self) -> Stop:
        """Run up to `PIVOTS_PER_CALL` pivots from a fresh inverse; t is in the basis, or enters."""
        state = self.state
        pivots = int(MULTIPLICATIONS_PER_CALL / max(state.inverse.size, 1))
        pivots = min(max(pivots, MIN_PIVOTS), PIVOTS_PER_CALL)
        paths, entries = self._sizes(self.graph, *state.used.tolist())
        if paths > len(state.owner) or entries > len(state.link):
            self._compact()
        self._invert()
        return Stop(_run(self.graph, self.demands, self.given, self.state, pivots))

    def _compact(self) -> None:
        """Keep the keys and the basic paths only, and make the arrays long enough for some calls."""
        old = self.state
        used = np.concatenate([old.key, old.item[old.kind == PATH]])
        hops = (old.end - old.start)[used]
        end = np.cumsum(hops)
        paths, entries = self._sizes(self.graph, len(used), int(end[-1]), calls=CALLS_PER_COMPACTION)
        owner, link = np.zeros(paths, dtype=np.int32), np.zeros(entries, dtype=np.int32)
        start, last = np.zeros(paths, dtype=np.int64), np.zeros(paths, dtype=np.int64)
        owner[: len(used)] = old.owner[used]
        start[: len(used)], last[: len(used)] = end - hops, end
        entry = np.arange(end[-1]) + np.repeat(old.start[used] - (end - hops), hops)
        link[: end[-1]] = old.link[entry]
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
        positions = np.flatnonzero(state.kind != SLACK)
        state.rise[:] = 0.0
        add_slopes(state)
        columns = np.zeros((len(positions), links))
        cost = np.zeros(len(positions))
        right = state.capacity.copy()
        write_basic_columns(state, positions, columns, cost, right)
        core = np.linalg.inv(columns[:, full].T) if len(positions) else np.zeros((0, 0))  # (place, full)
        state.inverse[:] = 0.0
        state.inverse[slack, state.place_of[slack]] = 1.0
        state.inverse[np.ix_(full, positions)] = core.T
        state.inverse[np.ix_(full, state.place_of[slack])] = -(columns[:, slack].T @ core).T
        state.value[:] = right @ state.inverse
        state.price[:] = 0.0
        state.price[full] = -(cost @ core)
        if state.number[RISE_PLACE] >= 0:
            state.amount[NOW] = state.value[state.number[RISE_PLACE]]

    def _release_rise(self) -> None:
        """Take t out of the basis, at its value; a full link gets a slack instead."""
        state = self.state
        if state.number[RISE_PLACE] < 0:
            return
        full = state.place_of < 0
        link = int(np.argmax(np.where(full, np.abs(state.inverse[:, state.number[RISE_PLACE]]), -1.0)))
        enter_slack(state, link)

    def flows(self) -> tuple[Ints, Floats]:
        """Return the paths in use, and their traffic; these are the paths of `state`."""
        state = self.state
        flow = np.zeros(state.used[PATHS])
        list_flows(state, flow)
        used = np.flatnonzero(flow > 0)
        return used, flow[used]

    def lengths(self, paths: Ints, length: Floats) -> Floats:
        """Return the sum of a length of links, (A + 1,), over each path."""
        state = self.state
        hops = (state.end - state.start)[paths]
        row = np.repeat(np.arange(len(paths)), hops)
        entry = np.arange(hops.sum()) + np.repeat(state.start[paths] - np.cumsum(hops) + hops, hops)
        return sum_by_index(row, length[state.link[entry]], len(paths))

    def distances(self) -> Floats:
        """Return the length of the shortest path of each demand under the prices, (K,)."""
        length = np.r_[np.maximum(self.state.price, 0.0), 0.0] + self.state.cost
        distance = np.empty(len(self.demands.rate))
        measure_distances(self.graph, self.demands, self.given, length, distance)
        return distance


@run_small_in_python(max_elements=20_000)
@njit(cache=True)
def _find_fitting(
    demand: Ints, start: Ints, link: Ints32, rate: Floats, residual: Floats, fits: Bools
) -> None:
    """Write the mask of paths with free capacity for their demands, in order; uses up `residual`."""
    for p in range(len(demand)):
        k = demand[p]
        fits[p] = True
        for j in range(start[p], start[p + 1]):
            fits[p] = fits[p] and residual[link[j]] >= rate[k]
        if fits[p]:
            for j in range(start[p], start[p + 1]):
                residual[link[j]] -= rate[k]


@run_small_in_python(max_elements=60_000)
@njit(cache=True, nogil=True)
def _run(graph: Graph, demands: Demands, given_paths: GivenPaths, state: State, limit: int) -> int:  # noqa: C901 - one compiled loop
    links, nodes = len(state.price), graph.nodes
    work, parent = allocate(nodes), np.empty(nodes, np.int32)
    change, side = np.empty(links), np.zeros(links + 1, np.int8)
    rate, seen = np.zeros(len(state.key)), np.empty(links + 2, np.int64)
    length, exact, distance = np.empty(links + 1), np.empty(links + 1), np.empty(nodes)
    ceiling, dearest = state.cost[links], 0.0
    for e in range(links):
        dearest = max(dearest, state.cost[e])
    pivots = 0
    state.number[ROOTS_WITHOUT] = 0
    is_rising = state.amount[LIMIT] > 0.0
    while True:
        if is_rising and state.number[RISE_PLACE] < 0:
            if state.amount[NOW] >= state.amount[LIMIT] and fix_served(demands, state):
                return SERVED
            stop = enter_rise(demands, state, change, rate, seen)
            if stop >= 0:
                return stop
            pivots += 1
            state.number[ROOTS_WITHOUT] = 0
        if pivots >= limit:
            return CALL
        if state.number[ROOTS_WITHOUT] >= len(demands.roots):
            if state.number[STAGE] == EXACT:
                return OPTIMAL
            state.number[STAGE], state.number[ROOTS_WITHOUT] = EXACT, 0
        is_exact = state.number[STAGE] == EXACT
        share = COST_TOLERANCE if is_exact else FIRST_TOLERANCE
        made = enter_full_links(state, change, rate, seen, limit - pivots)
        pivots += abs(made)
        if made != 0:
            state.number[ROOTS_WITHOUT] = 0
        if made < 0 or pivots >= limit:
            continue
        scale = _write_lengths(state, dearest, is_exact, length, exact)
        r = state.number[NEXT_ROOT]
        tree = Tree(demands.roots[r], parent)
        if len(given_paths.first) == 0:
            _measure_tree(graph, length, exact, tree, work, distance)
        state.number[ROOTS_WITHOUT] += 1
        for k in range(demands.begin[r], demands.begin[r + 1]):
            if state.fixed[k] <= 0.0 and state.slope[k] <= 0.0:
                continue
            now = length_of(state, state.key[k])
            margin = share * now + 10.0 * NOISE * scale
            path_index = -1
            if len(given_paths.first) > 0:
                path_index, shortest = shortest_given(given_paths, k, length)
                if path_index >= 0 and not is_exact:
                    shortest = 0.0  # the length of the chosen path follows
            else:
                shortest = distance[demands.node[k]]
            if 0.0 < ceiling < shortest:
                path_index, shortest = -2, ceiling
            if shortest >= now - margin:
                continue
            q = add_path(state, graph, given_paths, k, demands.node[k], tree, path_index)
            reduced_cost = length_of(state, q) - now
            if reduced_cost >= -margin:
                continue
            write_path_direction(state, q, state.key[k], side, change)
            test = limit_step(state, change, k, 0.0, rate, seen)
            if test[0] == NO_LIMIT:
                return UNBOUNDED
            state.used[PATHS], state.used[LINKS] = q + 1, state.end[q]
            state.number[ROOTS_WITHOUT] = 0
            pivots += 1
            if pivot(state, change, np.int64(PATH), q, k, reduced_cost, test) or pivots >= limit:
                break
        state.number[NEXT_ROOT] = (r + 1) % len(demands.roots)


@inner
def _write_lengths(state: State, dearest: float, is_exact: bool, length: Floats, exact: Floats) -> float:
    """Write the lengths of links, smoothed unless they are exact; return the largest price.

    dearest  largest cost of a link
    """
    links = len(state.price)
    ceiling, scale = state.cost[links], 0.0
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
    return scale


@inner
def _measure_tree(
    graph: Graph, length: Floats, exact: Floats, tree: Tree, work: Workspace, distance: Floats
) -> None:
    """Find the tree of shortest paths by `length`; write the distances of nodes on it by exact lengths."""
    parent = tree.parent
    reached = dijkstra(graph, length, tree.root, work, parent)
    distance[tree.root] = 0.0
    for i in range(1, reached):
        v = work.order[i]
        distance[v] = distance[graph.head[parent[v]]] + exact[parent[v]]
