"""The broker's problem as a transportation problem: client groups, clusters, costs and capacities."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from planner.arrays import Floats, Ints
from planner_models.brokering.problem.problem import Brokering

CAPACITY_TOLERANCE: Final = 1e-9  # relative; what rounding in sums of loads may come to


@dataclass(frozen=True, kw_only=True, eq=False)
class TransportationProblem:
    """Client groups that are distributed over clusters of limited capacity.

    cost           (G, C) of a client in a cluster; inf where the cluster is not on offer
    bitrate_mbps   (G,) of a client
    count          (G,) clients
    capacity_mbps  (C,) that clients of these bitrates can use
    """

    cost: Floats
    bitrate_mbps: Floats
    count: Ints
    capacity_mbps: Floats

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
