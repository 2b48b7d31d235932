"""Network reduction without loss of optimality: symmetric switches, chains and dead ends are merged.

Four steps are repeated until none applies. None of them changes the largest concurrent flow:

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

import numpy as np
import scipy.sparse as sp

from planner.arrays import Bools, Floats, Ints
from planner.compiled import njit, run_small_in_python
from planner_models.graphs.shortest_path_trees import Graph

Shares = dict[int, float]
"""Share of an arc's traffic on each link, by link."""


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

    def merge_equivalent(self) -> list[int]:
        """Merge equivalent nodes; return all remaining nodes where any were merged."""
        classes: dict[int, list[int]] = {}
        for v, colour in self._colours().items():
            classes.setdefault(colour, []).append(v)
        groups = [members for members in classes.values() if len(members) > 1]
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
        for members in groups:
            for v in members[1:]:
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
        for v in range(self.count):
            end = v
            while self.demand_at[end] != end:
                end = self.demand_at[end]
            if self.demanding[v]:
                node[v] = index_of[end]
        arcs = [(u, v, *arc) for u in remaining for v, arc in self.out[u].items()]
        ends = np.array([(index_of[u], index_of[v]) for u, v, _, _ in arcs], dtype=np.int64).reshape(-1, 2)
        return ReducedNetwork(
            graph=Graph.of(len(remaining), ends[:, 0], ends[:, 1]),
            capacity_mbps=np.array([capacity for _, _, capacity, _ in arcs], dtype=float),
            node=node,
            spread=_shares([shares for *_, shares in arcs], links),
            leaf=np.array([leaf[0] for leaf in self.leaves], dtype=np.int64),
            at=np.array([leaf[1] for leaf in self.leaves], dtype=np.int64),
            up=_shares([leaf[2] for leaf in self.leaves], links),
            down=_shares([leaf[3] for leaf in self.leaves], links),
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
