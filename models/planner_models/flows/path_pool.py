"""Flows of many demands on paths of their own, compiled: prices, shifts between paths, and repairs.

Every demand has options: paths through the network, and one that leaves traffic out. The latter is a path
over a single link behind the A links of the network, so that nothing treats it differently: one for all
demands, or one for each value of their traffic.
Options stand in linked lists, since new ones come one by one; `compact` puts them in the order of their
demands again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from planner.arrays import Floats, Ints, Ints32
from planner.compiled import njit, run_small_in_python
from planner.search.tolerances import SOLVER
from planner_models.flows.problem import FlowProblem
from planner_models.graphs.indexing import index_distinct, sum_by_index
from planner_models.graphs.shortest_path_trees import Graph, allocate, dijkstra

GROWING: Final = ("after", "owner", "start", "end", "flow", "idle")  # arrays with an entry for each option
GROWTH: Final = 3  # times the options of the first shortest paths are what arrays are allocated for
MAX_OPTIONS: Final = 48  # of one demand
MAX_SEARCH_STEPS: Final = 12  # of a line search
TIE: Final = SOLVER  # relative; a new path must be cheaper than the known ones by that much


class Demands(NamedTuple):
    """Demands in the order of their roots, to which the trees of shortest paths lead.

    roots  (R,) int32 nodes; begin (R + 1,): the demands of root r are begin[r] to begin[r + 1]
    node   (K,) int32 the other end of each demand; rate (K,) its traffic
    """

    roots: Ints32
    begin: Ints
    node: Ints32
    rate: Floats


def order_demands(problem: FlowProblem, *, by_target: bool = False) -> tuple[Graph, Demands, Ints]:
    """Return the network, its demands in the order of roots, and the demand of the problem for each of them.

    Roots are the targets, or the sources where these are far fewer; then the network is reversed.

    by_target  roots are the targets in any case
    """
    positive = np.flatnonzero(problem.rate_mbps > 0)
    count = len(problem.nodes)
    here, there = problem.source[positive], problem.target[positive]
    tail, head = problem.tail, problem.head
    fewer = 2 * len(index_distinct(here, count)[0]) < len(index_distinct(there, count)[0])
    if fewer and not by_target:
        here, there, tail, head = there, here, head, tail
    order = np.lexsort((here, there))
    roots, row = index_distinct(there[order], count)
    demands = Demands(
        roots=roots.astype(np.int32),
        begin=np.searchsorted(row, np.arange(len(roots) + 1)),
        node=here[order].astype(np.int32),
        rate=problem.rate_mbps[positive[order]],
    )
    return Graph.of(count, tail, head), demands, positive[order]


class Prices(NamedTuple):
    """Links under an augmented Lagrangian, (A + V,) each; the last V are for traffic that is left out.

    capacity    of the link
    cost        of a unit of traffic on it, before the price
    multiplier  Lagrangian multiplier of its capacity
    penalty     rise of the price per unit of load above the capacity
    load        traffic on it
    length      cost + max(0, multiplier + penalty (load - capacity)), kept up to date with `load`
    """

    capacity: Floats
    cost: Floats
    multiplier: Floats
    penalty: Floats
    load: Floats
    length: Floats


class Options(NamedTuple):
    """Options of the demands in linked lists.

    first  (K,) first option of each demand, -1 for none; after (P,) the next one, -1 behind the last
    owner  (P,) int32 demand of each option; flow (P,) its traffic
    start, end  (P,) the links of option p are link[start[p] : end[p]]
    idle   (P,) passes since it had traffic
    used   (2,) how many options and how many entries of `link` there are
    """

    first: Ints
    after: Ints
    owner: Ints32
    start: Ints
    end: Ints
    flow: Floats
    idle: Ints32
    link: Ints32
    used: Ints


class PassResult(NamedTuple):
    """The measurements of a pass.

    excess      cost of all traffic above that of the cheapest options
    candidates  options with traffic that are not the cheapest of their demand
    new         paths found
    """

    excess: float
    candidates: int
    new: int


@dataclass(eq=False)
class PathPool:
    """The options of all demands with their traffic, and the arrays that grow with them."""

    graph: Graph
    demands: Demands
    options: Options
    spare: Options | None = None
    """Arrays of the last `compact`, which the next one writes: new memory costs more time than to copy."""

    @classmethod
    def of(cls, graph: Graph, demands: Demands, kind: Ints) -> PathPool:
        """Return a pool in which every demand has one option: all its traffic is left out.

        kind  (K,) which of the links for that each demand takes, from 0
        """
        count, links = len(demands.rate), len(graph.tail)
        hops = _count_fewest_hops(graph, demands)
        options = _allocate(count, GROWTH * count + graph.nodes, GROWTH * (count + hops) + graph.nodes**2)
        number = np.arange(count)
        options.first[:], options.owner[:count], options.start[:count] = number, number, number
        options.end[:count], options.after[:count], options.idle[:count] = number + 1, -1, 0
        options.flow[:count], options.link[:count] = demands.rate, links + kind
        options.used[:] = count
        return cls(graph, demands, options)

    def add(self, demand: Ints, share: Floats, start: Ints, link: Ints32) -> None:
        """Add paths, each with a share (P,) of the traffic of its demand, which is left out no more.

        The links of path p are link[start[p] : start[p + 1]]; the shares of a demand add up to at most 1.
        """
        options, (count, entries) = self.options, self.options.used.tolist()
        paths, demands = len(demand), len(self.demands.rate)
        size, link_end = count + paths, entries + int(start[-1])
        options = _lengthen(options, size, link_end)
        options.owner[count:size] = demand
        options.start[count:size], options.end[count:size] = entries + start[:-1], entries + start[1:]
        options.link[entries:link_end] = link
        options.flow[count:size] = share * self.demands.rate[demand]
        options.idle[count:size] = 0
        sent = sum_by_index(demand, options.flow[count:size], demands)
        options.flow[:demands] = np.maximum(options.flow[:demands] - sent, 0.0)
        options.used[:] = size, link_end
        _link_options(options, count)
        self.options = options

    def run_pass(self, prices: Prices, *, threshold: float, search: bool = True) -> PassResult:
        """Run one pass: each demand gets its shortest path, and shifts traffic to its cheapest option.

        threshold  gains up to this cause no shift
        search     whether to look for new paths
        """
        measured = np.zeros(3)
        settings = _Pass(threshold, search, measured)
        root = 0
        while True:
            root = _run_pass(self.graph, self.demands, prices, self.options, settings, root)
            if root == len(self.demands.roots):
                return PassResult(float(measured[0]), int(measured[1]), int(measured[2]))
            self._extend()

    def _extend(self) -> None:
        """Allocate longer arrays for options and links."""
        options, (count, entries) = self.options, self.options.used.tolist()
        new, nodes = int(np.diff(self.demands.begin).max()), self.graph.nodes
        is_short = count + new > len(options.start), entries + new * nodes > len(options.link)
        self.options = _lengthen(
            options,
            2 * count + new if is_short[0] else count,
            2 * entries + new * nodes if is_short[1] else entries,
        )

    def compact(self, max_idle: int, keep: Options | None = None) -> None:
        """Remove options that had no traffic for more than `max_idle` passes; order the others by demand.

        keep  options of an earlier state, whose arrays are not written again
        """
        old, new = self.options, self.spare
        if new is not None and keep is not None and any(a is b for a, b in zip(new, keep, strict=True)):
            new = None
        count, entries = _count_kept(old, max_idle)
        more, nodes = int(np.diff(self.demands.begin).max()), self.graph.nodes
        if new is None or len(new.start) < count + more or len(new.link) < entries + more * nodes:
            new = _allocate(len(old.first), len(old.start), len(old.link))
        _compact(old, new, max_idle)
        self.options, self.spare = new, old

    def load(self, flow: Floats, links: int) -> Floats:
        """Return the load of each link under a flow (P,) of the options, shape (links,)."""
        load = np.zeros(links)
        _add_load(self.options, flow, load)
        return load

    def fit(self, prices: Prices) -> Floats:
        """Return the flow of the options (P,), reduced to the capacities, with residual capacity filled."""
        flow = self.options.flow.copy()
        _fit(self.options, self.demands.rate, prices.capacity, prices.load, flow)
        return flow

    def fit_in_order(self, prices: Prices, order: Ints, begin: Ints) -> Floats:
        """Return the flow of the options (P,), fitted as by `fit`, one group of demands after the other.

        begin  (G + 1,): the demands of group g are order[begin[g] : begin[g + 1]]
        """
        flow = self.options.flow.copy()
        _fit_in_order(self.options, self.demands.rate, prices.capacity, order, begin, flow)
        return flow


def _allocate(demands: int, options: int, entries: int) -> Options:
    """Return arrays for so many options with so many links, not written yet: that takes no memory."""
    return Options(
        first=np.empty(demands, dtype=np.int64),
        after=np.empty(options, dtype=np.int64),
        owner=np.empty(options, dtype=np.int32),
        start=np.empty(options, dtype=np.int64),
        end=np.empty(options, dtype=np.int64),
        flow=np.empty(options),
        idle=np.empty(options, dtype=np.int32),
        link=np.empty(entries, dtype=np.int32),
        used=np.zeros(2, dtype=np.int64),
    )


def _lengthen(options: Options, size: int, entries: int) -> Options:
    """Return the options in arrays of at least `size` options with `entries` links."""
    longer = {}
    for name, min_length, used in (*((name, size, 0) for name in GROWING), ("link", entries, 1)):
        array = getattr(options, name)
        if len(array) < min_length:
            longer[name] = np.empty(min_length, dtype=array.dtype)
            longer[name][: options.used[used]] = array[: options.used[used]]
    return options._replace(**longer)


def sum_reduced_cost(graph: Graph, demands: Demands, length: Floats, ceiling: Floats) -> float:
    """Return the sum over demands of rate times the ceiling (K,) less the cost of the shortest path."""
    return float(_sum_reduced_cost(graph, demands, length, ceiling))


# --- compiled -----------------------------------------------------------------------------


@run_small_in_python(max_elements=20_000)
@njit(cache=True)
def _count_fewest_hops(graph, demands):  # type: ignore[no-untyped-def]
    """Return the links of a path of the fewest links for each demand, summed over the demands."""
    work, parent, length = allocate(graph.nodes), np.empty(graph.nodes, np.int32), np.ones(len(graph.tail))
    total = 0
    for r in range(len(demands.roots)):
        dijkstra(graph, length, demands.roots[r], work, parent)
        for k in range(demands.begin[r], demands.begin[r + 1]):
            total += int(work.distance[demands.node[k]])
    return total


@run_small_in_python(max_elements=20_000)
@njit(cache=True)
def _link_options(options, first):  # type: ignore[no-untyped-def]
    """Put the options from `first` on in front of the lists of their demands."""
    for p in range(first, options.used[0]):
        options.after[p] = options.first[options.owner[p]]
        options.first[options.owner[p]] = p


@njit(cache=True)
def _length_of(prices, e):  # type: ignore[no-untyped-def]
    price = prices.multiplier[e] + prices.penalty[e] * (prices.load[e] - prices.capacity[e])
    return prices.cost[e] + max(price, 0.0)


class _Pass(NamedTuple):
    """Settings of a pass, and its results.

    threshold  gains up to this cause no shift
    search     whether to look for new paths
    measured   (3,) gain of all shifts, their number, and that of new paths
    """

    threshold: float
    search: bool
    measured: Floats


class _Choice(NamedTuple):
    """Options of one demand with their costs, and arrays of a pass.

    path  (N,) links of a path
    side  (E + 1,) which of two paths a link is on
    """

    option: Ints
    cost: Floats
    path: Ints32
    side: NDArray[np.int8]


@run_small_in_python(max_elements=20_000)
@njit(cache=True)
def _run_pass(graph, demands, prices, options, settings, root):  # type: ignore[no-untyped-def]
    """Run a pass from row `root` on; return the row at which the arrays are full, or the number of roots."""
    nodes, search = graph.nodes, settings.search
    work, parent = allocate(nodes), np.empty(nodes, np.int32)
    length, used = prices.length, options.used
    choice = _Choice(
        np.empty(MAX_OPTIONS, np.int64),
        np.empty(MAX_OPTIONS),
        np.empty(nodes, np.int32),
        np.zeros(len(length), np.int8),
    )
    for e in range(len(length)):
        length[e] = _length_of(prices, e)
    for r in range(root, len(demands.roots)):
        begin, end = demands.begin[r], demands.begin[r + 1]
        if search:
            if used[0] + end - begin > len(options.start) or used[1] + (end - begin) * nodes > len(
                options.link
            ):
                return r
            dijkstra(graph, length, demands.roots[r], work, parent)
        for k in range(begin, end):
            count, best, cheapest = _measure_options(options, k, length, choice)
            node = demands.node[k]
            if search and count < MAX_OPTIONS and work.distance[node] < cheapest * (1.0 - TIE):
                hops, v, c = 0, node, 0.0
                while v != demands.roots[r]:
                    choice.path[hops] = parent[v]
                    c += length[parent[v]]
                    hops += 1
                    v = graph.head[parent[v]]
                if c < cheapest * (1.0 - TIE):  # lengths may have changed since the tree was found
                    choice.option[count], choice.cost[count] = _add_option(options, k, choice.path[:hops]), c
                    best = count
                    count += 1
                    settings.measured[2] += 1
            if best >= 0:
                _shift_to_cheapest(prices, options, choice, count, best, demands.rate[k], settings)
    return len(demands.roots)


@njit(cache=True)
def _measure_options(options, k, length, choice):  # type: ignore[no-untyped-def]
    """Write the options of demand k and their costs; return their number, the cheapest one and its cost."""
    count, best, cheapest = 0, -1, np.inf
    p = options.first[k]
    while p >= 0 and count < MAX_OPTIONS:
        c = 0.0
        for i in range(options.start[p], options.end[p]):
            c += length[options.link[i]]
        choice.option[count], choice.cost[count] = p, c
        if c < cheapest:
            best, cheapest = count, c
        count += 1
        p = options.after[p]
    return count, best, cheapest


@njit(cache=True)
def _add_option(options, k, path):  # type: ignore[no-untyped-def]
    """Add a path of demand k, without flow; return its number."""
    used = options.used
    p = used[0]
    used[0] += 1
    options.owner[p] = k
    options.start[p] = used[1]
    for i in range(len(path)):
        options.link[used[1] + i] = path[i]
    used[1] += len(path)
    options.end[p] = used[1]
    options.flow[p] = 0.0
    options.idle[p] = 0
    options.after[p] = options.first[k]
    options.first[k] = p
    return p


@njit(cache=True)
def _shift_to_cheapest(prices, options, choice, count, best, rate, settings):  # type: ignore[no-untyped-def]  # noqa: C901
    """Shift flow of a demand from dearer options to the cheapest one, until their costs are equal."""
    measured, side, q = settings.measured, choice.side, choice.option[best]
    is_marked = False
    for j in range(count):
        p = choice.option[j]
        if j == best or options.flow[p] <= 0.0:
            options.idle[p] += 1
            continue
        options.idle[p] = 0
        gain = options.flow[p] * (choice.cost[j] - choice.cost[best])
        if gain > 0.0:
            measured[0] += gain
            measured[1] += 1
        if gain <= settings.threshold:
            continue
        if not is_marked:
            is_marked = True
            for i in range(options.start[q], options.end[q]):
                side[options.link[i]] = 1
        step = _line_search(prices, options, p, q, side)
        if step > 0.0:
            _shift(prices, options, p, q, options.flow[p] if options.flow[p] - step < 1e-12 * rate else step)
    if options.flow[q] > 0.0:
        options.idle[q] = 0
    if is_marked:
        for i in range(options.start[q], options.end[q]):
            side[options.link[i]] = 0


@njit(cache=True)
def _shift(prices, options, p, q, step):  # type: ignore[no-untyped-def]
    """Shift flow from option p to option q; update loads and lengths."""
    options.flow[p] -= step
    options.flow[q] += step
    for i in range(options.start[p], options.end[p]):
        e = options.link[i]
        prices.load[e] -= step
        prices.length[e] = _length_of(prices, e)
    for i in range(options.start[q], options.end[q]):
        e = options.link[i]
        prices.load[e] += step
        prices.length[e] = _length_of(prices, e)


@njit(cache=True)
def _slope(prices, options, p, q, side, step):  # type: ignore[no-untyped-def]
    """Return the cost of q less that of p after `step` has moved from p to q, and its derivative.

    Links of q have side 1; those on both paths keep their load.
    """
    slope, curvature = 0.0, 0.0
    for i in range(options.start[p], options.end[p]):
        e = options.link[i]
        if side[e] == 1:
            side[e] = 2
            continue
        price = prices.multiplier[e] + prices.penalty[e] * (prices.load[e] - step - prices.capacity[e])
        slope -= prices.cost[e]
        if price > 0.0:
            slope -= price
            curvature += prices.penalty[e]
    for i in range(options.start[q], options.end[q]):
        e = options.link[i]
        if side[e] == 2:
            side[e] = 1
            continue
        price = prices.multiplier[e] + prices.penalty[e] * (prices.load[e] + step - prices.capacity[e])
        slope += prices.cost[e]
        if price > 0.0:
            slope += price
            curvature += prices.penalty[e]
    return slope, curvature


@njit(cache=True)
def _line_search(prices, options, p, q, side):  # type: ignore[no-untyped-def]
    """Return the part of the flow on p that moves to q: up to equal costs, or all of it."""
    low_slope, _ = _slope(prices, options, p, q, side, 0.0)
    if low_slope >= 0.0:
        return 0.0
    low, high = 0.0, options.flow[p]
    high_slope, curvature = _slope(prices, options, p, q, side, high)
    if high_slope <= 0.0:
        return high
    for _ in range(MAX_SEARCH_STEPS):
        step = high - high_slope / curvature if curvature > 0.0 else 0.5 * (low + high)
        if step <= low or step >= high:
            step = low - low_slope * (high - low) / (high_slope - low_slope)
        slope, change = _slope(prices, options, p, q, side, step)
        if abs(slope) < 1e-12:
            return step
        if slope > 0.0:
            high, high_slope, curvature = step, slope, change
        else:
            low, low_slope = step, slope
        if high - low < 1e-9 * options.flow[p]:
            break
    return low if low > 0.0 else high


@run_small_in_python(max_elements=5_000)
@njit(cache=True)
def _sum_reduced_cost(graph, demands, length, ceiling):  # type: ignore[no-untyped-def]
    work, parent = allocate(graph.nodes), np.empty(graph.nodes, np.int32)
    total = 0.0
    for r in range(len(demands.roots)):
        dijkstra(graph, length, demands.roots[r], work, parent)
        for k in range(demands.begin[r], demands.begin[r + 1]):
            total += demands.rate[k] * max(ceiling[k] - work.distance[demands.node[k]], 0.0)
    return total


@njit(cache=True)
def _is_kept(options, p, max_idle):  # type: ignore[no-untyped-def]
    # the option that leaves traffic out was the first, and is the only one below the number of demands
    return p < len(options.first) or options.flow[p] > 0.0 or options.idle[p] <= max_idle


@run_small_in_python(max_elements=20_000)
@njit(cache=True)
def _count_kept(options, max_idle):  # type: ignore[no-untyped-def]
    count, entries = 0, 0
    for p in range(options.used[0]):
        if _is_kept(options, p, max_idle):
            count += 1
            entries += options.end[p] - options.start[p]
    return count, entries


@run_small_in_python(max_elements=20_000)
@njit(cache=True)
def _compact(old, new, max_idle):  # type: ignore[no-untyped-def]
    count = len(old.first)
    for k in range(count):  # option k leaves traffic of demand k out
        new.owner[k], new.start[k], new.end[k] = k, k, k + 1
        new.link[k] = old.link[k]
        new.flow[k], new.idle[k] = old.flow[k], old.idle[k]
    target, entry = count, count
    for k in range(count):
        last = -1
        p = old.first[k]
        while p >= 0:
            if _is_kept(old, p, max_idle):
                q = p
                if p >= count:
                    q = target
                    target += 1
                    entry = _copy_option(old, new, p, q, k, entry)
                if last < 0:
                    new.first[k] = q
                else:
                    new.after[last] = q
                last = q
            p = old.after[p]
        new.after[last] = -1
    new.used[0], new.used[1] = target, entry


@njit(cache=True)
def _copy_option(old, new, p, q, k, entry):  # type: ignore[no-untyped-def]
    """Write option p of demand k as option q, its links from `entry` on; return where these end."""
    new.owner[q], new.start[q] = k, entry
    for i in range(old.start[p], old.end[p]):
        new.link[entry] = old.link[i]
        entry += 1
    new.end[q] = entry
    new.flow[q], new.idle[q] = old.flow[p], old.idle[p]
    return entry


@run_small_in_python(max_elements=20_000)
@njit(cache=True)
def _add_load(options, flow, load):  # type: ignore[no-untyped-def]
    for p in range(options.used[0]):
        if flow[p] > 0.0:
            for i in range(options.start[p], options.end[p]):
                load[options.link[i]] += flow[p]


@run_small_in_python(max_elements=5_000)
@njit(cache=True)
def _fit(options, rate, capacity, load, flow):  # type: ignore[no-untyped-def]
    """Reduce flows on overloaded links, then fill residual capacity over known paths; changes `flow`."""
    count, links = len(options.first), len(load) - 1
    residual = np.empty(links)
    for e in range(links):
        residual[e] = capacity[e]
    for p in range(count, options.used[0]):
        if flow[p] > 0.0:
            largest = 1.0
            for i in range(options.start[p], options.end[p]):
                e = options.link[i]
                largest = max(largest, load[e] / capacity[e])
            flow[p] /= largest
            for i in range(options.start[p], options.end[p]):
                residual[options.link[i]] -= flow[p]
    for k in range(count):
        _fill(options, k, rate[k], residual, flow)


@njit(cache=True)
def _fill(options, k, rate, residual, flow):  # type: ignore[no-untyped-def]
    """Send the missing traffic of demand k over its paths within residual capacity; leave the others out."""
    count, missing = len(options.first), rate
    p = options.first[k]
    while p >= 0:
        if p >= count:
            missing -= flow[p]
        p = options.after[p]
    p = options.first[k]
    while p >= 0 and missing > 0.0:
        if p >= count:
            largest = missing
            for i in range(options.start[p], options.end[p]):
                largest = min(largest, residual[options.link[i]])
            if largest > 0.0:
                flow[p] += largest
                missing -= largest
                for i in range(options.start[p], options.end[p]):
                    residual[options.link[i]] -= largest
        p = options.after[p]
    flow[k] = max(missing, 0.0)


@run_small_in_python(max_elements=20_000)
@njit(cache=True)
def _fit_in_order(options, rate, capacity, order, begin, flow):  # type: ignore[no-untyped-def]
    """Fit the flows of one group of demands after the other, as `_fit` fits all; changes `flow`.

    begin  (G + 1,): the demands of group g are order[begin[g] : begin[g + 1]]
    """
    residual = capacity.copy()
    load = np.empty(len(capacity))
    for g in range(len(begin) - 1):
        demands = order[begin[g] : begin[g + 1]]
        load[:] = 0.0
        for k in demands:
            _add_flow(options, k, flow, load, 1.0)
        for k in demands:
            _reduce(options, k, flow, load, residual)
        for k in demands:
            _add_flow(options, k, flow, residual, -1.0)
        for k in demands:
            _fill(options, k, rate[k], residual, flow)


@njit(cache=True)
def _add_flow(options, k, flow, load, sign):  # type: ignore[no-untyped-def]
    """Add or subtract the flow of demand k, by the sign, on the links of its paths."""
    p = options.first[k]
    while p >= 0:
        if p >= len(options.first):
            for i in range(options.start[p], options.end[p]):
                load[options.link[i]] += sign * flow[p]
        p = options.after[p]


@njit(cache=True)
def _reduce(options, k, flow, load, residual):  # type: ignore[no-untyped-def]
    """Reduce the flows of demand k by the overload of the links of each path."""
    p = options.first[k]
    while p >= 0:
        if p >= len(options.first):
            fraction = 1.0
            for i in range(options.start[p], options.end[p]):
                e = options.link[i]
                if load[e] > 0.0 and load[e] > residual[e]:
                    fraction = min(fraction, max(residual[e], 0.0) / load[e])
            flow[p] *= fraction
        p = options.after[p]
