"""One path for each demand that balances the utilization of links: a start for the simplex method over paths.

A local search moves whole demands, one after another, to
their shortest path under the prices

    price of a link = (utilization / largest utilization)^p / capacity,

which follow each move. The power p grows from pass to pass, so that first all busy links count, and in the
end almost only the busiest ones of each region. Where demands are small beside the links, paths that carry
one demand each come near the optimum over split demands, and a simplex method from them has little to do.

Any prices p bound the level t of max-min fair rates: for the distances d of demands of a weight,
t * sum of weight d <= sum of capacity p.

source  power function of the utilization: Fratta, Gerla and Kleinrock, "The flow deviation method" (1973)
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from planner.arrays import Floats, Ints, Ints32
from planner.compiled import inner, njit, run_small_in_python
from planner.search.deadline import Deadline
from planner.search.tolerances import FEASIBILITY
from planner_models.flows.fair_rates import fill_progressively
from planner_models.flows.path_pool import Demands
from planner_models.flows.shortest_of_demands import find_first, measure_distances
from planner_models.flows.simplex_state import NO_PATHS
from planner_models.graphs.path_search import FoundPaths
from planner_models.graphs.shortest_path_trees import Graph, allocate, dijkstra

FIRST_POWER: Final = 3.0


POWER_FACTOR: Final = 1.4  # by which the power grows after a pass


LAST_POWER: Final = 120.0


MIN_MOVED: Final = 1e-3  # of the demands: the search ends with the last power, or where fewer move


SHORTER: Final = FEASIBILITY  # relative: a path must be shorter than the present one by that much


MIN_PRICE: Final = 1e-100  # times capacity: idle links are not free, and the shortest of them come first


SPARE: Final = 1.2  # times the links of all paths: how long the arrays of a pass are


MAX_EXCESS: Final = 100.0  # of the largest utilization before a pass, which prices follow up to that much


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
    rate = fill_progressively(
        paths.start,
        paths.link.astype(np.int64),
        np.ones(len(paths.link)),
        capacity,
        demands.rate,
        weight,
        limit,
        np.argsort(limit, kind="stable"),
    )
    is_limited = rate < demands.rate * (1 - SHORTER)
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


@run_small_in_python(max_elements=1_000)
@njit(cache=True)
def _move_demands(  # noqa: C901 - one compiled loop
    graph: Graph, demands: Demands, amount: Floats, prices: _Prices, old: _Paths, new: _Paths, root: int
) -> tuple[int, int]:
    """Move demands from row `root` on to paths that are shorter with them, and write the paths of all.

    Returns the row at which the array is full, or the number of roots; and how many demands moved.
    """
    work, parent = allocate(graph.nodes), np.empty(graph.nodes, np.int32)
    last, power = np.full(len(prices.load), -1), prices.power[0]  # last: demand on the link
    moved, used = 0, new.start[demands.begin[root]]
    for e in range(len(prices.load)):
        _change_load(prices, e, 0.0)
    for r in range(root, len(demands.roots)):
        begin, end, goal = demands.begin[r], demands.begin[r + 1], demands.roots[r]
        if used + (end - begin) * graph.nodes + old.start[end] - old.start[begin] > len(new.link):
            return r, moved
        dijkstra(graph, prices.price, goal, work, parent)
        for k in range(begin, end):
            now, length = 0.0, work.distance[demands.node[k]]
            for i in range(old.start[k], old.start[k + 1]):
                now += prices.price[old.link[i]]
                last[old.link[i]] = k
            limit = now * (1.0 - SHORTER)
            is_shorter = length < limit
            if is_shorter:  # prices may have changed since the tree was found; they rise by no less than this
                v, length = demands.node[k], 0.0
                while v != goal:
                    e = parent[v]
                    rise = 0.0 if last[e] == k else power * amount[k] / max(prices.load[e], amount[k])
                    length += prices.price[e] * (1.0 + rise)
                    v = graph.head[e]
                is_shorter = length < limit
            if is_shorter:
                for i in range(old.start[k], old.start[k + 1]):
                    _change_load(prices, old.link[i], -amount[k])
                v, length = demands.node[k], 0.0
                while v != goal:
                    e = parent[v]
                    length += _price_at(prices, e, prices.load[e] + amount[k])
                    v = graph.head[e]
                is_shorter = length < limit
                if not is_shorter:
                    for i in range(old.start[k], old.start[k + 1]):
                        _change_load(prices, old.link[i], amount[k])
            if is_shorter:
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
