"""The routing problem on the reduced network, by roots, and the map from its solutions to flows.

All demands of one root share trees, so a routing is a convex combination of trees for each root: both
column generation and the approximation scheme compute one. Roots are the targets, or the sources
where these are far fewer; then the network is reversed.

The reduction merges symmetric switches, chains and dead ends, without loss of optimality. Four steps are
repeated until none applies. None of them changes the largest concurrent flow:

- parallel links become one: traffic on it divides in proportion to their capacities;
- a node with one neighbour is removed: the demands alone fix the load of its links. Its own demands
  move to the neighbour;
- a node with two neighbours and no demand is removed: each pair of links through it becomes one link;
- equivalent nodes without demand become one. They are the classes of the coarsest partition in
  which all nodes of a class have the same capacity to, and from, every other class (colour
  refinement). Any flow can be averaged over a class: if flow F of a commodity goes from class C to
  class D in all, then a flow of F times the link's share of all capacity from C to D keeps the
  balance of every node and loads no link more than the average of those links before. So the network
  of classes carries exactly as much. In a fat tree, core switches that lost no link become one, and
  so do planes that lost none; hosts are dead ends.

source  Grohe, Kersting, Mladenov and Schweitzer, "Dimension reduction via colour refinement"
        (ESA 2014), here for flows, where classes are nodes and shares follow capacity
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple

import numpy as np
import scipy.sparse as sp

from planner.arrays import Bools, Floats, Ints, Ints32
from planner.compiled import njit, run_small_in_python
from planner_models.flows.problem import FlowProblem
from planner_models.graphs import shortest_path_trees
from planner_models.graphs.indexing import index_distinct, list_ranges, sum_by_index
from planner_models.graphs.shortest_path_trees import Graph

MAX_PAIR_ROWS: Final = 1_000_000  # a plan with more rows than this has flows per target, not per pair
BLOCK_ENTRIES: Final = 1 << 24  # of the dense arrays in which flows per target are computed
Shares = dict[int, float]
"""Share of an arc's traffic on each link, by link."""


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
        trees = _Trees(self.graph.head, split.parent[order], split.weight[order], start)
        _add_walks(trees, row, node, root, rate, flow)
        return flow


class _Trees(NamedTuple):
    """Weighted trees by root: those of root r are start[r] to start[r + 1]."""

    head: Ints32
    parent: Ints32
    weight: Floats
    start: Ints


@run_small_in_python(max_elements=1_000)
@njit(cache=True)
def _add_walks(trees, row, node, root, rate, flow):  # type: ignore[no-untyped-def]
    """Add demands' rates to the links of their trees' walks to the roots, row by row of `flow`."""
    head, parent, weight, start = trees
    for i in range(len(row)):
        for p in range(start[root[i]], start[root[i] + 1]):
            v = node[i]
            while parent[p, v] >= 0:
                flow[row[i], parent[p, v]] += weight[p] * rate[i]
                v = head[parent[p, v]]


@dataclass(frozen=True, kw_only=True, eq=False)
class ReducedNetwork:
    """The reduced network, and the map of its flows to the links of the original network.

    graph          A arcs between M nodes
    capacity_mbps  (A,)
    node           (N,) node of the reduced network for each original node, -1 where none has demand
    spread         (E, A) share of each arc's traffic on each original link
    leaf, at       (L,) removed nodes with one neighbour, in order of removal, and that neighbour
    up, down       (E, L) share on each link of the traffic that leaves, and enters, each leaf
    """

    graph: Graph
    capacity_mbps: Floats
    node: Ints
    spread: sp.csr_array
    leaf: Ints
    at: Ints
    up: sp.csr_array
    down: sp.csr_array

    def list_leaves(self, source: Ints, target: Ints) -> tuple[Ints, Ints, Bools]:
        """Return the leaves that (K,) pairs pass on every path: (place of the pair, leaf, is up)."""
        order = np.full(len(self.node), len(self.leaf), dtype=np.int64)
        order[self.leaf] = np.arange(len(self.leaf))
        count = np.zeros(len(source) + 1, dtype=np.int64)
        nothing = np.zeros(0, dtype=np.int64)
        _list_leaves(source, target, order, self.at, count, nothing, nothing > 0)
        start = np.cumsum(count) - count
        leaf = np.empty(int(start[-1]), dtype=np.int64)
        is_up = np.empty(len(leaf), dtype=np.bool_)
        _list_leaves(source, target, order, self.at, start.copy(), leaf, is_up)
        return np.repeat(np.arange(len(source)), count[:-1]), leaf, is_up


