"""The cheapest ways of each demand under prices: on its present flow, anew without a count, and moved.

What a demand keeps is a flow within its present one. Under prices of links, the cheapest such flow of each
amount follows from shortest augmenting paths, and its marginal cost rises. Traffic routed anew costs the
length of the shortest path; beyond what has to change in any case, also the price of moved traffic. The
pieces of all these, by cost, are the cheapest flow of any amount of the demand. They make Lagrangian bounds
that hold for all plans under the limit, whatever routes a search has found so far.

source  successive shortest paths: Ahuja, Magnanti and Orlin 1993, section 9.7
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
import scipy.sparse as sp

from planner.arrays import Floats, Ints
from planner.compiled import njit, run_small_in_python
from planner.search.tolerances import SUM_ROUNDING
from planner_models.graphs.indexing import sum_by_index
from planner_models.traffic.plan.moved_traffic import (
    Capacities,
    Links,
    PresentFlow,
    Residual,
    send_along,
    step_back,
)
from planner_models.traffic.problem.problem import Traffic

LEAST_AMOUNT: Final = SUM_ROUNDING  # of a demand's present flow; less on a path is rounding


@dataclass(frozen=True, kw_only=True, eq=False)
class CheapestWays:
    """Pieces of each demand's traffic, by demand, then by cost; those of a demand add up to its rate.

    demand, rate  (n,) number of the demand, and its Mbit/s
    start, end    (n,) the piece is between these shares of its demand
    cost          (n,) of each Mbit/s
    """

    demand: Ints
    rate: Floats
    start: Floats
    end: Floats
    cost: Floats

    @classmethod
    def of(
        cls, problem: Traffic, present: PresentFlow, length: Floats, anew: Floats, move_price: float
    ) -> CheapestWays:
        """Return the pieces under lengths of links (E,).

        anew        (K,) length of the shortest path for traffic of each demand that is routed anew
        move_price  of a unit of moved traffic
        """
        rate, demands = problem.rate_mbps, np.flatnonzero(problem.rate_mbps > 0)
        present_flow = sp.csr_array(present.flow)
        present_flow.sum_duplicates()
        count, demand, amount, cost = _keep_cheapest(
            Capacities.of(present_flow),
            Links(problem.tail, problem.head),
            _Demands(problem.source, problem.target, anew + move_price, present.stays),
            length,
            len(problem.nodes),
        )
        new = np.maximum(rate - present.stays, 0.0)[demands]
        demand = np.concatenate([demand[:count], demands, demands])
        amount = np.concatenate([amount[:count], new, rate[demands]])
        cost = np.concatenate([cost[:count], anew[demands], anew[demands] + move_price])
        order = np.lexsort((cost, demand))
        demand, amount, cost = demand[order], amount[order], cost[order]
        total = np.cumsum(amount)
        first = np.r_[True, np.diff(demand) != 0] if len(demand) else np.zeros(0, dtype=bool)
        before = (total - amount)[first][np.cumsum(first) - 1]
        end = np.minimum((total - before) / rate[demand], 1.0)
        start = np.where(first, 0.0, np.r_[0.0, end[:-1]])
        used = end > start
        return cls(
            demand=demand[used], rate=rate[demand[used]], start=start[used], end=end[used], cost=cost[used]
        )

    def cost_of(self, ceiling: Floats | float) -> float:
        """Return the cost of all traffic, where no unit of demand k costs more than ceiling (K,)."""
        limit = ceiling if isinstance(ceiling, float) else ceiling[self.demand]
        return float((self.rate * (self.end - self.start)) @ np.minimum(self.cost, limit))

    def largest_share(self, prices: float) -> float:
        """Return the largest of prices + s less the cost of the share s of all demands, 0 <= s <= 1."""
        # cost rises by this for each unit of s between start and end; from 1 on, more of s brings nothing
        rise = np.minimum(self.rate * self.cost, 2.0)
        points = np.unique(np.r_[0.0, self.start, self.end, 1.0])
        change = sum_by_index(np.searchsorted(points, self.start), rise, len(points))
        change -= sum_by_index(np.searchsorted(points, self.end), rise, len(points))
        gain = np.maximum(1.0 - np.cumsum(change)[:-1], 0.0) @ np.diff(points)
        return float(prices + gain)


class _Demands(NamedTuple):
    """Demands, (K,) each: a piece costs less than the ceiling, and all add up to at most `max_amount`."""

    source: Ints
    target: Ints
    ceiling: Floats
    max_amount: Floats


class _Tree(NamedTuple):
    """Costs of paths to nodes, (N,), and the entries by which they lead there: see `step_back`."""

    distance: Floats
    came_by: Ints


@run_small_in_python(max_elements=1_000)
@njit(cache=True)
def _keep_cheapest(capacities, ends, demands, length, nodes):  # type: ignore[no-untyped-def]
    """Return (number, demand, amount, cost) of the pieces of the cheapest flow within the capacities."""
    count_demands = len(demands.source)
    size = 2 * count_demands + 16
    demand, amount, cost = np.zeros(size, np.int64), np.zeros(size), np.zeros(size)
    tree = _Tree(np.full(nodes, np.inf), np.full(nodes, -1, np.int64))
    count = 0
    for k in range(count_demands):
        low, high = capacities.start[k], capacities.start[k + 1]
        remaining, source, target = demands.max_amount[k], demands.source[k], demands.target[k]
        if low == high or remaining <= 0.0:
            continue
        limit = capacities.amount[low:high]
        residual = Residual(
            capacities.link[low:high], limit, np.zeros(high - low), LEAST_AMOUNT * limit.max()
        )
        while remaining > residual.threshold:
            _find_cheapest(residual, ends, length, source, tree)
            if not tree.distance[target] < demands.ceiling[k]:
                break
            step = _send_piece(residual, ends, tree.came_by, source, target, remaining)
            if count == size:
                size *= 2
                demand, amount, cost = _lengthen(demand, size), _lengthen(amount, size), _lengthen(cost, size)
            demand[count], amount[count], cost[count] = k, step, tree.distance[target]
            count += 1
            remaining -= step
    return count, demand, amount, cost


@njit(cache=True)
def _find_cheapest(residual, ends, length, source, tree):  # type: ignore[no-untyped-def]
    """Write the cheapest paths from a node over residual capacities (Bellman and Ford)."""
    links, limit, flow, threshold = residual
    tail, head = ends
    distance, came_by = tree
    for e in links:
        distance[tail[e]] = distance[head[e]] = np.inf
    distance[source] = 0.0
    is_changed, rounds = True, 0
    while is_changed and rounds <= len(links):
        is_changed, rounds = False, rounds + 1
        for i in range(len(links)):
            e = links[i]
            u, v = tail[e], head[e]
            margin = 1e-12 * length[e]
            if limit[i] - flow[i] > threshold and distance[u] + length[e] < distance[v] - margin:
                distance[v], came_by[v], is_changed = distance[u] + length[e], 2 * i, True
            if flow[i] > threshold and distance[v] - length[e] < distance[u] - margin:
                distance[u], came_by[u], is_changed = distance[v] - length[e], 2 * i + 1, True


@njit(cache=True)
def _send_piece(residual, ends, came_by, source, target, most):  # type: ignore[no-untyped-def]
    """Send the residual capacity of the path to a target, at most `most`; return the amount."""
    step, node, hops = most, target, 0
    while node != source and hops <= 2 * len(residual.link):
        free, node = step_back(residual, ends, came_by[node])
        step = min(step, free)
        hops += 1
    if node != source:  # rounding: no more of it costs less
        return most
    send_along(residual, ends, came_by, source, target, step)
    return step


@njit(cache=True)
def _lengthen(array, size):  # type: ignore[no-untyped-def]
    longer = np.empty(size, array.dtype)
    longer[: len(array)] = array
    return longer
