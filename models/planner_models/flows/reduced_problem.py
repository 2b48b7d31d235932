"""The routing problem on the reduced network, by roots, and the map from its solutions to plans.

All demands of one root share trees, so a routing is a convex combination of trees for each root: both
column generation and the approximation scheme compute one. Roots are the targets, or the sources
where these are far fewer; then the network is reversed.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
import scipy.sparse as sp

from planner.arrays import Floats, Ints, Ints32
from planner.compiled import njit, run_small_in_python
from planner_models.flows.network_reduction import ReducedNetwork, reduce_network
from planner_models.flows.problem import FlowProblem
from planner_models.graphs import shortest_path_trees
from planner_models.graphs.indexing import index_distinct, list_ranges, sum_by_index
from planner_models.graphs.shortest_path_trees import Graph

MAX_PAIR_ROWS: Final = 1_000_000  # a plan with more rows than this has flows per target, not per pair
BLOCK_ENTRIES: Final = 1 << 24  # of the dense arrays in which flows per target are computed


@dataclass(frozen=True, kw_only=True, eq=False)
class WeightedTrees:
    """For each root, trees and the share of its traffic on each.

    parent  (P, M) int32, arc by which each node leaves towards the root, -1 for none
    owner   (P,) row of the tree's root
    weight  (P,) at least 0, adding up to 1 for each root
    """

    parent: Ints32
    owner: Ints
    weight: Floats


@dataclass(frozen=True, kw_only=True, eq=False)
class WeightedPaths:
    """The arcs of the paths in use: for each of them its pair, and the share of the pair's traffic.

    pair   place in `ReducedProblem.pairs`, ascending
    arc    of the reduced network
    share  the shares on all arcs out of a pair's start add up to 1
    """

    pair: Ints
    arc: Ints
    share: Floats


FlowSplit = WeightedTrees | WeightedPaths


@dataclass(frozen=True, eq=False)
class LinkFlow:
    """Traffic on links, Mbit/s, of each demand (K, E), or of each target (D, E)."""

    rate_mbps: sp.csr_array
    is_by_demand: bool


@dataclass(frozen=True, kw_only=True, eq=False)
class ReducedProblem:
    """The flows to decide, on the M nodes and A arcs of the reduced network.

    graph              its arcs, reversed where roots are sources
    capacity_mbps      (A,)
    roots              (R,) node of each root
    amount_mbps        (R, M) traffic between each node and the root
    fixed_utilization  of the busiest link whose load no routing can change
    """

    problem: FlowProblem
    network: ReducedNetwork
    by_source: bool
    graph: Graph
    capacity_mbps: Floats
    roots: Ints
    amount_mbps: Floats
    fixed_utilization: float

    @classmethod
    def of(cls, problem: FlowProblem, *, symmetry: bool = True) -> ReducedProblem:
        """Return the reduced problem of `problem`, which must have a demand with a rate."""
        positive = np.flatnonzero(problem.rate_mbps > 0)
        source, target, rate = problem.source[positive], problem.target[positive], problem.rate_mbps[positive]
        count = len(problem.nodes)
        demanding = np.zeros(count, dtype=bool)
        demanding[source] = demanding[target] = True
        network = reduce_network(
            nodes=count,
            tail=problem.tail,
            head=problem.head,
            capacity_mbps=problem.capacity_mbps,
            demanding=demanding,
            symmetry=symmetry,
        )
        pair, leaf, is_up = network.list_leaves(source, target)
        up = sum_by_index(leaf[is_up], rate[pair[is_up]], len(network.leaf))
        down = sum_by_index(leaf[~is_up], rate[pair[~is_up]], len(network.leaf))
        fixed = (network.up @ up + network.down @ down) / problem.capacity_mbps

        by_source = 2 * len(index_distinct(source, count)[0]) < len(index_distinct(target, count)[0])
        here, there = network.node[source], network.node[target]
        if by_source:
            here, there = there, here
        inner = here != there
        roots, row = index_distinct(there[inner], network.graph.nodes)
        amount = sp.coo_array(
            (rate[inner], (row, here[inner])), shape=(len(roots), network.graph.nodes)
        ).toarray()
        graph = network.graph
        if by_source:
            graph = Graph.of(graph.nodes, graph.head, graph.tail)
        return cls(
            problem=problem,
            network=network,
            by_source=by_source,
            graph=graph,
            capacity_mbps=network.capacity_mbps,
            roots=roots,
            amount_mbps=amount,
            fixed_utilization=float(fixed.max(initial=0.0)),
        )

    @cached_property
    def pairs(self) -> tuple[Ints, Ints, Floats]:
        """The demands on the reduced network: (row of the root, node, Mbit/s) of each pair, in order."""
        row, node = np.nonzero(self.amount_mbps)
        return row, node, self.amount_mbps[row, node]

    def find_flow(self, split: FlowSplit) -> LinkFlow:
        """Return the flow of all demands, each split over the trees of its root or the paths of its pair.

        It is by demand where that takes at most `MAX_PAIR_ROWS` entries, else by target.
        """
        rate = self.problem.rate_mbps
        if isinstance(split, WeightedTrees):
            used = split.weight > 0
            split = WeightedTrees(
                parent=split.parent[used], owner=split.owner[used], weight=split.weight[used]
            )
        if self._estimate_pair_rows(split) <= MAX_PAIR_ROWS:
            return LinkFlow(self._flow_by_pair(split, rate), is_by_demand=True)
        return LinkFlow(self._flow_by_target(split, rate), is_by_demand=False)

    # --- per pair -------------------------------------------------------------------------

    def _ends(self, pairs: Ints) -> tuple[Ints, Ints]:
        """Return each demand's node in the reduced network, and the row of its root, -1 for none."""
        here = self.network.node[self.problem.source[pairs]]
        there = self.network.node[self.problem.target[pairs]]
        if self.by_source:
            here, there = there, here
        row = np.searchsorted(self.roots, there)
        return here, np.where(here != there, row, -1)

    def _estimate_pair_rows(self, split: FlowSplit) -> int:
        """Estimate the number of rows of a plan per pair from an evenly spaced sample of demands."""
        pairs = np.flatnonzero(self.problem.rate_mbps > 0)
        sample = pairs[:: max(1, len(pairs) // 2_000)]
        arcs = len(self._demand_arcs(split, sample)[1])
        leaves = len(self.network.list_leaves(self.problem.source[sample], self.problem.target[sample])[0])
        longest = np.diff(self.network.spread.tocsc().indptr).mean() if len(self.capacity_mbps) else 0.0
        return int((arcs * longest + leaves) * len(pairs) / max(len(sample), 1))

    def _demand_arcs(self, split: FlowSplit, pairs: Ints) -> tuple[Ints, Ints, Floats]:
        """Return the arcs of demands through the reduced network: (demand, arc, share of the demand)."""
        node, row = self._ends(pairs)
        inner = np.flatnonzero(row >= 0)
        if isinstance(split, WeightedPaths):
            rows, nodes, _ = self.pairs
            key = rows * self.graph.nodes + nodes
            pair = np.searchsorted(key, row[inner] * self.graph.nodes + node[inner])
            which, entry = list_ranges(
                np.searchsorted(split.pair, pair), np.searchsorted(split.pair, pair, "right")
            )
            return pairs[inner[which]], split.arc[entry], split.share[entry]
        order, start = self._trees_by_root(split)
        which, entry = list_ranges(start[row[inner]], start[row[inner] + 1])
        tree = order[entry]
        hop, arc = shortest_path_trees.walk_to_root(self.graph, split.parent, tree, node[inner[which]])
        return pairs[inner[which[hop]]], arc, split.weight[tree[hop]]

    def _trees_by_root(self, split: WeightedTrees) -> tuple[Ints, Ints]:
        """Return the trees in the order of their roots, and the place where each root's trees begin."""
        order = np.argsort(split.owner, kind="stable")
        return order, np.searchsorted(split.owner[order], np.arange(len(self.roots) + 1))

    def _flow_by_pair(self, split: FlowSplit, rate: Floats) -> sp.csr_array:
        """Return the flow of each demand on each link, shape (K, E), Mbit/s."""
        count = len(rate)
        pairs = np.flatnonzero(rate > 0)
        pair, arc, share = self._demand_arcs(split, pairs)
        core = sp.coo_array((share * rate[pair], (pair, arc)), shape=(count, len(self.capacity_mbps))).tocsr()
        return sp.csr_array(core @ self.network.spread.T + self._leaf_flow(pairs, pairs, rate, count))

    def _leaf_flow(self, pairs: Ints, row: Ints, rate: Floats, rows: int) -> sp.csr_array:
        """Return the flow of demands on links outside the reduced network, shape (rows, E), Mbit/s."""
        which, leaf, is_up = self.network.list_leaves(self.problem.source[pairs], self.problem.target[pairs])
        flow = sp.csr_array((rows, len(self.problem.links)))
        for side, share in ((is_up, self.network.up), (~is_up, self.network.down)):
            entries = (row[which[side]], leaf[side])
            passing = sp.coo_array(
                (rate[pairs[which[side]]], entries), shape=(rows, len(self.network.leaf))
            ).tocsr()
            flow = flow + passing @ share.T
        return sp.csr_array(flow)

    # --- per target -----------------------------------------------------------------------

    def _flow_by_target(self, split: FlowSplit, rate: Floats) -> sp.csr_array:
        """Return the flow to each target on each link, shape (D, E), Mbit/s."""
        problem = self.problem
        pairs = np.flatnonzero(rate > 0)
        row = problem.target_row[pairs]
        leaves = self._leaf_flow(pairs, row, rate, len(problem.targets))
        if isinstance(split, WeightedPaths):
            demand, arc, share = self._demand_arcs(split, pairs)
            entries = (problem.target_row[demand], arc)
            shape = (len(problem.targets), len(self.capacity_mbps))
            core = sp.coo_array((share * rate[demand], entries), shape=shape).tocsr()
            return sp.csr_array(core @ self.network.spread.T + leaves)
        step = max(1, BLOCK_ENTRIES // max(len(self.capacity_mbps), self.graph.nodes, 1))
        blocks = []
        node, root = self._ends(pairs)
        inner = root >= 0
        for start in range(0, len(problem.targets), step):
            rows = min(step, len(problem.targets) - start)
            here = inner & (row >= start) & (row < start + rows)
            ends = (row[here] - start, node[here], root[here], rate[pairs[here]])
            flow = (
                self._from_source(split, rows, *ends)
                if self.by_source
                else self._to_target(split, rows, *ends)
            )
            blocks.append(sp.csr_array(flow) @ self.network.spread.T)
        core = sp.vstack(blocks, format="csr")
        return sp.csr_array(core + leaves)

    def _to_target(
        self, split: WeightedTrees, rows: int, row: Ints, node: Ints, root: Ints, rate: Floats
    ) -> Floats:
        """Return flows (rows, A) where roots are targets: traffic to a target takes the trees of its root."""
        amount = sp.coo_array((rate, (row, node)), shape=(rows, self.graph.nodes)).toarray()
        root_of = np.full(rows, -1)
        root_of[row] = root
        order, start = self._trees_by_root(split)
        has = np.flatnonzero(root_of >= 0)
        which, entry = list_ranges(start[root_of[has]], start[root_of[has] + 1])
        tree, target = order[entry], has[which]
        return shortest_path_trees.weighted_load_by_row(
            self.graph, split.parent, amount, tree, target, split.weight[tree]
        )

    def _from_source(
        self, split: WeightedTrees, rows: int, row: Ints, node: Ints, root: Ints, rate: Floats
    ) -> Floats:
        """Return flows (rows, A) where roots are sources: traffic to a target takes each source's trees."""
        flow = np.zeros((rows, len(self.capacity_mbps)))
        order, start = self._trees_by_root(split)
        _add_walks(
            self.graph.head, split.parent[order], split.weight[order], start, row, node, root, rate, flow
        )
        return flow


@run_small_in_python(max_elements=1_000)
@njit(cache=True)
def _add_walks(head, parent, weight, start, row, node, root, rate, flow):  # type: ignore[no-untyped-def]
    for i in range(len(row)):
        for p in range(start[root[i]], start[root[i] + 1]):
            v = node[i]
            while parent[p, v] >= 0:
                flow[row[i], parent[p, v]] += weight[p] * rate[i]
                v = head[parent[p, v]]
