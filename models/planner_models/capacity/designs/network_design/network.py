"""Arcs, commodities and distances of a network with links that carry all demands together."""

from __future__ import annotations

from collections.abc import Iterator
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
    ("bidirected") or of a link ("directed"). A commodity is all traffic of one root, or of one
    demand where they are split.

    arc_tail, arc_head   (A,) ends of each arc
    arc_edge             (A,) link of each arc
    arc_capacity         (A,) capacity row that an arc uses
    capacity_edge        (R,) link of each capacity row
    source, target       (D,) ends of demands, turned such that few roots remain
    roots                (K,) nodes in which demands start
    commodity            (D,) root of each demand, -1 for demands with tunnels
    tunnelled            (P,) demands with tunnels
    """

    def __init__(self, instance: Instance, *, split: bool = False) -> None:
        """Set up the arcs of an instance.

        split  whether each demand is a commodity of its own
        """
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
        self.tunnelled = np.unique(instance.tunnels.demand) if instance.tunnels else np.zeros(0, np.int64)
        is_free = np.ones(len(self.source), dtype=bool)
        is_free[self.tunnelled] = False
        self.commodity = np.full(len(self.source), -1)
        self.roots, self.commodity[is_free] = np.unique(self.source[is_free], return_inverse=True)
        if split:
            self.roots, self.commodity[is_free] = self.source[is_free], np.arange(int(is_free.sum()))

    @property
    def flow_columns(self) -> int:
        """Number of flow variables F: commodity by commodity those of all arcs, then the tunnels."""
        tunnels = self.instance.tunnels
        return len(self.roots) * self.arcs + (0 if tunnels is None else len(tunnels.demand))

    def flow_cost(self, price: Floats) -> Floats:
        """Return the cost of a unit of each flow variable (F,), at a price of each link (E,)."""
        on_arcs = price[self.arc_edge]
        commodities = np.tile(on_arcs, len(self.roots))
        tunnels = self.instance.tunnels
        return commodities if tunnels is None else np.r_[commodities, tunnels.arcs @ on_arcs]

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
        """Flow conservation of all commodities, then of demands with tunnels, shape (K nodes + P, F)."""
        blocks = [self.incidence] * len(self.roots)
        tunnels = self.instance.tunnels
        if tunnels is not None:
            count = len(tunnels.demand)
            row = np.searchsorted(self.tunnelled, tunnels.demand)
            shape = len(self.tunnelled), count
            blocks.append(sp.csr_array((np.ones(count), (row, np.arange(count))), shape=shape))
        return sp.block_diag(blocks, format="csr")

    @cached_property
    def load(self) -> sp.csr_array:
        """Load of each capacity row by all flow variables, shape (R, F)."""
        arcs_of = sp.csr_array(
            (np.ones(self.arcs), (self.arc_capacity, np.arange(self.arcs))),
            shape=(self.capacities, self.arcs),
        )
        tunnels = self.instance.tunnels
        parts = [arcs_of] * len(self.roots) + ([] if tunnels is None else [arcs_of @ tunnels.arcs.T])
        return sp.csr_array(sp.hstack(parts))

    @cached_property
    def supply(self) -> sp.csr_array:
        """Right-hand side of `conservation` per unit of each demand, shape (K nodes + P, D)."""
        demands = np.flatnonzero(self.commodity >= 0)
        ones = np.ones(len(demands))
        base = self.commodity[demands] * self.nodes
        ends = np.r_[base + self.source[demands], base + self.target[demands]]
        free = sp.csr_array(
            (np.r_[ones, -ones], (ends, np.r_[demands, demands])),
            shape=(len(self.roots) * self.nodes, len(self.source)),
        )
        if not len(self.tunnelled):
            return free
        count = len(self.tunnelled)
        bound = sp.csr_array(
            (np.ones(count), (np.arange(count), self.tunnelled)), shape=(count, len(self.source))
        )
        return sp.csr_array(sp.vstack([free, bound]))

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

    def detours(self, lengths: Floats, usable: Bools) -> Floats:
        """Return the detours of paths from each root by way of each arc, (K, A), inf without a path.

        lengths  (R,) of each capacity row
        usable   (E,) links that can be used
        """
        distance = self.distances(lengths, usable)[self.roots]
        along = distance[:, self.arc_tail] + lengths[self.arc_capacity]
        to_head = distance[:, self.arc_head]
        is_reached = usable[self.arc_edge] & np.isfinite(along) & np.isfinite(to_head)
        detours: Floats = np.full(along.shape, np.inf)
        detours[is_reached] = along[is_reached] - to_head[is_reached]
        return detours

    def demand_distances(self, lengths: Floats, up: Bools) -> Floats:
        """Return the length of the shortest path of each demand (D,), inf where it has none.

        lengths  (R,) of each capacity row
        up       (E,) links that can be used
        """
        distance: Floats = self.distances(lengths, up)[self.source, self.target]
        if self.instance.tunnels is not None:
            distance[self.tunnelled] = np.inf
            along = self.tunnel_lengths(lengths[self.arc_capacity], up)
            np.minimum.at(distance, self.instance.tunnels.demand, along)
        return distance

    def tunnel_lengths(self, lengths: Floats, up: Bools) -> Floats:
        """Return the length of each tunnel (T,) at lengths of arcs (A,), inf where a link is not up (E,)."""
        assert self.instance.tunnels is not None
        arcs = self.instance.tunnels.arcs
        missing: Floats = arcs @ (~up[self.arc_edge]).astype(float)
        return np.where(missing > 0, np.inf, arcs @ lengths)

    def unreached(self, usable: Bools, up: Bools) -> Iterator[tuple[int, Bools]]:
        """Yield each demand without a path over usable links (E,), and links of which it needs one more (E,).

        up  (E,) links that work
        """
        reached = self.reached(usable & up)
        free = np.flatnonzero(self.commodity >= 0)
        for demand in free[~reached[self.commodity[free], self.target[free]]].tolist():
            yield demand, self.crosses(reached[self.commodity[demand]][None, :])[0] & up
        tunnels = self.instance.tunnels
        if tunnels is None:
            return
        missing = tunnels.arcs @ (~usable[self.arc_edge]).astype(float)
        works = np.isfinite(self.tunnel_lengths(np.zeros(self.arcs), up))
        for demand in np.setdiff1d(self.tunnelled, tunnels.demand[works & (missing == 0)]).tolist():
            tunnel_rows = np.flatnonzero(works & (tunnels.demand == demand))
            used = self.arc_edge[np.unique(tunnels.arcs[tunnel_rows].indices)]
            needed = np.zeros(self.instance.edges, dtype=bool)
            needed[used] = True
            yield demand, needed & ~usable

    def cheapest_links(self, demand: int, price: Floats, usable: Bools) -> Ints:
        """Return the links of the path of a demand with the least price of arcs (A,) over links (E,)."""
        tunnels = self.instance.tunnels
        if self.commodity[demand] < 0:
            assert tunnels is not None
            along = np.where(tunnels.demand == demand, self.tunnel_lengths(price, usable), np.inf)
            best = int(np.argmin(along))
            none: Ints = np.zeros(0, dtype=np.int64)
            return self.arc_edge[tunnels.arcs[[best]].indices] if np.isfinite(along[best]) else none
        graph = self.arc_matrix(price, usable)
        root, node = int(self.source[demand]), int(self.target[demand])
        before = dijkstra(graph, indices=root, return_predecessors=True)[1]
        links = []
        while node != root and before[node] >= 0:
            tail, head = int(before[node]), node
            arcs = (self.arc_tail == tail) & (self.arc_head == head) & usable[self.arc_edge]
            links.append(int(self.arc_edge[np.flatnonzero(arcs)[price[arcs].argmin()]]))
            node = tail
        return np.array(links, dtype=np.int64)

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
        if not len(self.roots):
            return np.zeros((0, self.nodes), dtype=bool)
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
    remaining = np.ones(len(source), dtype=bool)
    while remaining.any():
        degree = np.bincount(np.r_[source[remaining], target[remaining]], minlength=instance.nodes)
        root = int(degree.argmax())
        turned = remaining & (target == root)
        source[turned], target[turned] = target[turned], source[turned]
        remaining &= source != root
    return source, target