def reduce_network(
    *, nodes: int, tail: Ints, head: Ints, capacity_mbps: Floats, demanding: Bools, symmetry: bool = True
) -> ReducedNetwork:
    """Return the network after repeating the four steps as long as one applies.

    tail, head     (E,) the links
    capacity_mbps  (E,) positive
    demanding      (N,) nodes that send or receive; they are never merged with others
    symmetry       also merge equivalent nodes
    """
    net = _Network(nodes, demanding)
    ends = zip(tail.tolist(), head.tolist(), capacity_mbps.tolist(), strict=True)
    for link, (u, v, capacity) in enumerate(ends):
        net.add_arc(u, v, capacity, {link: 1.0})
    net.remove_dead_ends(range(nodes))
    while symmetry and (changed := net.merge_equivalent()):
        net.remove_dead_ends(changed)
    return net.build(len(tail))


class _Network:
    """The network while it is reduced: arcs with their capacity and their shares on links."""

    def __init__(self, nodes: int, demanding: Bools) -> None:
        self.demanding = demanding.tolist()
        self.count = nodes
        self.out: list[dict[int, tuple[float, Shares]]] = [{} for _ in range(nodes)]  # head -> arc
        self.into: list[set[int]] = [set() for _ in range(nodes)]
        self.removed = [False] * nodes
        self.demand_at = list(range(nodes))  # node that each node's demand moved to
        self.leaves: list[tuple[int, int, Shares, Shares]] = []

    def add_arc(self, u: int, v: int, capacity: float, shares: Shares) -> None:
        """Add an arc from u to v; beside a parallel arc, traffic divides by capacity."""
        if u == v:
            return
        if v in self.out[u]:
            before, others = self.out[u][v]
            both = before + capacity
            merged = {link: share * before / both for link, share in others.items()}
            for link, share in shares.items():
                merged[link] = merged.get(link, 0.0) + share * capacity / both
            self.out[u][v] = (both, merged)
        else:
            self.out[u][v] = (capacity, shares)
            self.into[v].add(u)

    def remove_arc(self, u: int, v: int) -> tuple[float, Shares] | None:
        arc = self.out[u].pop(v, None)
        self.into[v].discard(u)
        return arc

    def remove_dead_ends(self, start: Iterable[int]) -> None:
        """Remove dead ends and chains until there are none."""
        waiting = list(start)
        while waiting:
            v = waiting.pop()
            if self.removed[v]:
                continue
            neighbours = self.into[v].union(self.out[v])
            if len(neighbours) == 1:
                waiting += self._remove_leaf(v, *neighbours)
            elif len(neighbours) == 2 and not self.demanding[v]:
                waiting += self._join_ends(v, *sorted(neighbours))
            elif not neighbours and not self.demanding[v]:
                self.removed[v] = True

    def _remove_leaf(self, v: int, to: int) -> list[int]:
        up, down = self.remove_arc(v, to), self.remove_arc(to, v)
        self.removed[v] = True
        if self.demanding[v]:
            self.leaves.append((v, to, up[1] if up else {}, down[1] if down else {}))
            self.demand_at[v] = to
            self.demanding[to] = True
        return [to]

    def _join_ends(self, v: int, end_a: int, other: int) -> list[int]:
        for u, w in ((end_a, other), (other, end_a)):
            if v in self.out[u] and w in self.out[v]:
                (before, first), (after, second) = self.out[u][v], self.out[v][w]
                shares = dict(first)
                for link, share in second.items():
                    shares[link] = shares.get(link, 0.0) + share
                self.add_arc(u, w, min(before, after), shares)
        for u in (end_a, other):
            self.remove_arc(u, v)
            self.remove_arc(v, u)
        self.removed[v] = True
        return [end_a, other]

    def _list_equivalent(self) -> list[list[int]]:
        """Return the groups of several nodes that are equivalent."""
        classes: dict[int, list[int]] = {}
        for v, colour in self._colours().items():
            classes.setdefault(colour, []).append(v)
        return [members for members in classes.values() if len(members) > 1]

    def merge_equivalent(self) -> list[int]:
        """Merge equivalent nodes; return all remaining nodes where any were merged."""
        groups = self._list_equivalent()
        merged_into = {v: members[0] for members in groups for v in members}
        arcs = [
            (u, v, *arc)
            for u in range(self.count)
            for v, arc in self.out[u].items()
            if u in merged_into or v in merged_into
        ]
        for u, v, _, _ in arcs:  # all before any is added: old and new arcs share nodes
            self.remove_arc(u, v)
        for u, v, capacity, shares in arcs:
            self.add_arc(merged_into.get(u, u), merged_into.get(v, v), capacity, shares)
        for v in merged_into.keys() - set(merged_into.values()):
            self.removed[v] = True
        # their neighbours may have become dead ends or parts of chains
        return [v for v in range(self.count) if not self.removed[v]] if groups else []

    def _colours(self) -> dict[int, int]:
        """Return the class of each node in the coarsest stable partition (colour refinement)."""
        remaining = [v for v in range(self.count) if not self.removed[v]]
        colour = {v: v + 1 if self.demanding[v] else 0 for v in remaining}
        classes = len(set(colour.values()))
        while True:
            number: dict[object, int] = {}
            colour = {
                v: number.setdefault((colour[v], self._signature(v, colour)), len(number)) for v in remaining
            }
            if len(number) == classes:
                return colour
            classes = len(number)

    def _signature(self, v: int, colour: dict[int, int]) -> tuple[object, ...]:
        if self.demanding[v]:  # a class of its own
            return ()
        sends: dict[int, list[float]] = {}
        gets: dict[int, list[float]] = {}
        for w in self.out[v]:
            sends.setdefault(colour[w], []).append(self.out[v][w][0])
        for u in self.into[v]:
            gets.setdefault(colour[u], []).append(self.out[u][v][0])
        return tuple(
            tuple(sorted((kind, sum(sorted(capacities))) for kind, capacities in side.items()))
            for side in (sends, gets)
        )

    def build(self, links: int) -> ReducedNetwork:
        remaining = [v for v in range(self.count) if not self.removed[v]]
        index_of = {v: i for i, v in enumerate(remaining)}
        node = np.full(self.count, -1, dtype=np.int64)
        for v in np.flatnonzero(self.demanding).tolist():
            end = v
            while self.demand_at[end] != end:
                end = self.demand_at[end]
            node[v] = index_of[end]
        arcs = [(u, v, *arc) for u in remaining for v, arc in self.out[u].items()]
        ends = np.array([(index_of[u], index_of[v]) for u, v, _, _ in arcs], dtype=np.int64).reshape(-1, 2)
        leaf, at, up, down = zip(*self.leaves, strict=True) if self.leaves else [()] * 4
        return ReducedNetwork(
            graph=Graph.of(len(remaining), ends[:, 0], ends[:, 1]),
            capacity_mbps=np.array([capacity for _, _, capacity, _ in arcs], dtype=float),
            node=node,
            spread=_shares([shares for *_, shares in arcs], links),
            leaf=np.array(leaf, dtype=np.int64),
            at=np.array(at, dtype=np.int64),
            up=_shares(list(up), links),
            down=_shares(list(down), links),
        )


def _shares(columns: list[Shares], links: int) -> sp.csr_array:
    entries = np.array([(link, j) for j, shares in enumerate(columns) for link in shares]).reshape(-1, 2)
    values = np.array([share for shares in columns for share in shares.values()], dtype=float)
    return sp.csr_array((values, (entries[:, 0], entries[:, 1])), shape=(links, len(columns)))


@run_small_in_python(max_elements=5_000)
@njit(cache=True)
def _list_leaves(source, target, order, first_index, position, leaf, is_up):  # type: ignore[no-untyped-def]
    """Write the leaves met by climbing from both ends of each pair; with an empty `leaf`, only count."""
    for k in range(len(source)):
        s, t = source[k], target[k]
        while s != t:
            first = min(order[s], order[t])
            if first == len(first_index):
                break
            if len(leaf):
                leaf[position[k]] = first
                is_up[position[k]] = order[s] == first
            position[k] += 1
            if order[s] == first:
                s = first_index[first]
            else:
                t = first_index[first]
