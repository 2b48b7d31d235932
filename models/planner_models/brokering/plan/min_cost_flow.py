"""Relaxation to divisible clients: min-cost flow, by classes of groups, and the price of clusters' capacity.

Groups of one place differ by bitrate alone. Where cost counts by the bit, they cost the same by Mbit/s, and
the classes by place give the optimum. Else a class is divided by the clusters that are cheapest for its
groups at the dual prices, and by bitrate where its traffic goes to several clusters, until the dual prices
prove the cost. The number of classes grows with places and clusters, not
with bitrates.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from typing import Final

import numpy as np
import scipy.sparse as sp

from planner import backends
from planner.arrays import Bools, Floats, Ints
from planner.backends.program_builder import ProgramBuilder
from planner.errors import SolverFailure
from planner.options import Options
from planner.search.deadline import NEVER, Deadline
from planner.search.tolerances import FEASIBILITY, INTERIOR_POINT
from planner_models.brokering.plan.transportation import (
    REDUCED_COST_TOLERANCE,
    Relaxation,
    TransportationProblem,
    cheapest_arcs,
    common_unit_mbps,
)

SHED_COST: Final = 20.0  # over the largest cost of a client
WHOLE_TOLERANCE: Final = FEASIBILITY  # of a bound on a number of clients, before it is rounded up
COST_LEVELS: Final = 2**34  # costs are rounded to so many levels for the flow; bounds are not
MAX_TRAFFIC_UNITS: Final = 2**48  # limit on all traffic in integer units
PRICE_TOLERANCE: Final = FEASIBILITY  # relative distance of a relaxation's cost and the bound of its prices
SIMILAR_RATIO: Final = 1.1  # of bitrates that are either served or shed
MAX_GROUPS: Final = 20_000  # of a flow; more are solved by classes
MAX_PROGRAM_ARCS: Final = 500_000  # of a linear program that is solved where prices are not right
log = logging.getLogger(__name__)
ENOUGH_GAP: Final = INTERIOR_POINT  # relative distance of cost and bound at which classes are not refined
PARTS: Final = 8  # that a class is divided into
MAX_ROUNDS: Final = 6  # of refinement
MIN_UNIT_MBPS: Final = 1e-6  # of traffic
MAX_UNITS: Final = 2**48  # of all traffic


def solve_relaxation(
    problem: TransportationProblem, active: Bools | None = None, *, deadline: Deadline = NEVER
) -> Relaxation:
    """Solve min-cost flow over the cheapest arcs, and add arcs of negative reduced cost until there are none.

    active  (G, C) arcs to begin with in place of the cheapest
    deadline  when to stop refining; the bound holds whenever it stops
    source  transportation problem; OR-Tools' cost-scaling push-relabel
    """
    groups, clusters = problem.cost.shape
    offered = np.isfinite(problem.cost)
    cheapest = problem.cost.argmin(axis=1) if clusters else np.zeros(groups, dtype=np.int64)
    load = np.bincount(cheapest, weights=problem.bitrate_mbps * problem.count, minlength=clusters)
    if offered.any(axis=1).all() and (load <= problem.capacity_mbps).all():
        assigned = sp.csr_array(
            (problem.count.astype(float), (np.arange(groups), cheapest)), shape=problem.cost.shape
        )
        no_price = np.zeros(clusters)
        return Relaxation(assigned=assigned, dual_price=no_price, bound=problem.lagrangian_bound(no_price))
    if groups > MAX_GROUPS and problem.similar is not None:
        return solve_by_classes(problem, solve_relaxation, deadline)
    active = cheapest_arcs(problem.cost, offered) if active is None else active & offered
    if problem.sheds:
        active[:, -1] = True  # then there is always a flow
    network = _Network(problem)
    while True:
        assigned, full = network.solve(active)
        if assigned is None:
            if (active == offered).all():
                return Relaxation(
                    assigned=None,
                    dual_price=np.zeros(clusters),
                    bound=None,
                    shortage=network.find_shortage(offered),
                )
            active |= cheapest_arcs(problem.cost, offered, 4 * int(active.sum(axis=1).max()))
            continue
        dual_price = _dual_prices(problem, assigned, full, active)
        improving = _improving_arcs(problem, dual_price, active, offered)
        if not improving.any() or deadline.is_over:
            return _with_best_prices(problem, assigned, dual_price, active, deadline)
        active |= improving


def _with_best_prices(
    problem: TransportationProblem,
    assigned: sp.csr_array,
    dual_price: Floats,
    active: Bools,
    deadline: Deadline,
) -> Relaxation:
    """Return the relaxation with the best bound of the flow's prices, no prices, and the linear program's.

    At the right prices, the bound is the cost of the flow. Rounding to integer units may spoil them: then
    the linear program with the bitrates as they are gives prices and clients.
    """
    arcs = assigned.tocoo()
    cost = float(problem.cost[arcs.row, arcs.col] @ arcs.data)
    best = Relaxation(assigned=assigned, dual_price=dual_price, bound=problem.lagrangian_bound(dual_price))
    if _proves(best, cost):
        return best
    log.info(
        "the dual prices of the flow prove %s of its cost %s; solving the linear program", best.bound, cost
    )
    no_price = np.zeros_like(dual_price)
    others = [replace(best, dual_price=no_price, bound=problem.lagrangian_bound(no_price))]
    if int(active.sum()) <= MAX_PROGRAM_ARCS and not deadline.is_over:
        others += filter(None, [solve_linear_program(problem, active, deadline)])
    return max([best, *others], key=_bound_of)


def _bound_of(relaxation: Relaxation) -> float:
    return -np.inf if relaxation.bound is None else relaxation.bound


def _proves(relaxation: Relaxation, cost: float) -> bool:
    """Return whether the bound of a relaxation is its cost, as it is at an optimum."""
    return bool(cost - _bound_of(relaxation) <= PRICE_TOLERANCE * abs(cost))


def solve_linear_program(
    problem: TransportationProblem, active: Bools, deadline: Deadline = NEVER
) -> Relaxation | None:
    """Solve the relaxation as a linear program, and add arcs of negative reduced cost until there are none.

    active  (G, C) arcs to begin with
    deadline  when to stop

    returns  Relaxation, or None where the solver has no optimum
    """
    offered, active = np.isfinite(problem.cost), active.copy()
    groups, clusters = problem.cost.shape
    while True:
        group, cluster = np.nonzero(active)
        demand = problem.bitrate_mbps * problem.count
        m = ProgramBuilder(name="brokering, divisible clients")
        mbps = m.variables(
            "mbps", len(group), cost=problem.cost[group, cluster] / problem.bitrate_mbps[group]
        )
        m.constrain("served", mbps.sum_by(group, groups), equal=demand)
        m.constrain("capacity", mbps.sum_by(cluster, clusters), upper=problem.capacity_mbps)
        solution = backends.solve(m.build(), deadline.options(Options(), minimum_s=0.1))
        if solution.x is None or solution.row_duals is None:
            return None
        dual_price = np.maximum(-solution.row_duals[groups:], 0.0)
        improving = _improving_arcs(problem, dual_price, active, offered)
        if not improving.any():
            clients = np.maximum(solution.x, 0.0) / problem.bitrate_mbps[group]
            used = clients > 0
            assigned = sp.csr_array((clients[used], (group[used], cluster[used])), shape=problem.cost.shape)
            bound = problem.lagrangian_bound(dual_price)
            return Relaxation(assigned=assigned, dual_price=dual_price, bound=bound)
        active |= improving


def _improving_arcs(
    problem: TransportationProblem, dual_price: Floats, active: Bools, offered: Bools
) -> Bools:
    """Return the arcs of negative reduced cost that are not active yet, (G, C)."""
    surcharge = dual_price * problem.bitrate_mbps[:, None]
    lowest = (np.where(active, problem.cost, np.inf) + surcharge).min(axis=1)
    improving = ~active & offered
    improving &= problem.cost + surcharge < (lowest - REDUCED_COST_TOLERANCE * np.abs(lowest))[:, None]
    return improving


def solve_with_shedding(problem: TransportationProblem, deadline: Deadline = NEVER) -> Relaxation:
    """Solve the relaxation where clients may be shed; its bound is on the cost of the others.

    One flow finds the least number of clients that any plan sheds. In another, a client that is shed costs
    `SHED_COST` times the most that a client costs.

    returns  Relaxation with one more cluster, the last, for clients that are shed
    """
    offered = np.isfinite(problem.cost)
    pooled_shed, limit_mbps = _pool_capacity(problem)
    if problem.similar is not None:  # clients of small bitrates are served, of large ones are shed
        rate_class = np.searchsorted(
            [limit_mbps / SIMILAR_RATIO, limit_mbps * SIMILAR_RATIO], problem.bitrate_mbps
        )
        problem = replace(problem, similar=problem.similar * 3 + rate_class)
    lowest: float | None = pooled_shed
    if not offered.all():
        unit = replace(problem, cost=np.where(offered, 0.0, np.inf)).with_shedding(1.0)
        lowest = solve_relaxation(unit, deadline=deadline).bound
    assert lowest is not None
    shed = max(int(np.ceil(lowest - WHOLE_TOLERANCE * max(lowest, 1.0))), 0)
    price = SHED_COST * max(float(np.max(problem.cost, initial=0.0, where=offered)), 1.0)
    priced = solve_relaxation(problem.with_shedding(price), deadline=deadline)
    assert priced.bound is not None
    return replace(priced, bound=max(priced.bound - price * shed, 0.0), shed_price=price, shed=shed)


def _pool_capacity(problem: TransportationProblem) -> tuple[float, float]:
    """Return the least clients that are shed where all clusters serve all groups, and the bitrate from which.

    The clients of the smallest bitrates are served; they may be divisible.
    """
    order = np.argsort(problem.bitrate_mbps, kind="stable")
    traffic = np.cumsum((problem.bitrate_mbps * problem.count)[order])
    clients = np.cumsum(problem.count[order].astype(float))
    capacity = float(problem.capacity_mbps.sum())
    served = float(np.interp(capacity, np.append(0.0, traffic), np.append(0.0, clients)))
    last = order[min(int(np.searchsorted(traffic, capacity)), len(order) - 1)]
    return float(clients[-1]) - served, float(problem.bitrate_mbps[last])


class _Network:
    """The flow network in integer units of traffic."""

    def __init__(self, problem: TransportationProblem) -> None:
        self.problem = problem
        total = float(problem.bitrate_mbps @ problem.count)
        unit_mbps = common_unit_mbps(problem.bitrate_mbps)
        per_mbps = 1 / unit_mbps if unit_mbps else min(1e6, MAX_TRAFFIC_UNITS / max(total, 1e-9))
        self.units = np.maximum(np.rint(problem.bitrate_mbps * per_mbps), 1).astype(np.int64)
        self.supply = self.units * problem.count
        capacity = np.floor(problem.capacity_mbps * per_mbps + 1e-6)
        self.capacity = np.minimum(capacity, 2.0 * self.supply.sum() + 1).astype(np.int64)

    def solve(self, active: Bools) -> tuple[sp.csr_array | None, Bools]:
        """Return the clients of each group in each cluster, (G, C), and which clusters are full, (C,).

        None in place of clients where the active arcs have too little capacity.
        """
        from ortools.graph.python import min_cost_flow  # imported late: slow to load

        problem = self.problem
        groups, clusters = problem.cost.shape
        group, cluster = np.nonzero(active)
        unit_cost = problem.cost[group, cluster] / self.units[group]
        low = unit_cost.min(initial=0.0)
        step = max(float(unit_cost.max(initial=0.0)) - low, 1e-300) / COST_LEVELS
        cost = np.rint((unit_cost - low) / step).astype(np.int64)
        sink = groups + clusters
        solver = min_cost_flow.SimpleMinCostFlow()
        solver.add_arcs_with_capacity_and_unit_cost(group, groups + cluster, self.supply[group], cost)
        to_sink = solver.add_arcs_with_capacity_and_unit_cost(
            groups + np.arange(clusters),
            np.full(clusters, sink),
            self.capacity,
            np.zeros(clusters, dtype=np.int64),
        )
        solver.set_nodes_supplies(
            np.append(np.arange(groups), sink), np.append(self.supply, -self.supply.sum())
        )
        status = solver.solve()
        if status == solver.INFEASIBLE:
            return None, np.zeros(clusters, dtype=bool)
        if status != solver.OPTIMAL:
            raise SolverFailure(f"min-cost flow ended with {status}")
        flow = solver.flows(np.arange(len(group)))
        full = solver.flows(to_sink) >= self.capacity
        used = flow > 0
        assigned = sp.csr_array(
            (flow[used] / self.units[group[used]], (group[used], cluster[used])), shape=problem.cost.shape
        )
        return assigned, full

    def find_shortage(self, offered: Bools) -> tuple[Ints, Ints]:
        """Return groups with more traffic than the clusters on offer to them, and these: a minimum cut."""
        from ortools.graph.python import max_flow

        groups, clusters = offered.shape
        group, cluster = np.nonzero(offered)
        source, sink = groups + clusters, groups + clusters + 1
        solver = max_flow.SimpleMaxFlow()
        solver.add_arcs_with_capacity(np.full(groups, source), np.arange(groups), self.supply)
        solver.add_arcs_with_capacity(group, groups + cluster, self.supply[group])
        solver.add_arcs_with_capacity(groups + np.arange(clusters), np.full(clusters, sink), self.capacity)
        if solver.solve(source, sink) != solver.OPTIMAL:
            raise SolverFailure("max-flow failed")
        side = np.array(solver.get_source_side_min_cut(), dtype=np.int64)
        return side[side < groups], side[(side >= groups) & (side < source)] - groups


def _dual_prices(
    problem: TransportationProblem, assigned: sp.csr_array, full: Bools, active: Bools
) -> Floats:
    """Return the least dual prices of capacity, (C,), at which no client gains by another cluster.

    Where a client of g is in a, price_b >= price_a + (cost_ga - cost_gb) / bitrate_g for each b. The least
    prices are what one more Mbit/s saves; they are the longest paths from clusters that are not full.
    """
    price = np.zeros(problem.cost.shape[1])
    tight = np.flatnonzero(full)
    if not len(tight):
        return price
    arcs = assigned.tocoo()
    group, cluster = arcs.row, arcs.col
    bitrate = problem.bitrate_mbps[group]
    pairs = np.ix_(group, tight)
    gain = (problem.cost[group, cluster][:, None] - problem.cost[pairs]) / bitrate[:, None]
    gain[~active[pairs]] = -np.inf  # the flow need not be optimal over other arcs
    order = np.argsort(cluster, kind="stable")
    first = np.flatnonzero(np.r_[True, np.diff(cluster[order]) != 0])
    largest = np.maximum.reduceat(gain[order], first, axis=0)  # by cluster that has clients
    origin = cluster[order][first]
    from_full = full[origin]
    prices = np.maximum(largest[~from_full].max(axis=0, initial=0.0), 0.0)
    origin_index = np.searchsorted(tight, origin[from_full])
    between = largest[from_full]
    for _ in range(len(tight)):
        raised = np.maximum(prices, (prices[origin_index][:, None] + between).max(axis=0, initial=0.0))
        if (raised <= prices + 1e-12 * np.maximum(prices, 1e-12)).all():
            break
        prices = raised
    price[tight] = prices
    return price


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
