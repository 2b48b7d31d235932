"""The trees that are columns, in slots that are used again: no tree moves when others leave."""

from __future__ import annotations

import numpy as np

from planner.arrays import Floats, Ints, Ints32
from planner_models.graphs import shortest_path_trees
from planner_models.graphs.shortest_path_trees import Graph


class TreePool:
    """Trees with the traffic on them.

    parent  (C, N) int32 arc by which each node leaves, -1 for none; flow (C, N) traffic on that arc
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.parent = np.empty((0, graph.nodes), dtype=np.int32)
        self.flow = np.empty((0, graph.nodes))
        self._free = np.zeros(0, dtype=np.int64)

    def add(self, parent: Ints32, flow: Floats) -> Ints:
        """Keep trees, (P, N), with their flows as of `tree_flows`; return their slots, (P,)."""
        if len(parent) > len(self._free):
            self._extend(2 * len(parent))
        slot, self._free = self._free[: len(parent)], self._free[len(parent) :]
        self.parent[slot], self.flow[slot] = parent, flow
        return slot

    def _extend(self, more: int) -> None:
        """Allocate more slots; memory that no tree has used yet costs nothing."""
        size, nodes = self.parent.shape
        former = self.parent, self.flow
        self.parent = np.empty((size + more, nodes), dtype=np.int32)
        self.flow = np.empty((size + more, nodes))
        self.parent[:size], self.flow[:size] = former
        self._free = np.concatenate([self._free, np.arange(size, size + more)])

    def remove(self, slot: Ints) -> None:
        """Free slots."""
        self._free = np.concatenate([slot, self._free])

    def loads(self, slot: Ints, arcs: Ints) -> Floats:
        """Return the load of each tree on each of `arcs`, shape (P, arcs)."""
        return shortest_path_trees.tree_loads(self.graph, self.parent, self.flow, arcs, slot)

    def weighted_load(self, slot: Ints, weight: Floats) -> Floats:
        """Return the sum over trees of weight times load, shape (A,)."""
        return shortest_path_trees.weighted_load(self.graph, self.parent, self.flow, weight, slot)
