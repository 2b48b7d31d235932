"""The broker's problem as a transportation problem: client groups, clusters, costs and capacities."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

import numpy as np
import scipy.sparse as sp

from planner.arrays import Bools, Floats, Ints
from planner_models.brokering.problem.problem import Brokering

INITIAL_ARCS: Final = 16  # cheapest clusters of each group; reduced costs say which arcs are added
REDUCED_COST_TOLERANCE: Final = 1e-9  # relative
CAPACITY_TOLERANCE: Final = 1e-9  # relative; what rounding in sums of loads may come to


@dataclass(frozen=True, kw_only=True, eq=False)
class TransportationProblem:
    """Client groups that are distributed over clusters of limited capacity.

    cost           (G, C) of a client in a cluster; inf where the cluster is not on offer
    bitrate_mbps   (G,) of a client
    count          (G,) clients
    capacity_mbps  (C,) that clients of these bitrates can use
    sheds          whether the last cluster stands for shedding clients
    """

    cost: Floats
    bitrate_mbps: Floats
    count: Ints
    capacity_mbps: Floats
    sheds: bool = False

    @cached_property
    def unserved_cost(self) -> float:
        """Cost of a client without a cluster: more than all clients cost in their most expensive clusters.

        So a plan that serves more clients costs less than any plan that serves fewer.
        """
        largest = np.max(self.cost, axis=1, initial=0.0, where=np.isfinite(self.cost))
        return float(largest @ self.count) + 1.0

    def with_shedding(self, cost: float) -> TransportationProblem:
        """Return the problem with one more cluster, the last, which stands for shedding clients.

        cost  of a client that is shed
        """
        demand_mbps = float(self.bitrate_mbps @ self.count)
        return TransportationProblem(
            cost=np.column_stack([self.cost, np.full(len(self.count), cost)]),
            bitrate_mbps=self.bitrate_mbps,
            count=self.count,
            capacity_mbps=np.append(self.capacity_mbps, 2 * demand_mbps + 1),
            sheds=True,
        )

    def lagrangian_bound(self, dual_price: Floats) -> float:
        """Return a lower bound on the cost of any assignment, for dual prices (C,) of capacity, 0 or more.

        In the Lagrangian relaxation of capacity, every client is in the cluster of least cost plus price.
        """
        priced = np.flatnonzero(dual_price)
        least = self.cost.min(axis=1)
        if len(priced):
            least = self.cost[:, dual_price == 0].min(axis=1, initial=np.inf)
            for cluster in priced:
                np.minimum(least, self.cost[:, cluster] + dual_price[cluster] * self.bitrate_mbps, out=least)
        return float(least @ self.count) - float(dual_price @ self.capacity_mbps)


@dataclass(frozen=True, kw_only=True, eq=False)
class Relaxation:
    """The optimum for divisible clients.

    assigned    (G, C) sparse, fractional clients; None where capacity is too small
    dual_price  (C,) objective per Mbit/s of capacity
    bound       lower bound on the cost of any assignment; None where capacity is too small
    shortage    groups and clusters that prove that capacity is too small; else None
    shed_price  cost that one more client shed would save; None where none is shed
    shed        lower bound on the clients that are shed
    """

    assigned: sp.csr_array | None
    dual_price: Floats
    bound: float | None
    shortage: tuple[Ints, Ints] | None = None
    shed_price: float | None = None
    shed: int = 0

    def with_shedding(self, count: Ints) -> Relaxation:
        """Return the relaxation with one more cluster, the last, for the clients that no other has."""
        assert self.assigned is not None
        shed = np.zeros(len(count))
        if self.shed_price is not None:
            shed = np.maximum(count - self.assigned.sum(axis=1), 0.0)
        assigned = sp.csr_array(sp.hstack([self.assigned, sp.csr_array(shed[:, None])]))
        return replace(self, assigned=assigned, dual_price=np.append(self.dual_price, 0.0))


def transportation_problem(problem: Brokering) -> TransportationProblem:
    """Return the problem by client groups; a client's cost is its share of the objective."""
    groups = problem.groups
    cost = client_cost(problem)
    cost[~(problem.allowed & ~np.isnan(cost))] = np.inf
    return TransportationProblem(
        cost=cost,
        bitrate_mbps=groups.bitrate_mbps,
        count=groups.count,
        capacity_mbps=usable_capacity(problem.residual_mbps, groups.bitrate_mbps),
    )


def client_cost(problem: Brokering) -> Floats:
    """Return a client's share of the objective by group and cluster, (G, C); NaN without a price."""
    groups, terms = problem.groups, problem.terms
    cost: Floats = problem.score[groups.location] * terms.performance_weight
    if terms.performance_per == "bit":
        cost *= groups.bitrate_mbps[:, None]
    hourly = terms.cost_weight * terms.units_per_mbps_hour * groups.bitrate_mbps
    cost += problem.price[groups.location] * hourly[:, None]
    return cost


def common_unit_mbps(bitrate_mbps: Floats) -> float | None:
    """Return the largest unit that divides all bitrates, in whole kbit/s; None where there is none."""
    kbps = bitrate_mbps * 1000
    if not len(kbps) or (np.abs(kbps - np.rint(kbps)) > 1e-6).any():
        return None
    return float(np.gcd.reduce(np.rint(kbps).astype(np.int64))) / 1000


def usable_capacity(capacity_mbps: Floats, bitrate_mbps: Floats) -> Floats:
    """Return the capacity that whole clients can use, (C,): whole common units of their bitrates."""
    unit = common_unit_mbps(bitrate_mbps)
    return capacity_mbps if not unit else np.floor(capacity_mbps / unit * (1 + 1e-9) + 1e-9) * unit


def cheapest_arcs(cost: Floats, offered: Bools, arcs: int = INITIAL_ARCS) -> Bools:
    """Return the `arcs` cheapest of the clusters on offer to each group, (G, C)."""
    if arcs >= cost.shape[1]:
        return offered.copy()
    cheapest = np.argpartition(cost, arcs - 1, axis=1)[:, :arcs]
    active = np.zeros_like(offered)
    np.put_along_axis(active, cheapest, True, axis=1)
    return active & offered
