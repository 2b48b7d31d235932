"""The links of a network that are up, as arrays, and the nodes where traffic may end."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd
import scipy.sparse as sp

from planner.arrays import Floats, Ints
from planner_models.flows import split_ratios
from planner_models.graphs.distances import find_distances
from planner_models.graphs.shortest_path_trees import Graph


@dataclass(frozen=True, kw_only=True, eq=False)
class Network:
    """N nodes and E links, all with capacity, and T targets.

    nodes, links  tables
    tail, head    (E,) nodes by row
    targets       (T,) nodes by row, ascending
    """

    nodes: pd.DataFrame
    links: pd.DataFrame
    tail: Ints
    head: Ints
    targets: Ints

    @classmethod
    def of(
        cls, *, nodes: pd.DataFrame, links: pd.DataFrame, tail: Ints, head: Ints, targets: Ints
    ) -> Network:
        """Return the network of these tables and arrays."""
        return cls(nodes=nodes, links=links, tail=tail, head=head, targets=targets.astype(np.int64))

    @cached_property
    def capacity(self) -> Floats:
        """(E,) Mbit/s."""
        return self.links["capacity_mbps"].to_numpy(float)

    @cached_property
    def latency(self) -> Floats:
        """(E,) delay of the idle link, ms."""
        return self.links["latency_ms"].to_numpy(float)

    @cached_property
    def weight(self) -> Floats:
        """(E,) routing metric."""
        return self.links["weight"].to_numpy(float)

    @cached_property
    def price(self) -> Floats:
        """(E,) factor of the link's congestion in the cost of the network."""
        return self.links["cost"].to_numpy(float)

    @cached_property
    def graph(self) -> Graph:
        """The links as a graph."""
        return Graph.of(len(self.nodes), self.tail, self.head)

    @cached_property
    def distance(self) -> Floats:
        """(T, N) weight of the shortest path from each node to each target; inf without one."""
        count = len(self.nodes)
        if not len(self.tail):
            distance = np.full((len(self.targets), count), np.inf)
            distance[np.arange(len(self.targets)), self.targets] = 0.0
            return distance
        order = np.lexsort((self.weight, self.head, self.tail))
        tail, head, weight = self.tail[order], self.head[order], self.weight[order]
        is_first = np.concatenate([[True], (np.diff(tail) != 0) | (np.diff(head) != 0)])
        matrix = sp.csr_array((weight[is_first], (tail[is_first], head[is_first])), shape=(count, count))
        return find_distances(matrix, self.targets)

    @cached_property
    def first_paths(self) -> sp.coo_array:
        """(T, E) share 1 of the first link of the shortest path from each node to each target."""
        return split_ratios.take_first_link(self, split_ratios.shortest_path_links(self))

    def carry(self, ratios: sp.coo_array, traffic: Floats) -> Floats:
        """Return the load, (E,), of (T, N) traffic to targets from nodes on splits without cycles, (T, E)."""
        count = len(self.nodes)
        out = sp.csr_array(
            (np.ones(len(self.tail)), (self.tail, np.arange(len(self.tail)))), shape=(count, len(self.tail))
        )
        into = sp.csr_array(
            (np.ones(len(self.tail)), (np.arange(len(self.tail)), self.head)), shape=(len(self.tail), count)
        )
        share, moving = sp.csr_array(ratios), sp.csr_array(traffic)
        load = np.zeros(len(self.tail))
        for _ in range(count):
            on_link = sp.csr_array((moving @ out).multiply(share))
            if not on_link.nnz:
                break
            load += np.asarray(on_link.sum(axis=0))
            moving = sp.csr_array(on_link @ into)
        return load
