"""Rounds over the roots that even out the load: a good start for column generation, within seconds.

The largest utilization is softened to (1/k) log sum_e exp(k load_e / capacity_e). Root after root is
given the shortest tree under the prices that this has as derivative, and moves traffic to it as far
as that pays: an exact line search, which prices that lag a whole round behind would not allow.

source  Radzik, "Fast deterministic approximation for the multicommodity flow problem" (1997), for
        going round the commodities one by one
"""

from __future__ import annotations

import numba
import numpy as np
from numpy.typing import NDArray

from planner_models.traffic.trees import Floats, Graph, Ints, settle


def sweep(
    graph: Graph,
    capacity: Floats,
    roots: NDArray[np.int64],
    amount: Floats,
    *,
    sharpness: float,
    mix: Floats,
    load: Floats,
) -> tuple[Ints, Floats]:
    """One round over the roots; `mix` and `load` are changed in place.

    roots, amount  (R,), (R, N) what each node sends to them
    sharpness      k of the soft maximum, per unit of utilization
    mix, load      (R, A) what each root's traffic puts on each arc, and (A,) their sum

    returns  (R, N) the tree tried for each root; (R,) the share of its traffic that moved to it
    """
    parent = np.empty((len(roots), graph.nodes), dtype=np.int32)
    share = np.zeros(len(roots))
    _sweep(
        graph.first,
        graph.entering,
        graph.tail,
        graph.head,
        capacity,
        roots.astype(np.int32),
        amount,
        sharpness,
        mix,
        load,
        parent,
        share,
    )
    return parent, share


def prices(load: Floats, capacity: Floats, sharpness: float) -> Floats:
    """(A,) derivative of the soft maximum by each arc's utilization; they add up to 1."""
    used = load / capacity
    price: Floats = np.exp(sharpness * (used - used.max()))
    price /= price.sum()
    return price


FLOOR = 1e-3  # of all prices, spread evenly: keeps trees short where nothing is loaded


@numba.njit(cache=True)
def _sweep(  # type: ignore[no-untyped-def]  # noqa: C901 - one compiled loop
    first, entering, tail, head, capacity, roots, amount, sharpness, mix, load, parent, share
):
    nodes, arcs = len(first) - 1, len(tail)
    distance, carried = np.empty(nodes), np.empty(nodes)
    order, heap, place = np.empty(nodes, np.int32), np.empty(nodes, np.int32), np.empty(nodes, np.int32)
    length, change = np.empty(arcs), np.empty(arcs)
    moving = np.empty(arcs, np.int32)
    for r in range(len(roots)):
        top = 0.0
        for e in range(arcs):
            top = max(top, load[e] / capacity[e])
        total = 0.0
        for e in range(arcs):
            length[e] = np.exp(sharpness * (load[e] / capacity[e] - top))
            total += length[e]
        for e in range(arcs):
            length[e] = (length[e] / total + FLOOR / arcs) / capacity[e]
        reached = settle(first, entering, tail, length, roots[r], distance, parent[r], order, heap, place)
        for e in range(arcs):
            change[e] = -mix[r, e]
        carried[:] = amount[r]
        for i in range(reached - 1, 0, -1):
            arc = parent[r, order[i]]
            change[arc] += carried[order[i]]
            carried[head[arc]] += carried[order[i]]
        # only arcs that change matter for how far to go
        count, gain, most = 0, 0.0, 1.0
        for e in range(arcs):
            if change[e] != 0.0:
                moving[count] = e
                count += 1
                gain += length[e] * change[e]
                if change[e] > 0.0:  # far above the top it cannot pay
                    most = min(most, ((top + 2.0 / sharpness) * capacity[e] - load[e]) / change[e])
        if gain >= 0.0 or most <= 0.0:
            continue
        step = _line_search(length, change, capacity, moving[:count], sharpness, most)
        share[r] = step
        for j in range(count):
            e = moving[j]
            mix[r, e] = max(mix[r, e] + step * change[e], 0.0)
            load[e] += step * change[e]


@numba.njit(cache=True)
def _line_search(length, change, capacity, moving, sharpness, most):  # type: ignore[no-untyped-def]
    """How far to go, at most `most`: where the slope turns positive, from below."""
    low, high, step = 0.0, most, most
    for _ in range(14):
        slope, bend = 0.0, 0.0
        for j in range(len(moving)):
            e = moving[j]
            one = length[e] * np.exp(min(sharpness * step * change[e] / capacity[e], 300.0)) * change[e]
            slope += one
            bend += sharpness * one * change[e] / capacity[e]
        if slope > 0.0:
            high = step
        else:
            low = step
        if low == most or (low > 0.0 and high - low < 0.1 * low):
            break
        step -= slope / bend if bend > 0.0 else 0.0
        # from above Newton creeps along the exponential
        if step <= low or step >= high or (slope > 0.0 and high - step < 0.3 * (high - low)):
            step = 0.5 * (low + high)
    return low
