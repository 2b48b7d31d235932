"""The broker's problem with divisible clients: min-cost flow, and the price of each cluster's room."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from planner.errors import SolverFailure

ARCS_AT_FIRST: Final = 16  # cheapest clusters of each group; more are added where prices ask for it
COST_STEPS: Final = 2**34  # costs are rounded to so many steps for the flow; bounds are not
MOST_UNITS: Final = 2**48  # traffic is counted in units, so many at most
SAME: Final = 1e-9  # relative; reduced costs that differ by less are the same


@dataclass(frozen=True, kw_only=True, eq=False)
class Transport:
    """Groups of clients, each to be spread over clusters with room.

    cost    (G, C) of a client in a cluster; inf where it is not on offer
    weight  (G,) Mbit/s of a client
    count   (G,) clients
    room    (C,) Mbit/s
    """

    cost: NDArray[np.float64]
    weight: NDArray[np.float64]
    count: NDArray[np.int64]
    room: NDArray[np.float64]

    def bound(self, price: NDArray[np.float64]) -> float:
        """No assignment costs less than this, whatever the prices (C,) of room, all 0 or more.

        Lagrangian dual: clients go where cost and price are least, and room is paid for.
        """
        paying = np.flatnonzero(price)
        least = self.cost.min(axis=1)
        if len(paying):
            free = price == 0
            least = self.cost[:, free].min(axis=1, initial=np.inf)
            for cluster in paying:
                np.minimum(least, self.cost[:, cluster] + price[cluster] * self.weight, out=least)
        return float(least @ self.count) - float(price @ self.room)


@dataclass(frozen=True, kw_only=True, eq=False)
class Relaxed:
    """The best spread of divisible clients.

    sent     (G, C) sparse, clients, fractional
    price    (C,) what one more Mbit/s of room is worth
    bound    no assignment costs less
    blocked  groups and clusters that prove that there is too little room; None where there is enough
    """

    sent: sp.csr_array | None
    price: NDArray[np.float64]
    bound: float | None
    blocked: tuple[NDArray[np.int64], NDArray[np.int64]] | None = None


def relax(problem: Transport) -> Relaxed:
    """Min-cost flow over the arcs that matter, found by pricing out all others.

    source  transportation problem; OR-Tools' cost-scaling push-relabel
    """
    groups, clusters = problem.cost.shape
    offered = np.isfinite(problem.cost)
    choice = problem.cost.argmin(axis=1) if clusters else np.zeros(groups, dtype=np.int64)
    load = np.bincount(choice, weights=problem.weight * problem.count, minlength=clusters)
    if offered.any(axis=1).all() and (load <= problem.room).all():  # everyone gets the cheapest
        sent = sp.csr_array(
            (problem.count.astype(float), (np.arange(groups), choice)), shape=problem.cost.shape
        )
        price = np.zeros(clusters)
        return Relaxed(sent=sent, price=price, bound=problem.bound(price))
    active = _cheapest(problem, offered, ARCS_AT_FIRST)
    network = _Network(problem)
    while True:
        sent, full = network.solve(active)
        if sent is None:
            if (active == offered).all():
                return Relaxed(
                    sent=None, price=np.zeros(clusters), bound=None, blocked=network.blocked(offered)
                )
            active |= _cheapest(problem, offered, 4 * int(active.sum(axis=1).max()))
            continue
        price = _prices(problem, sent, full)
        # what the flow pays by these prices, against all arcs
        least = np.where(active, problem.cost, np.inf)
        least += price * problem.weight[:, None]
        paid = least.min(axis=1)
        better = (
            ~active & offered & (problem.cost + price * problem.weight[:, None] < paid[:, None] * (1 - SAME))
        )
        if not better.any():
            return Relaxed(sent=sent, price=price, bound=problem.bound(price))
        active |= better


def _cheapest(problem: Transport, offered: NDArray[np.bool_], arcs: int) -> NDArray[np.bool_]:
    """(G, C) the `arcs` cheapest clusters on offer to each group."""
    if arcs >= problem.cost.shape[1]:
        return offered.copy()
    nearest = np.argpartition(problem.cost, arcs - 1, axis=1)[:, :arcs]
    active = np.zeros_like(offered)
    np.put_along_axis(active, nearest, True, axis=1)
    return active & offered


class _Network:
    """The flow network in whole units of traffic."""

    def __init__(self, problem: Transport) -> None:
        self.problem = problem
        total = float(problem.weight @ problem.count)
        grain = grain_mbps(problem.weight)
        per_mbps = 1 / grain if grain else min(1e6, MOST_UNITS / max(total, 1e-9))
        self.unit = np.maximum(np.rint(problem.weight * per_mbps), 1).astype(np.int64)
        self.supply = self.unit * problem.count
        room = np.minimum(np.floor(problem.room * per_mbps + 1e-6), 2.0 * self.supply.sum() + 1)
        self.room = room.astype(np.int64)

    def solve(self, active: NDArray[np.bool_]) -> tuple[sp.csr_array | None, NDArray[np.bool_]]:
        """Clients sent (G, C), and which clusters are full; None where they do not all find room."""
        from ortools.graph.python import min_cost_flow  # only where it is wanted

        problem = self.problem
        groups, clusters = problem.cost.shape
        group, cluster = np.nonzero(active)
        per_unit = problem.cost[group, cluster] / self.unit[group]
        low = per_unit.min(initial=0.0)
        step = max(float(per_unit.max(initial=0.0)) - low, 1e-300) / COST_STEPS
        cost = np.rint((per_unit - low) / step).astype(np.int64)
        sink = groups + clusters
        solver = min_cost_flow.SimpleMinCostFlow()
        solver.add_arcs_with_capacity_and_unit_cost(group, groups + cluster, self.supply[group], cost)
        to_sink = solver.add_arcs_with_capacity_and_unit_cost(
            groups + np.arange(clusters),
            np.full(clusters, sink),
            self.room,
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
        full = solver.flows(to_sink) >= self.room
        some = flow > 0
        sent = sp.csr_array(
            (flow[some] / self.unit[group[some]], (group[some], cluster[some])), shape=problem.cost.shape
        )
        return sent, full

    def blocked(self, offered: NDArray[np.bool_]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Groups that want more than all the clusters on offer to any of them have: a minimum cut."""
        from ortools.graph.python import max_flow

        groups, clusters = offered.shape
        group, cluster = np.nonzero(offered)
        source, sink = groups + clusters, groups + clusters + 1
        solver = max_flow.SimpleMaxFlow()
        solver.add_arcs_with_capacity(np.full(groups, source), np.arange(groups), self.supply)
        solver.add_arcs_with_capacity(group, groups + cluster, self.supply[group])
        solver.add_arcs_with_capacity(groups + np.arange(clusters), np.full(clusters, sink), self.room)
        if solver.solve(source, sink) != solver.OPTIMAL:
            raise SolverFailure("max-flow failed")
        side = np.array(solver.get_source_side_min_cut(), dtype=np.int64)
        return side[side < groups], side[(side >= groups) & (side < source)] - groups


