"""Aggregation: solve the relaxation for classes of groups, and refine the classes that it divides.

Groups of one place differ by bitrate alone. Where cost counts by the bit, they cost the same by Mbit/s, and
the classes by place give the optimum. Else a class is divided by the clusters that are cheapest for its
groups at the dual prices, and by bitrate where its traffic goes to several clusters, until the dual prices
prove the cost. The number of classes grows with places and clusters, not
with bitrates.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

import numpy as np
import scipy.sparse as sp

from planner.arrays import Bools, Floats, Ints
from planner.search.deadline import NEVER, Deadline
from planner.search.tolerances import INTERIOR_POINT
from planner_models.brokering.plan.transportation import (
    Relaxation,
    TransportationProblem,
    common_unit_mbps,
)

ENOUGH_GAP: Final = INTERIOR_POINT  # relative distance of cost and bound at which classes are not refined
PARTS: Final = 8  # that a class is divided into
MAX_ROUNDS: Final = 6  # of refinement
MIN_UNIT_MBPS: Final = 1e-6  # of traffic
MAX_UNITS: Final = 2**48  # of all traffic


def solve_by_classes(
    problem: TransportationProblem,
    solve: Callable[[TransportationProblem, Bools | None], Relaxation],
    deadline: Deadline = NEVER,
) -> Relaxation:
    """Solve the relaxation for classes of groups, and return clients of each group and the best bound.

    solve     solves a transportation problem, from these arcs (G, C) on; None: from any
    deadline  when to stop refining; the first classes are always solved

    raises  ValueError where the problem does not say which groups are similar
    """
    if problem.similar is None:
        raise ValueError("the problem does not say which groups are similar")
    order = np.lexsort((-problem.bitrate_mbps, problem.similar))  # of each class, the largest bitrate first
    classes = np.unique(problem.similar, return_inverse=True)[1].ravel()
    best: Relaxation | None = None
    lowest, highest = np.inf, -np.inf
    for _ in range(MAX_ROUNDS):
        aggregated = _aggregate(problem, classes)
        relaxation = solve(aggregated, None if best is None else aggregated.cheapest_arcs(best.dual_price))
        if relaxation.assigned is None or relaxation.bound is None:
            return _disaggregate_shortage(relaxation, classes)
        bound = problem.lagrangian_bound(relaxation.dual_price)
        assigned = _disaggregate(problem, relaxation.assigned, classes, order)
        arcs = assigned.tocoo()
        cost = float(problem.cost[arcs.row, arcs.col] @ arcs.data)
        if best is None:
            best, lowest, highest = replace(relaxation, assigned=assigned, bound=bound), cost, bound
        if cost < lowest:
            best, lowest = replace(best, assigned=assigned), cost
        if bound > highest:
            best, highest = replace(best, dual_price=relaxation.dual_price, bound=bound), bound
        if lowest - highest <= ENOUGH_GAP * abs(lowest) or deadline.is_over:
            break
        divided = np.flatnonzero(np.diff(relaxation.assigned.indptr) > 1)
        cheapest = problem.cheapest_cluster(relaxation.dual_price)
        finer = _divide(problem, classes, divided, cheapest, order)
        if finer.max() == classes.max():
            break
        classes = finer
    assert best is not None
    return best


def _aggregate(problem: TransportationProblem, classes: Ints) -> TransportationProblem:
    """Return the problem of classes (G,), each of whole units of traffic at its mean cost by Mbit/s."""
    groups, count = np.arange(len(classes)), int(classes.max(initial=-1)) + 1
    traffic = problem.bitrate_mbps * problem.count
    mbps = np.bincount(classes, weights=traffic, minlength=count)
    clients = sp.csr_array((problem.count.astype(float), (classes, groups)), shape=(count, len(classes)))
    unit_mbps = common_unit_mbps(problem.bitrate_mbps) or max(MIN_UNIT_MBPS, float(traffic.sum()) / MAX_UNITS)
    return TransportationProblem(
        cost=np.asarray(clients @ problem.cost) / mbps[:, None] * unit_mbps,
        bitrate_mbps=np.full(count, unit_mbps),
        count=np.maximum(np.rint(mbps / unit_mbps), 1).astype(np.int64),
        capacity_mbps=problem.capacity_mbps,
        sheds=problem.sheds,
    )


def _disaggregate(
    problem: TransportationProblem, units: sp.csr_array, classes: Ints, order: Ints
) -> sp.csr_array:
    """Return the clients of each group in each cluster, (G, C), for the traffic of classes (A, C), in units.

    The largest bitrates of a class go where most of its traffic goes.
    """
    order = order[np.argsort(classes[order], kind="stable")]
    flows = units.tocoo()
    arcs = np.lexsort((-flows.data, flows.row))
    of_class, cluster, amount = flows.row[arcs], flows.col[arcs], flows.data[arcs]
    traffic = (problem.bitrate_mbps * problem.count)[order]
    in_class = classes[order]
    count = units.shape[0]
    mbps = np.bincount(in_class, weights=traffic, minlength=count)
    share = amount / np.bincount(of_class, weights=amount, minlength=count)[of_class]
    # class a lies between a and a + 1: groups and clusters divide that interval by their traffic
    group_end = _ends(traffic / mbps[in_class], in_class)
    arc_end = _ends(share, of_class)
    cuts = np.union1d(group_end, arc_end)
    middle = (np.append(0.0, cuts[:-1]) + cuts) / 2
    group = order[np.minimum(np.searchsorted(group_end, middle), len(order) - 1)]
    target = cluster[np.minimum(np.searchsorted(arc_end, middle), len(cluster) - 1)]
    length = np.diff(cuts, prepend=0.0)
    clients = length * mbps[classes[group]] / problem.bitrate_mbps[group]
    assigned = sp.csr_array((clients, (group, target)), shape=problem.cost.shape)
    total = np.asarray(assigned.sum(axis=1)).ravel()
    scale = np.divide(problem.count, total, out=np.zeros(len(total)), where=total > 0)
    return sp.csr_array(sp.diags_array(scale) @ assigned)


def _ends(share: Floats, in_class: Ints) -> Floats:
    """Return the end of each part, (rows,), rows sorted by class; the parts of class a fill [a, a + 1]."""
    total = np.cumsum(share)
    last = np.flatnonzero(np.append(np.diff(in_class) != 0, True))
    before = np.append(0.0, total[last[:-1]])
    rows = np.diff(last, prepend=-1)
    ends: Floats = np.minimum(total - np.repeat(before, rows), 1.0) + in_class
    ends[last] = in_class[last] + 1.0
    return ends


def _divide(
    problem: TransportationProblem, classes: Ints, divided: Ints, cheapest: Ints, order: Ints
) -> Ints:
    """Return finer classes (G,): by the cheapest cluster of each group, and those in `divided` by bitrate.

    cheapest  (G,) cluster of least cost plus dual price
    """
    sizes = np.bincount(classes)
    order = order[np.argsort(classes[order], kind="stable")]
    in_class = classes[order]
    traffic = (problem.bitrate_mbps * problem.count)[order]
    mbps = np.bincount(in_class, weights=traffic)
    start = _ends(traffic / mbps[in_class], in_class) - traffic / mbps[in_class] - in_class
    chunk = np.minimum((np.clip(start, 0.0, 1.0) * PARTS).astype(np.int64), PARTS - 1)
    rank = np.arange(len(order)) - np.searchsorted(in_class, in_class)
    chunk = np.where(sizes[in_class] <= PARTS, rank, chunk)
    chunk = np.where(np.isin(in_class, divided), chunk, 0)
    finer = np.empty(len(classes), dtype=np.int64)
    clusters = problem.cost.shape[1]
    key = (in_class * np.int64(PARTS) + chunk) * clusters + cheapest[order]
    finer[order] = np.unique(key, return_inverse=True)[1].ravel()
    return finer


def _disaggregate_shortage(relaxation: Relaxation, classes: Ints) -> Relaxation:
    """Return the relaxation with the groups of the classes with more traffic than the clusters."""
    if relaxation.shortage is None:
        return relaxation
    short, clusters = relaxation.shortage
    return replace(relaxation, shortage=(np.flatnonzero(np.isin(classes, short)), clusters))
