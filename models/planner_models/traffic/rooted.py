"""Demands gathered by root over the reduced network, and the way back from trees to a plan.

All demands with one root share trees, so a routing is a mix of trees for each root: what column
generation and the fully polynomial scheme both look for. Roots are the targets, or the sources
where those are far fewer; then the network is turned around.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numba
import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from planner_models.traffic import routing, trees
from planner_models.traffic.problem import Traffic, totals
from planner_models.traffic.routing import Routing
from planner_models.traffic.symmetry import Reduced, reduce
from planner_models.traffic.trees import Floats, Graph, Ints

PAIR_ROWS: Final = 1_000_000  # a plan with more rows than this is not spelled out pair by pair
BLOCK: Final = 1 << 24  # numbers held at once while flows are written out


@dataclass(frozen=True, kw_only=True, eq=False)
class Mix:
    """For each root, trees and the share of its traffic on each.

    parent  (P, M) int32, arc by which each node leaves towards the root, -1 where it does not
    owner   (P,) the root's row
    weight  (P,) at least 0, adding up to 1 for each root
    """

    parent: Ints
    owner: NDArray[np.int64]
    weight: Floats


@dataclass(frozen=True, kw_only=True, eq=False)
class Ways:
    """The arcs of the paths in use: for each of them its pair, and the share of the pair's traffic.

    pair   a place in `Rooted.pairs`, ascending
    arc    of the reduced network
    share  of all ways out of a node together 1 where a pair starts
    """

    pair: NDArray[np.int64]
    arc: NDArray[np.int64]
    share: Floats


@dataclass(frozen=True, kw_only=True, eq=False)
class Rooted:
    """What is left to decide, on the M nodes and A arcs of the reduced network.

    graph           its arcs, turned around where roots are sources
    capacity_mbps   (A,)
    roots           (R,) node of each root
    amount_mbps     (R, M) what each node exchanges with the root
    forced          utilization of the busiest link whose load no routing can change
    """

    problem: Traffic
    reduced: Reduced
    by_source: bool
    graph: Graph
    capacity_mbps: Floats
    roots: NDArray[np.int64]
    amount_mbps: Floats
    forced: float

    @classmethod
    def of(cls, problem: Traffic, *, symmetry: bool = True) -> Rooted:
        """The problem, reduced; it must have a demand with a rate."""
        wanted = np.flatnonzero(problem.rate_mbps > 0)
        source, target, rate = problem.source[wanted], problem.target[wanted], problem.rate_mbps[wanted]
        count = len(problem.nodes)
        demanding = np.zeros(count, dtype=bool)
        demanding[source] = demanding[target] = True
        small = reduce(
            nodes=count,
            tail=problem.tail,
            head=problem.head,
            capacity_mbps=problem.capacity_mbps,
            demanding=demanding,
            symmetry=symmetry,
        )
        pair, leaf, is_up = small.leaf_ways(source, target)
        up = totals(leaf[is_up], rate[pair[is_up]], len(small.leaf))
        down = totals(leaf[~is_up], rate[pair[~is_up]], len(small.leaf))
        forced = (small.up @ up + small.down @ down) / problem.capacity_mbps

        by_source = 2 * len(np.unique(source)) < len(np.unique(target))
        here, there = small.node[source], small.node[target]
        if by_source:
            here, there = there, here
        inner = here != there
        roots, row = np.unique(there[inner], return_inverse=True)
        amount = sp.coo_array(
            (rate[inner], (row, here[inner])), shape=(len(roots), small.graph.nodes)
        ).toarray()
        graph = small.graph
        if by_source:
            graph = Graph.of(graph.nodes, graph.head, graph.tail)
        return cls(
            problem=problem,
            reduced=small,
            by_source=by_source,
            graph=graph,
            capacity_mbps=small.capacity_mbps,
            roots=roots,
            amount_mbps=amount,
            forced=float(forced.max(initial=0.0)),
        )

    @cached_property
    def pairs(self) -> tuple[NDArray[np.int64], NDArray[np.int64], Floats]:
        """What the reduced network must carry: (row of the root, node, Mbit/s) of each pair, in order."""
        row, node = np.nonzero(self.amount_mbps)
        return row, node, self.amount_mbps[row, node]

    def plan(self, mix: Mix | Ways) -> Routing:
        """The routing that sends every demand over the mix of its root, or the ways of its pair.

        By pair where that takes at most `PAIR_ROWS` rows, else by target.
        """
        rate = self.problem.rate_mbps
        if isinstance(mix, Mix):
            used = mix.weight > 0
            mix = Mix(parent=mix.parent[used], owner=mix.owner[used], weight=mix.weight[used])
        if self._pair_rows(mix) <= PAIR_ROWS:
            return routing.by_pair(self.problem, self._by_pair(mix, rate))
        return routing.by_target(self.problem, self._by_target(mix, rate))

    # --- on paths -------------------------------------------------------------------------

    def _ends(self, pairs: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The node where each demand meets the reduced network, and the row of its root, -1 without."""
        here = self.reduced.node[self.problem.source[pairs]]
        there = self.reduced.node[self.problem.target[pairs]]
        if self.by_source:
            here, there = there, here
        place = np.searchsorted(self.roots, there)
        return here, np.where(here != there, place, -1)

    def _pair_rows(self, mix: Mix | Ways) -> int:
        """About how many rows a plan by pair takes: of few demands, drawn evenly."""
        pairs = np.flatnonzero(self.problem.rate_mbps > 0)
        drawn = pairs[:: max(1, len(pairs) // 2_000)]
        arcs = len(self._paths(mix, drawn)[1])
        leaves = len(self.reduced.leaf_ways(self.problem.source[drawn], self.problem.target[drawn])[0])
        longest = np.diff(self.reduced.spread.tocsc().indptr).mean() if len(self.capacity_mbps) else 0.0
        return int((arcs * longest + leaves) * len(pairs) / max(len(drawn), 1))

    def _paths(
        self, mix: Mix | Ways, pairs: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], Floats]:
        """The ways of demands through the reduced network: (demand, arc, share of it)."""
        node, row = self._ends(pairs)
        inner = np.flatnonzero(row >= 0)
        if isinstance(mix, Ways):
            rows, nodes, _ = self.pairs
            known = rows * self.graph.nodes + nodes
            pair = np.searchsorted(known, row[inner] * self.graph.nodes + node[inner])
            which, at = _runs(np.searchsorted(mix.pair, pair), np.searchsorted(mix.pair, pair, "right"))
            return pairs[inner[which]], mix.arc[at], mix.share[at]
        order, start = self._by_root(mix)
        which, at = _runs(start[row[inner]], start[row[inner] + 1])
        tree = order[at]
        hop, arc = trees.walk(self.graph, mix.parent, tree, node[inner[which]])
        return pairs[inner[which[hop]]], arc, mix.weight[tree[hop]]

    def _by_root(self, mix: Mix) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The trees in the order of their roots, and where each root's begin."""
        order = np.argsort(mix.owner, kind="stable")
        return order, np.searchsorted(mix.owner[order], np.arange(len(self.roots) + 1))

    def _by_pair(self, mix: Mix | Ways, rate: Floats) -> sp.csr_array:
        """(K, E) Mbit/s."""
        count = len(rate)
        pairs = np.flatnonzero(rate > 0)
        pair, arc, share = self._paths(mix, pairs)
        core = sp.coo_array((share * rate[pair], (pair, arc)), shape=(count, len(self.capacity_mbps))).tocsr()
        return sp.csr_array(core @ self.reduced.spread.T + self._leaf_flow(pairs, pairs, rate, count))

    def _leaf_flow(
        self, pairs: NDArray[np.int64], row: NDArray[np.int64], rate: Floats, rows: int
    ) -> sp.csr_array:
        """(rows, E) Mbit/s that demands put on links before and behind the reduced network."""
        small = self.reduced
        which, leaf, is_up = small.leaf_ways(self.problem.source[pairs], self.problem.target[pairs])
        flow = sp.csr_array((rows, len(self.problem.links)))
        for side, share in ((is_up, small.up), (~is_up, small.down)):
            places = (row[which[side]], leaf[side])
            passing = sp.coo_array((rate[pairs[which[side]]], places), shape=(rows, len(small.leaf))).tocsr()
            flow = flow + passing @ share.T
        return sp.csr_array(flow)

    # --- per target -----------------------------------------------------------------------

    def _by_target(self, mix: Mix | Ways, rate: Floats) -> sp.csr_array:
        """(D, E) Mbit/s."""
        problem = self.problem
        pairs = np.flatnonzero(rate > 0)
        row = np.searchsorted(problem.targets, problem.target[pairs])
        leaves = self._leaf_flow(pairs, row, rate, len(problem.targets))
        if isinstance(mix, Ways):
            demand, arc, share = self._paths(mix, pairs)
            places = (np.searchsorted(problem.targets, problem.target[demand]), arc)
            shape = (len(problem.targets), len(self.capacity_mbps))
            ways = sp.coo_array((share * rate[demand], places), shape=shape).tocsr()
            return sp.csr_array(ways @ self.reduced.spread.T + leaves)
        step = max(1, BLOCK // max(len(self.capacity_mbps), self.graph.nodes, 1))
        blocks = []
        node, root = self._ends(pairs)
        inner = root >= 0
        for start in range(0, len(problem.targets), step):
            rows = min(step, len(problem.targets) - start)
            here = inner & (row >= start) & (row < start + rows)
            ends = (row[here] - start, node[here], root[here], rate[pairs[here]])
            flow = (
                self._from_source(mix, rows, *ends) if self.by_source else self._to_target(mix, rows, *ends)
            )
            blocks.append(sp.csr_array(flow) @ self.reduced.spread.T)
        core = sp.vstack(blocks, format="csr")
        return sp.csr_array(core + leaves)

    def _to_target(
        self,
        mix: Mix,
        rows: int,
        row: NDArray[np.int64],
        node: NDArray[np.int64],
        root: NDArray[np.int64],
        rate: Floats,
    ) -> Floats:
        """(rows, A): all that goes to one target takes the trees of one root."""
        amount = sp.coo_array((rate, (row, node)), shape=(rows, self.graph.nodes)).toarray()
        root_of = np.full(rows, -1)
        root_of[row] = root
        order, start = self._by_root(mix)
        has = np.flatnonzero(root_of >= 0)
        which, at = _runs(start[root_of[has]], start[root_of[has] + 1])
        tree, target = order[at], has[which]
        return trees.mixed_by(self.graph, mix.parent, amount, tree, target, mix.weight[tree])

    def _from_source(
        self,
        mix: Mix,
        rows: int,
        row: NDArray[np.int64],
        node: NDArray[np.int64],
        root: NDArray[np.int64],
        rate: Floats,
    ) -> Floats:
        """(rows, A): what goes to one target takes the trees of each of its sources, way by way."""
        flow = np.zeros((rows, len(self.capacity_mbps)))
        order, start = self._by_root(mix)
        _walk_into(self.graph.head, mix.parent[order], mix.weight[order], start, row, node, root, rate, flow)
        return flow


def _runs(start: NDArray[np.int64], stop: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """All numbers from start[i] to stop[i] - 1, for each i in turn: (i, number)."""
    size = stop - start
    which = np.repeat(np.arange(len(start)), size)
    return which, np.arange(len(which)) - np.repeat(np.cumsum(size) - size, size) + start[which]


@numba.njit(cache=True)
def _walk_into(head, parent, weight, start, row, node, root, rate, flow):  # type: ignore[no-untyped-def]
    for i in range(len(row)):
        for p in range(start[root[i]], start[root[i] + 1]):
            v = node[i]
            while parent[p, v] >= 0:
                flow[row[i], parent[p, v]] += weight[p] * rate[i]
                v = head[parent[p, v]]
