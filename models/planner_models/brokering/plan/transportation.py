"""The broker's problem as a transportation problem: client groups, clusters, costs and capacities."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

import numpy as np
import scipy.sparse as sp

from planner.arrays import Bools, Floats, Ints
from planner.search.tolerances import IMPROVEMENT, ROUNDING
from planner_models.brokering.problem.problem import Brokering

INITIAL_ARCS: Final = 16  # cheapest clusters of each group; reduced costs say which arcs are added
REDUCED_COST_TOLERANCE: Final = IMPROVEMENT  # relative
BLOCK_ROWS: Final = 1024  # of matrices of groups and clusters
CAPACITY_TOLERANCE: Final = ROUNDING  # relative; what rounding in sums of loads may come to


@dataclass(frozen=True, kw_only=True, eq=False)
class TransportationProblem:
    """Client groups that are distributed over clusters of limited capacity.

    cost           (G, C) of a client in a cluster; inf where the cluster is not on offer
    bitrate_mbps   (G,) of a client
    count          (G,) clients
    capacity_mbps  (C,) that clients of these bitrates can use
    sheds          whether the last cluster stands for shedding clients
    similar        (G,) number that groups with the same clusters share, so that they may be one class
    """

    cost: Floats
    bitrate_mbps: Floats
    count: Ints
    capacity_mbps: Floats
    sheds: bool = False
    similar: Ints | None = None

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
            similar=self.similar,
        )

    def reduced_cost(self, dual_price: Floats, clusters: Ints) -> Floats:
        """Return cost plus price in each of `clusters` over the least anywhere, (G, clusters)."""
        reduced: Floats = np.empty((len(self.count), len(clusters)))
        for rows in _blocks(len(reduced)):
            priced = self.cost[rows] + np.multiply.outer(self.bitrate_mbps[rows], dual_price)
            reduced[rows] = priced[:, clusters] - priced.min(axis=1)[:, None]
        return reduced

    def cheapest_arcs(self, dual_price: Floats) -> Bools:
        """Return the arcs of least cost plus price of each group, (G, C)."""
        priced = self.cost + np.multiply.outer(self.bitrate_mbps, dual_price)
        return cheapest_arcs(priced, np.isfinite(self.cost))

    def cheapest_cluster(self, dual_price: Floats) -> Ints:
        """Return the cluster of least cost plus price of each group, (G,)."""
        cheapest = np.empty(len(self.count), dtype=np.int64)
        for rows in _blocks(len(cheapest)):
            surcharge = np.multiply.outer(self.bitrate_mbps[rows], dual_price)
            cheapest[rows] = (self.cost[rows] + surcharge).argmin(axis=1)
        return cheapest

    def lagrangian_bound(self, dual_price: Floats) -> float:
        """Return a lower bound on the cost of any assignment, for dual prices (C,) of capacity, 0 or more.

        In the Lagrangian relaxation of capacity, every client is in the cluster of least cost plus price.
        """
        lowest = np.empty(len(self.count))
        for rows in _blocks(len(lowest)):
            surcharge = np.multiply.outer(self.bitrate_mbps[rows], dual_price)
            surcharge += self.cost[rows]
            lowest[rows] = surcharge.min(axis=1, initial=np.inf)
        return float(lowest @ self.count) - float(dual_price @ self.capacity_mbps)


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


def transportation_problem(problem: Brokering, cost: Floats | None = None) -> TransportationProblem:
    """Return the problem by client groups; a client's cost is its share of the objective.

    cost  `client_cost` of the problem, where it is known; becomes the result's
    """
    groups, classes = problem.groups, problem.restriction_classes
    if cost is None:
        cost = client_cost(problem)
    if not (problem.offered.all() and len(classes.permitted) == 1 and not np.isnan(problem.price).any()):
        for rows in _blocks(len(cost)):
            offered = problem.offered[groups.location[rows]]
            allowed = classes.allowed(offered, groups.restriction_class[rows])
            cost[rows][~(allowed & ~np.isnan(cost[rows]))] = np.inf
    return TransportationProblem(
        cost=cost,
        bitrate_mbps=groups.bitrate_mbps,
        count=groups.count,
        capacity_mbps=usable_capacity(problem.residual_mbps, groups.bitrate_mbps),
        similar=groups.location * len(classes.permitted) + groups.restriction_class,
    )


def client_cost(problem: Brokering) -> Floats:
    """Return a client's share of the objective by group and cluster, (G, C); NaN without a price."""
    groups, terms = problem.groups, problem.terms
    priced = problem.priced_bitrate_mbps(groups.location, groups.bitrate_mbps)
    hourly = terms.cost_weight * terms.units_per_mbps_hour * priced
    cost: Floats = np.empty((len(groups.count), len(problem.clusters)))
    for rows in _blocks(len(cost)):
        location, score_cost = groups.location[rows], cost[rows]
        np.multiply(problem.score[location], terms.performance_weight, out=score_cost)
        if terms.performance_per == "bit":
            score_cost *= groups.bitrate_mbps[rows, None]
        score_cost += problem.price[location] * hourly[rows, None]
    return cost


def _blocks(rows: int) -> Iterator[slice]:
    """Yield blocks of rows that fit a cache: a matrix of all groups and clusters takes gigabytes."""
    return (slice(first, first + BLOCK_ROWS) for first in range(0, rows, BLOCK_ROWS))


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
