"""Links that traffic from each cluster to each kind of clients takes under given splits of routes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import splu

from planner.arrays import Floats, Ints
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
        """Return the links that traffic takes under splits, (T, E), by one linear system."""
        problem = kinds.problem
        clusters, links = len(problem.clusters), len(problem.network.tail)
        row_of = sp.csr_array(ratios)
        target = np.repeat(np.arange(row_of.shape[0]), np.diff(row_of.indptr))
        on_link = _pass_links(kinds, target, row_of.indices.astype(np.int64), row_of.data)
        background = np.asarray(
            np.bincount(row_of.indices, weights=on_link[:, 0], minlength=links), dtype=np.float64
        )
        entry, source = np.nonzero(on_link[:, 1:])
        by_target = sp.csr_array(
            (on_link[entry, source + 1], (target[entry] * clusters + source, row_of.indices[entry])),
            shape=(row_of.shape[0] * clusters, links),
        )
        pick = sp.csr_array(sp.kron(kinds.target_share, sp.eye_array(clusters), format="csr"))
        return cls(kinds=kinds, usage=sp.csr_array(pick @ by_target), background=background)

    def load(self, assigned: Floats) -> Floats:
        """Return the CDN's load of each link, (E,), of the (K, S) traffic of kinds."""
        return np.asarray(self.usage.T @ assigned.ravel())

    def latency(self, delay: Floats) -> Floats:
        """Return the (K, S) delay of traffic from a cluster to a kind, where links delay it by (E,)."""
        return np.asarray(self.usage @ delay).reshape(self.kinds.allowed.shape)


def _pass_links(kinds: Kinds, target: Ints, link: Ints, share: Floats) -> Floats:
    """Return the traffic of each entry of splits, (nnz, 1 + S): background, Mbit/s, and a unit of a cluster.

    One sparse system has the balance of all nodes for all targets: what passes a node is what starts there
    and what the splits send to it. Traffic that starts at a node without a way to the target does not pass.
    """
    problem = kinds.problem
    network = problem.network
    nodes, targets = len(network.nodes), len(network.targets)
    starts = problem.source_share.toarray()
    is_end = np.bincount(kinds.target_share.indices, minlength=targets) > 0
    by_target = np.empty((targets, nodes, 1 + len(starts)))
    by_target[:, :, 0] = problem.background
    by_target[:, :, 1:] = starts.T * is_end[:, None, None]
    by_target[np.arange(targets), network.targets] = 0.0
    tail, head = target * nodes + network.tail[link], target * nodes + network.head[link]
    supply = by_target.reshape(targets * nodes, -1)
    has_way = np.zeros(len(supply), dtype=bool)
    has_way[tail] = True
    supply[~has_way] = 0.0
    every = np.arange(len(supply))
    balance = sp.csc_array(
        (
            np.concatenate([np.ones(len(supply)), -share]),
            (np.concatenate([every, head]), np.concatenate([every, tail])),
        ),
        shape=(len(supply), len(supply)),
    )
    passing = np.asarray(splu(balance).solve(supply))
    return np.asarray(share[:, None] * passing[tail])
