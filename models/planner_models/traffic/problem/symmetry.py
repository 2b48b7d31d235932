"""Symmetry of a network: whether nodes at the same distance are equally good on the way to a target.

A network is symmetric for a source and a target if all nodes on their shortest paths that are at the same
distance from the source have the same capacity towards the target, on links of shortest paths.

source  Sen et al. 2013 (LocalFlow), Definition 1
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from planner.arrays import Bools, Floats, Ints
from planner.search.tolerances import NEGLIGIBLE
from planner_models.graphs.indexing import sum_by_index
from planner_models.traffic.problem.problem import Traffic

CAPACITY_TOLERANCE: Final = 1e-6  # relative difference of capacities that count as equal


@dataclass(frozen=True, kw_only=True)
class Asymmetry:
    """Demands for which a network is not symmetric.

    demands  their number
    first    the first of them
    node     a node on its shortest paths with less capacity towards the target than `other`
    other    a node at the same distance from the source
    ratio    of their capacities, less than 1
    """

    demands: int
    first: int
    node: int
    other: int
    ratio: float


def find_asymmetry(problem: Traffic) -> Asymmetry | None:
    """Return the demands for which the network is not symmetric; None where it is for all of them."""
    broken = np.zeros(len(problem.demands), bool)
    for row, target in enumerate(problem.targets.tolist()):
        demands = np.flatnonzero((problem.target == target) & (problem.rate_mbps > 0))
        towards = _Layers(problem, problem.distance[row])
        smallest, largest = towards.capacity_range()
        uneven = np.asarray((smallest < largest * (1 - CAPACITY_TOLERANCE)).any(axis=1))
        broken[demands] = uneven[problem.source[demands]]
    if not broken.any():
        return None
    first = int(np.argmax(broken))
    node, other, ratio = _compare_nodes(problem, first)
    return Asymmetry(demands=int(broken.sum()), first=first, node=node, other=other, ratio=ratio)


def describe_asymmetry(problem: Traffic) -> str:
    """Return in words for which demands the network is not symmetric; "" where it is for all."""
    asymmetry = find_asymmetry(problem)
    if asymmetry is None:
        return ""
    names, label = problem.nodes["node"].tolist(), problem.demand_labels[asymmetry.first]
    total = int((problem.rate_mbps > 0).sum())
    return (
        f"the network is not symmetric for {asymmetry.demands:,} of {total:,} demands (Sen et al. 2013, "
        f"Definition 1), so that its plan may be worse than the optimum; the first is {label}: towards its "
        f"target {names[asymmetry.node]} has {asymmetry.ratio:.3g} times the capacity of "
        f"{names[asymmetry.other]}, which is as far from its source"
    )


class _Layers:
    """Links on shortest paths to one target, and nodes by their distance from it.

    tail, head  (P,) ends of these links
    capacity    (N,) of these links out of each node
    layer       (N,) rank of its distance from the target, which is the first; -1 without a path
    """

    def __init__(self, problem: Traffic, distance: Floats) -> None:
        """Find the links by which shortest paths to a target go, whose distances are (N,)."""
        through = distance[problem.head] + problem.weight
        here = distance[problem.tail]
        on_path = np.isfinite(here) & (here > 0) & (through <= here * (1 + NEGLIGIBLE))
        self.tail, self.head = problem.tail[on_path], problem.head[on_path]
        self.capacity = sum_by_index(self.tail, problem.capacity_mbps[on_path], len(problem.nodes))
        self.layer = np.full(len(distance), -1, np.int64)
        reached = np.flatnonzero(np.isfinite(distance))
        ordered = reached[np.argsort(distance[reached], kind="stable")]
        steps = np.diff(distance[ordered], prepend=distance[ordered][:1])
        self.layer[ordered] = np.cumsum(steps > NEGLIGIBLE * distance[ordered])

    def capacity_range(self) -> tuple[Floats, Floats]:
        """Return the smallest and the largest capacity in each layer of the shortest paths from each node.

        returns  two arrays (N, layers); a layer that paths from a node skip has inf and -inf
        """
        shape = (len(self.layer), int(self.layer.max()) + 1)
        smallest, largest = np.full(shape, np.inf), np.full(shape, -np.inf)
        has_way = self.capacity > 0
        node = np.flatnonzero(has_way)
        smallest[node, self.layer[node]] = largest[node, self.layer[node]] = self.capacity[node]
        order = np.argsort(self.layer[self.tail], kind="stable")
        tail, head = self.tail[order], self.head[order]
        ends = np.searchsorted(self.layer[tail], np.arange(shape[1] + 1))
        for first, last in zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True):
            links = slice(first, last)
            np.minimum.at(smallest, tail[links], smallest[head[links]])
            np.maximum.at(largest, tail[links], largest[head[links]])
        return smallest, largest

    def nodes_from(self, source: int) -> Bools:
        """Return the nodes on shortest paths from a node to the target, (N,)."""
        on_path = np.zeros(len(self.layer), bool)
        on_path[source] = True
        for layer in range(int(self.layer[source]), 0, -1):
            leaving = on_path[self.tail] & (self.layer[self.tail] == layer)
            on_path[self.head[leaving]] = True
        return on_path


def _compare_nodes(problem: Traffic, demand: int) -> tuple[int, int, float]:
    """Return two nodes of a demand's shortest paths with different capacity, and the ratio.

    They are at the same distance from the source, the smallest with such nodes.
    """
    row = int(problem.target_row[demand])
    towards = _Layers(problem, problem.distance[row])
    on_path = np.flatnonzero(towards.nodes_from(int(problem.source[demand])) & (towards.capacity > 0))
    for layer in np.unique(towards.layer[on_path])[::-1].tolist():
        nodes: Ints = on_path[towards.layer[on_path] == layer]
        capacity = towards.capacity[nodes]
        if capacity.min() < capacity.max() * (1 - CAPACITY_TOLERANCE):
            low, high = int(nodes[capacity.argmin()]), int(nodes[capacity.argmax()])
            return low, high, float(capacity.min() / capacity.max())
    raise AssertionError("a demand without symmetry has two nodes that differ")
