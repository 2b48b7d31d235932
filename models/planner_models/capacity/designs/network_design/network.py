"""Arcs, commodities and distances of a network whose links carry all demands at once."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import dijkstra

from planner_models.capacity.designs.network_design.instance import Instance

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


class Network:
    """Arcs in which traffic flows, and the capacities that they share.

    A capacity is one row: of a link for both directions ("undirected"), of each direction of a link
    ("bidirected") or of a link ("directed"). A commodity is all traffic of one root.

    arc_tail, arc_head   (A,) ends of each arc
    arc_edge             (A,) link of each arc
    arc_capacity         (A,) capacity row that an arc uses
    capacity_edge        (R,) link of each capacity row
    source, target       (D,) ends of demands, turned such that few roots remain
    roots                (K,) nodes in which demands start
    """

    def __init__(self, instance: Instance) -> None:
        edges = np.arange(instance.edges)
        self.instance = instance
        self.nodes = instance.nodes
        tail, head = instance.tail, instance.head
        if instance.direction == "directed":
            self.arc_tail, self.arc_head, self.arc_edge = tail, head, edges
        else:
            self.arc_tail, self.arc_head = np.r_[tail, head], np.r_[head, tail]
            self.arc_edge = np.r_[edges, edges]
        self.arcs = len(self.arc_tail)
        both = instance.direction == "bidirected"
        self.arc_capacity = np.arange(self.arcs) if both else self.arc_edge
        self.capacity_edge = self.arc_edge if both else edges
        self.source, self.target = instance.source, instance.target
        if instance.direction == "undirected":
            self.source, self.target = _cover_by_few_roots(instance)
        self.roots, self.commodity = np.unique(self.source, return_inverse=True)

    @property
    def capacities(self) -> int:
        """Number of capacity rows."""
        return len(self.capacity_edge)

    @cached_property
    def incidence(self) -> sp.csr_array:
        """Net outflow of each node per unit on each arc, shape (nodes, A)."""
        arcs = np.arange(self.arcs)
        ones = np.ones(self.arcs)
        return sp.csr_array(
            (np.r_[ones, -ones], (np.r_[self.arc_tail, self.arc_head], np.r_[arcs, arcs])),
            shape=(self.nodes, self.arcs),
        )

    @cached_property
    def conservation(self) -> sp.csr_array:
        """Flow conservation of all commodities, shape (K nodes, K A)."""
        return sp.csr_array(sp.kron(sp.eye_array(len(self.roots)), self.incidence))

    @cached_property
    def load(self) -> sp.csr_array:
        """Load of each capacity row by all commodities, shape (R, K A)."""
        one = sp.csr_array(
            (np.ones(self.arcs), (self.arc_capacity, np.arange(self.arcs))),
            shape=(self.capacities, self.arcs),
        )
        return sp.csr_array(sp.hstack([one] * len(self.roots)))

    @cached_property
    def supply(self) -> sp.csr_array:
        """Net outflow of each commodity at each node per unit of each demand, shape (K nodes, D)."""
        demands = np.arange(len(self.source))
        ones = np.ones(len(demands))
        base = self.commodity * self.nodes
        return sp.csr_array(
            (np.r_[ones, -ones], (np.r_[base + self.source, base + self.target], np.r_[demands, demands])),
            shape=(len(self.roots) * self.nodes, len(demands)),
        )

    def distances(self, lengths: Floats, up: Bools) -> Floats:
        """Return the distance between all nodes, shape (nodes, nodes), inf where there is no path.

        lengths  (R,) of each capacity row
        up       (E,) links that can be used
        """
        distance = np.full((self.nodes, self.nodes), np.inf)
        usable = up[self.arc_edge]
        tail, head = self.arc_tail[usable], self.arc_head[usable]
        np.minimum.at(distance, (tail, head), lengths[self.arc_capacity[usable]])
        np.fill_diagonal(distance, 0.0)
        for via in range(self.nodes):
            np.minimum(distance, distance[:, via, None] + distance[None, via, :], out=distance)
        return distance

    def arc_matrix(self, lengths: Floats, usable: Bools) -> sp.csr_array:
        """Return the least length of arcs (A,) between nodes over links (E,), shape (nodes, nodes)."""
        order = np.argsort(-lengths, kind="stable")
        order = order[usable[self.arc_edge[order]]]
        dense = np.zeros((self.nodes, self.nodes))
        dense[self.arc_tail[order], self.arc_head[order]] = lengths[order]  # the shortest is written last
        return sp.csr_array(dense)

    def reached(self, usable: Bools) -> Bools:
        """Return the nodes that each root reaches over links (E,), shape (K, nodes)."""
        arcs = usable[self.arc_edge]
        graph = sp.csr_array(
            (np.ones(int(arcs.sum())), (self.arc_tail[arcs], self.arc_head[arcs])),
            shape=(self.nodes, self.nodes),
        )
        hops = dijkstra(graph, indices=self.roots, unweighted=True)
        reached: Bools = np.isfinite(hops)
        return reached

    def crosses(self, sets: Bools) -> Bools:
        """Return whether each link leads out of each node set (U, nodes), shape (U, E)."""
        tail, head = sets[:, self.instance.tail], sets[:, self.instance.head]
        crossing: Bools = (tail & ~head) if self.instance.direction == "directed" else (tail != head)
        return crossing

    def demand_crosses(self, sets: Bools) -> Bools:
        """Return whether each demand must leave each node set (U, nodes), shape (U, D)."""
        source, target = sets[:, self.instance.source], sets[:, self.instance.target]
        crossing: Bools = (
            (source != target) if self.instance.direction == "undirected" else (source & ~target)
        )
        return crossing

    def link_matrix(self, values: Floats) -> Floats:
        """Return values of links as a matrix over node pairs, (G, E) to (G, nodes, nodes)."""
        matrix = np.zeros((len(values), self.nodes, self.nodes))
        for row, value in zip(matrix, values, strict=True):
            np.add.at(row, (self.instance.tail, self.instance.head), value)
        return matrix if self.instance.direction == "directed" else matrix + np.swapaxes(matrix, -1, -2)

    def demand_matrix(self, rates: Floats) -> Floats:
        """Return rates of demands as a matrix over node pairs, (G, D) to (G, nodes, nodes)."""
        matrix = np.zeros((len(rates), self.nodes, self.nodes))
        for row, value in zip(matrix, rates, strict=True):
            np.add.at(row, (self.instance.source, self.instance.target), value)
        return matrix + np.swapaxes(matrix, -1, -2) if self.instance.direction == "undirected" else matrix


def _cover_by_few_roots(instance: Instance) -> tuple[Ints, Ints]:
    """Return ends of demands in the order in which few nodes are sources: a greedy vertex cover."""
    source, target = instance.source.copy(), instance.target.copy()
    left = np.ones(len(source), dtype=bool)
    while left.any():
        degree = np.bincount(np.r_[source[left], target[left]], minlength=instance.nodes)
        root = int(degree.argmax())
        turned = left & (target == root)
        source[turned], target[turned] = target[turned], source[turned]
        left &= source != root
    return source, target
