"""The problem as convex flow: kinds of clients, costs of links, and flows as assignments and splits.

Groups of the same location that the same clusters may serve are one kind: it has one variable for each
cluster.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
import scipy.sparse as sp

from planner.arrays import Bools, Floats, Ints
from planner_models.cdnrouting.problem.problem import Delivery
from planner_models.cdnrouting.problem.service import servable_mbps
from planner_models.flows import split_ratios
from planner_models.flows.convex_flow_problem import ConvexFlow, ConvexFlowProblem
from planner_models.flows.link_cost import CongestionCost, DelayCost, LinkCost
from planner_models.flows.source_choice import SourceChoice
from planner_models.graphs.indexing import sum_by_index

FITTED: Final = 1 - 1e-9
"""Share of traffic that fills capacity to the last bit that searches place, so that rounding fits."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Kinds:
    """Kinds of clients with traffic that clusters serve; K of them.

    kind      (G,) kind of each group, -1 for groups without service
    share     (G,) share of its kind's traffic
    location  (K,) place of each kind
    amount    (K,) traffic that is served, Mbit/s
    allowed   (K, S) whether a cluster may serve it
    """

    problem: Delivery
    kind: Ints
    share: Floats
    location: Ints
    amount: Floats
    allowed: Bools

    @classmethod
    def of(cls, problem: Delivery) -> Kinds:
        """Return the kinds of a problem's clients."""
        served = servable_mbps(problem)
        rows = np.flatnonzero(served > 0)
        location, allowed = problem.group_location[rows], problem.allowed[rows]
        table = np.column_stack([location, allowed.astype(np.int64)])
        _, first, index = np.unique(table, axis=0, return_index=True, return_inverse=True)
        index = index.ravel()
        amount = sum_by_index(index, served[rows], len(first))
        kind = np.full(len(served), -1, dtype=np.int64)
        kind[rows] = index
        share = np.zeros(len(served))
        share[rows] = served[rows] / amount[index]
        is_short = bool((served < problem.group_mbps * (1 - 1e-12)).any())
        return cls(
            problem=problem,
            kind=kind,
            share=share,
            location=location[first],
            amount=amount * FITTED if is_short else amount,
            allowed=allowed[first],
        )

    def to_groups(self, assigned: Floats) -> Floats:
        """Return the (G, S) traffic of groups of the (K, S) traffic of kinds."""
        rows = np.flatnonzero(self.kind >= 0)
        result = np.zeros((len(self.kind), assigned.shape[1]))
        result[rows] = self.share[rows, None] * assigned[self.kind[rows]]
        return result

    @cached_property
    def target_share(self) -> sp.csr_array:
        """(K, T) share of a kind's traffic that ends at each target."""
        problem = self.problem
        return sp.csr_array(problem.location_share[self.location][:, problem.network.targets])

    def supply(self, assigned: Floats) -> Floats:
        """Return the (T, N) traffic to each target from each node of the (K, S) traffic of kinds."""
        return np.asarray((self.target_share.T @ assigned) @ self.problem.source_share.toarray())

    def choice(
        self,
        *,
        allowed: Bools | None = None,
        totals: Floats | None = None,
    ) -> SourceChoice:
        """Return the choice of clusters: of those `allowed`, (K, S), or with exact `totals`, (S,)."""
        problem = self.problem
        return SourceChoice(
            amount=self.amount,
            allowed=self.allowed if allowed is None else self.allowed & allowed,
            source_share=problem.source_share,
            target_share=self.target_share,
            capacity=problem.capacity_mbps if totals is None else totals,
            is_exact=totals is not None,
        )


def no_choice(problem: Delivery) -> SourceChoice:
    """Return the choice without clients, for flows of fixed traffic alone."""
    clusters, targets = len(problem.clusters), len(problem.network.targets)
    return SourceChoice(
        amount=np.zeros(0),
        allowed=np.zeros((0, clusters), dtype=bool),
        source_share=problem.source_share,
        target_share=sp.csr_array((0, targets)),
        capacity=np.full(clusters, np.inf),
    )


def make_flow_problem(
    problem: Delivery, cost: LinkCost, choice: SourceChoice, fixed: Floats | None = None
) -> ConvexFlowProblem:
    """Return the flow problem of background traffic and a choice of clusters.

    fixed  (T, N) traffic besides the choice; None: the background
    """
    network = problem.network
    supply = (problem.background if fixed is None else fixed).copy()
    supply[np.arange(len(network.targets)), network.targets] = 0.0  # it takes no link
    return ConvexFlowProblem(
        graph=network.graph, targets=network.targets, fixed=supply, choice=choice, cost=cost
    )


def delay_cost(problem: Delivery, other: Floats | None = None) -> DelayCost:
    """Return the delay of all traffic by load; `other`, (E,) Mbit/s, is load that does not count."""
    network = problem.network
    return DelayCost(
        capacity=network.capacity,
        latency=network.latency,
        queueing=problem.queueing_ms,
        other=np.zeros(len(network.tail)) if other is None else other,
    )


def congestion_cost(problem: Delivery) -> CongestionCost:
    """Return the cost of the network by load."""
    network = problem.network
    return CongestionCost(capacity=network.capacity, price=network.price)


def ratios_of(problem: Delivery, flow: ConvexFlow) -> sp.coo_array:
    """Return the splits of a flow, (T, E), with shortest paths at nodes without traffic."""
    return split_ratios.ratios_of_solution(problem.network, sp.coo_array(flow.flow))


def shortest_ratios(problem: Delivery) -> sp.coo_array:
    """Return the splits of shortest paths by weight, one link at each node, (T, E)."""
    network = problem.network
    return split_ratios.take_first_link(network, split_ratios.shortest_path_links(network))
