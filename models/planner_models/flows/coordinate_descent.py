"""Block coordinate descent on the smoothed largest utilization: a start for column generation.

The largest utilization is smoothed to (1/k) log sum_e exp(k load_e / capacity_e). Each root in turn
gets its shortest tree under the derivatives of this function as prices, and moves traffic to that tree
by an exact line search. Loads and prices are updated after every root, not once per pass: stale
prices would not allow the exact step.

source  Radzik, "Fast deterministic approximation for the multicommodity flow problem" (1997), for
        treating the commodities one by one
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np

from planner.arrays import Floats, Ints, Ints32
from planner.compiled import njit, run_small_in_python
from planner_models.graphs.shortest_path_trees import Graph, allocate, dijkstra

UNIFORM_PRICE_SHARE: Final = 1e-3  # of all prices, spread evenly: keeps trees short on unloaded links
MAX_NEWTON_STEPS: Final = 14


def run_pass(
    graph: Graph,
    capacity: Floats,
    roots: Ints,
    amount: Floats,
    *,
    sharpness: float,
    root_load: Floats,
    load: Floats,
) -> tuple[Ints32, Floats]:
    """Run one pass over the roots; `root_load` and `load` are changed in place.

    roots, amount    (R,), (R, N) traffic that each node sends to them
    sharpness        k of the smoothed maximum, per unit of utilization
    root_load, load  (R, A) load of each root's traffic on each arc, and (A,) their sum

    returns  (R, N) the tree tried for each root; (R,) the share of its traffic that moved to it
    """
    parent = np.empty((len(roots), graph.nodes), dtype=np.int32)
    share = np.zeros(len(roots))
    descent = _Descent(roots.astype(np.int32), amount, root_load, load, parent, share)
    _run_pass(graph, capacity, sharpness, descent)
    return parent, share


def link_prices(load: Floats, capacity: Floats, sharpness: float) -> Floats:
    """Return the derivative of the smoothed maximum by each arc's utilization, shape (A,), sum 1."""
    utilization = load / capacity
    price: Floats = np.exp(sharpness * (utilization - utilization.max()))
    price /= price.sum()
    return price


class _Descent(NamedTuple):
    """Traffic to each root, and the arrays that a pass writes: see `run_pass`."""

    roots: Ints32
    amount: Floats
    root_load: Floats
    load: Floats
    parent: Ints32
    share: Floats


@run_small_in_python(max_elements=5_000)
@njit(cache=True)
def _run_pass(graph, capacity, sharpness, descent):  # type: ignore[no-untyped-def]
    roots, amount, root_load, load, parent, share = descent
    nodes, arcs = graph.nodes, len(graph.tail)
    passing, work = np.empty(nodes), allocate(nodes)
    length, change = np.empty(arcs), np.empty(arcs)
    moving = np.empty(arcs, np.int32)
    for r in range(len(roots)):
        top = _write_prices(load, capacity, sharpness, length)
        reached = dijkstra(graph, length, roots[r], work, parent[r])
        for e in range(arcs):
            change[e] = -root_load[r, e]
        passing[:] = amount[r]
        for i in range(reached - 1, 0, -1):
            v = work.order[i]
            arc = parent[r, v]
            change[arc] += passing[v]
            passing[graph.head[arc]] += passing[v]
        # the line search needs only the arcs whose load changes
        count, slope, limit = 0, 0.0, 1.0
        for e in range(arcs):
            if change[e] != 0.0:
                moving[count] = e
                count += 1
                slope += length[e] * change[e]
                if change[e] > 0.0:  # no step takes an arc far above the largest utilization
                    limit = min(limit, ((top + 2.0 / sharpness) * capacity[e] - load[e]) / change[e])
        if slope >= 0.0 or limit <= 0.0:
            continue
        step = _line_search(length, change, capacity, moving[:count], sharpness, limit)
        share[r] = step
        for j in range(count):
            e = moving[j]
            root_load[r, e] = max(root_load[r, e] + step * change[e], 0.0)
            load[e] += step * change[e]


@njit(cache=True)
def _line_search(length, change, capacity, moving, sharpness, limit):  # type: ignore[no-untyped-def]
    """Return the step, at most `limit`, at which the slope turns positive, approached from below."""
    low, high, step = 0.0, limit, limit
    for _ in range(MAX_NEWTON_STEPS):
        slope, curvature = 0.0, 0.0
        for j in range(len(moving)):
            e = moving[j]
            term = length[e] * math.exp(min(sharpness * step * change[e] / capacity[e], 300.0)) * change[e]
            slope += term
            curvature += sharpness * term * change[e] / capacity[e]
        if slope > 0.0:
            high = step
        else:
            low = step
        if low == limit or (low > 0.0 and high - low < 0.1 * low):
            break
        step -= slope / curvature if curvature > 0.0 else 0.0
        # from above, Newton's method is slow along an exponential: bisect
        if step <= low or step >= high or (slope > 0.0 and high - step < 0.3 * (high - low)):
            step = 0.5 * (low + high)
    return low


@njit(cache=True)
def _write_prices(load, capacity, sharpness, length):  # type: ignore[no-untyped-def]
    """Write the length of arcs, their price over capacity with a small uniform share; return the top.

    The top is the largest utilization.
    """
    arcs = len(load)
    top = 0.0
    for e in range(arcs):
        top = max(top, load[e] / capacity[e])
    total = 0.0
    for e in range(arcs):
        length[e] = math.exp(sharpness * (load[e] / capacity[e] - top))
        total += length[e]
    for e in range(arcs):
        length[e] = (length[e] / total + UNIFORM_PRICE_SHARE / arcs) / capacity[e]
    return top
