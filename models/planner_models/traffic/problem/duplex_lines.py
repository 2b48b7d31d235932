"""Duplex lines: a link and its opposite, which are upgraded and lost together."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from planner.arrays import Floats, Ints

if TYPE_CHECKING:
    from planner_models.traffic.problem.tables import TrafficTables


@dataclass(frozen=True, kw_only=True, eq=False)
class DuplexLines:
    """Groups of links that are upgraded and lost together.

    of_link  (E,) line of each link
    names    of each of the L lines, as parameters that name links take them, such as `fail_links`:
             tail<->head, tail->head where it has one direction, #1 and so on where it is one of several
    """

    of_link: Ints
    names: list[str]

    @classmethod
    def group(cls, problem: TrafficTables, *, both_ways: bool) -> DuplexLines:
        """Group each link with the opposite one of the same parallel number; else each link alone."""
        first = line = np.arange(len(problem.links))
        if both_ways:
            first, line = pair_links(problem)
        count = len(first)
        has_both = np.bincount(line, minlength=count) > 1
        numbered = np.zeros(count, dtype=bool)
        np.logical_or.at(numbered, line, problem.is_parallel)
        tail, head = (problem.links[end].astype(str).to_numpy()[first] for end in ("tail", "head"))
        number = problem.parallel[first]
        names = [
            f"{start}{'<->' if both else '->'}{other}" + (f"#{k}" if several else "")
            for start, other, both, several, k in zip(tail, head, has_both, numbered, number, strict=True)
        ]
        return cls(of_link=line, names=names)

    @property
    def unique(self) -> list[int]:
        """The lines with a name that no other line has."""
        count = Counter(self.names)
        return [line for line, name in enumerate(self.names) if count[name] == 1]

    def sum_over_links(self, of_links: Floats) -> Floats:
        """Return the sum over each line's links, shape (L,), of values per link, (E,)."""
        return np.bincount(self.of_link, weights=of_links, minlength=len(self.names)).astype(
            float, copy=False
        )

    def max_over_links(self, of_links: Floats) -> Floats:
        """Return the largest value of each line's links, shape (L,); values, (E,), are at least 0."""
        largest = np.zeros(len(self.names))
        np.maximum.at(largest, self.of_link, of_links)
        return largest


def pair_links(problem: TrafficTables) -> tuple[Ints, Ints]:
    """Return the first link of each line, (L,), and the line of each link, (E,).

    A line is a link and the opposite one of the same parallel number.
    """
    ends = [np.minimum(problem.tail, problem.head), np.maximum(problem.tail, problem.head)]
    _, first, line = np.unique(
        np.stack([*ends, problem.parallel]), axis=1, return_index=True, return_inverse=True
    )
    return first, line.ravel().astype(np.int64)


def lines_that_may_disconnect(problem: TrafficTables, lines: DuplexLines, candidates: Ints) -> list[int]:
    """Return those of the candidate lines that may leave a demand without a path when they are lost.

    Where every link has an opposite, only bridges of the undirected network can.
    """
    ends = set(zip(problem.tail.tolist(), problem.head.tolist(), strict=True))
    among: list[int] = candidates.tolist()
    if any((head, tail) not in ends for tail, head in ends):
        return among
    import networkx as nx  # imported only where losses are tried

    graph = nx.MultiGraph()
    graph.add_nodes_from(range(len(problem.nodes)))
    pairs = zip(problem.tail.tolist(), problem.head.tolist(), problem.parallel.tolist(), strict=True)
    graph.add_edges_from({(min(a, b), max(a, b), number) for a, b, number in pairs})
    bridges = {frozenset(pair) for pair in nx.bridges(graph)}
    links = zip(problem.tail.tolist(), problem.head.tolist(), lines.of_link.tolist(), strict=True)
    return sorted({line for a, b, line in links if frozenset((a, b)) in bridges} & set(among))
