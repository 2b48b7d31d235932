"""Links that traffic from each cluster to each kind of clients takes under given splits of routes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import splu

from planner.arrays import Floats
from planner_models.cdnrouting.plan.flow_problem import Kinds


@dataclass(frozen=True, kw_only=True, eq=False)
class PathUsage:
    """Share of traffic on each link: K kinds, S clusters, E links.

    usage       (K * S, E) share of the traffic of a kind from a cluster that takes each link, by k * S + s
    background  (E,) load of background traffic, Mbit/s
    """

    kinds: Kinds
    usage: sp.csr_array
    background: Floats

    @classmethod
    def of(cls, kinds: Kinds, ratios: sp.coo_array) -> PathUsage:
        """Return the links that traffic takes under splits, (T, E), by a linear system for each target."""
        problem = kinds.problem
        network, clusters = problem.network, len(problem.clusters)
        starts = problem.source_share.toarray()
        background = np.zeros(len(network.tail))
        by_target: list[sp.csr_array] = []
        row_of = sp.csr_array(ratios)
        is_end = np.bincount(kinds.target_share.indices, minlength=len(network.targets)) > 0
        for target in range(len(network.targets)):
            link = row_of.indices[row_of.indptr[target] : row_of.indptr[target + 1]]
            share = row_of.data[row_of.indptr[target] : row_of.indptr[target + 1]]
            supply = [problem.background[target]]
            if is_end[target]:
                supply += list(starts)
            amount = _passing(kinds, target, link, share, np.array(supply).T)
            on_link = np.zeros((amount.shape[1], len(network.tail)))
            on_link[:, link] = (share[:, None] * amount[network.tail[link]]).T
            background += on_link[0]
            by_target.append(sp.csr_array(on_link[1:] if is_end[target] else (clusters, len(network.tail))))
        stacked = sp.csr_array(sp.vstack(by_target, format="csr"))  # (T * S, E)
        pick = sp.csr_array(sp.kron(kinds.target_share, sp.eye_array(clusters), format="csr"))
        return cls(kinds=kinds, usage=sp.csr_array(pick @ stacked), background=background)

    def load(self, assigned: Floats) -> Floats:
        """Return the CDN's load of each link, (E,), of the (K, S) traffic of kinds."""
        return np.asarray(self.usage.T @ assigned.ravel())

    def latency(self, delay: Floats) -> Floats:
        """Return the (K, S) delay of traffic from a cluster to a kind, where links delay it by (E,)."""
        return np.asarray(self.usage @ delay).reshape(self.kinds.allowed.shape)


def _passing(kinds: Kinds, target: int, link: Floats, share: Floats, supply: Floats) -> Floats:
    """Return the traffic that passes each node towards a target, (N, C), of C supplies, (N, C)."""
    network = kinds.problem.network
    count = len(network.nodes)
    supply = supply.copy()
    supply[network.targets[target]] = 0.0
    has_way = np.zeros(count, dtype=bool)
    has_way[network.tail[link]] = True
    supply[~has_way] = 0.0
    if not len(link):
        return np.zeros((count, supply.shape[1]))
    moves = sp.coo_array((share, (network.head[link], network.tail[link])), shape=(count, count))
    system = sp.csc_array(sp.eye_array(count) - moves)
    return np.asarray(splu(system).solve(supply))
