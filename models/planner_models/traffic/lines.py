"""Lines: links that are upgraded and lost together, and what the loss of one cuts off."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import dijkstra

from planner_models.traffic.problem import Traffic, totals


@dataclass(frozen=True, kw_only=True, eq=False)
class Lines:
    """Links that are upgraded and lost together.

    of_link  (E,) the line of each link
    names    of each of the L lines: its link's, with <-> where it is both ways
    """

    of_link: NDArray[np.int64]
    names: list[str]

    @classmethod
    def of(cls, problem: Traffic, both_ways: bool) -> Lines:
        """Each link with the one back that has the same number among parallel ones, or each link alone."""
        if not both_ways:
            return cls(of_link=np.arange(len(problem.links)), names=problem.link_labels)
        ends = [np.minimum(problem.tail, problem.head), np.maximum(problem.tail, problem.head)]
        _, first, line = np.unique(
            np.stack([*ends, problem.parallel]), axis=1, return_index=True, return_inverse=True
        )
        alone = np.bincount(line)[np.arange(len(first))] == 1
        labels = [problem.link_labels[link] for link in first]
        names = [
            label if one_way else label.replace("->", "<->", 1)
            for label, one_way in zip(labels, alone, strict=True)
        ]
        return cls(of_link=line.ravel().astype(np.int64), names=names)

    def total(self, of_links: NDArray[np.float64]) -> NDArray[np.float64]:
        """(L,) the sum over each line's links; `of_links` is (E,)."""
        return totals(self.of_link, of_links, len(self.names))

    def busiest(self, of_links: NDArray[np.float64]) -> NDArray[np.float64]:
        """(L,) the largest over each line's links; `of_links` is (E,), at least 0."""
        busiest = np.zeros(len(self.names))
        np.maximum.at(busiest, self.of_link, of_links)
        return busiest


def may_cut(problem: Traffic, lines: Lines, loaded: NDArray[np.int64]) -> list[int]:
    """The lines whose loss could leave a demand without a path."""
    ends = set(zip(problem.tail.tolist(), problem.head.tolist(), strict=True))
    wanted: list[int] = loaded.tolist()
    if any((head, tail) not in ends for tail, head in ends):
        return wanted
    # where every link has one back, a path is lost only with a bridge of the undirected network
    import networkx as nx  # only where losses are tried

    graph = nx.MultiGraph()
    graph.add_nodes_from(range(len(problem.nodes)))
    pairs = zip(problem.tail.tolist(), problem.head.tolist(), problem.parallel.tolist(), strict=True)
    graph.add_edges_from({(min(a, b), max(a, b), number) for a, b, number in pairs})
    bridges = {frozenset(pair) for pair in nx.bridges(graph)}
    links = zip(problem.tail.tolist(), problem.head.tolist(), lines.of_link.tolist(), strict=True)
    return sorted({line for a, b, line in links if frozenset((a, b)) in bridges} & set(wanted))


def cut_off(problem: Traffic, kept: NDArray[np.bool_]) -> tuple[int, float]:
    """How many demands have no path over the links that are kept, and their rate in Mbit/s."""
    count = len(problem.nodes)
    graph = sp.csr_array(
        (np.ones(int(kept.sum())), (problem.head[kept], problem.tail[kept])), shape=(count, count)
    )
    wanted = problem.rate_mbps > 0
    reach = dijkstra(graph, indices=problem.targets, unweighted=True)
    row = np.searchsorted(problem.targets, problem.target[wanted])
    lost = np.isinf(reach[row, problem.source[wanted]])
    return int(lost.sum()), float(problem.rate_mbps[wanted][lost].sum())