def _prices(problem: Transport, sent: sp.csr_array, full: NDArray[np.bool_]) -> NDArray[np.float64]:
    """(C,) the least prices of room under which nobody would rather be elsewhere.

    Where a client of g is in a, it must not gain by b: price_b >= price_a + (cost_ga - cost_gb) / weight_g.
    Least prices are what one more Mbit/s saves; they are the longest paths from the clusters with room left.
    """
    price = np.zeros(problem.cost.shape[1])
    tight = np.flatnonzero(full)
    if not len(tight):
        return price
    flow = sent.tocoo()
    group, at = flow.row, flow.col
    gain = (problem.cost[group, at][:, None] - problem.cost[np.ix_(group, tight)]) / problem.weight[group][
        :, None
    ]
    order = np.argsort(at, kind="stable")
    first = np.flatnonzero(np.r_[True, np.diff(at[order]) != 0])
    most = np.maximum.reduceat(gain[order], first, axis=0)  # by cluster that has clients
    owner = at[order][first]
    inside = full[owner]
    least = np.maximum(most[~inside].max(axis=0, initial=0.0), 0.0)
    place = np.searchsorted(tight, owner[inside])
    between = most[inside]
    for _ in range(len(tight)):
        raised = np.maximum(least, (least[place][:, None] + between).max(axis=0, initial=0.0))
        if (raised <= least + 1e-12 * np.maximum(least, 1e-12)).all():
            break
        least = raised
    price[tight] = least
    return price


def grain_mbps(weight: NDArray[np.float64]) -> float | None:
    """The largest unit that all weights are multiples of, in whole kbit/s; None without one."""
    kbps = weight * 1000
    if not len(kbps) or (np.abs(kbps - np.rint(kbps)) > 1e-6).any():
        return None
    return float(np.gcd.reduce(np.rint(kbps).astype(np.int64))) / 1000


def usable(room: NDArray[np.float64], weight: NDArray[np.float64]) -> NDArray[np.float64]:
    """(C,) room that whole clients can fill: in the grain of their bitrates, where they have one."""
    grain = grain_mbps(weight)
    return room if not grain else np.floor(room / grain * (1 + 1e-9) + 1e-9) * grain
