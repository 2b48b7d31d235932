"""Nodes, links and duplex lines of a network, and their names.

A duplex line is a link and its opposite, which are upgraded and lost together. Users write names of elements
with patterns: a->b, a<->b#2, core*.
"""

from __future__ import annotations

import fnmatch
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from planner.arrays import Floats, Ints
from planner.errors import did_you_mean

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


class ElementNames:
    """Find links and nodes by their names, and record the faults in the names.

    faults    one line for each name that matches nothing
    has_down  whether names of links that are down, `TrafficTables.down`, match too, with no row
    """

    def __init__(self, problem: TrafficTables, *, has_down: bool = False) -> None:
        self._problem = problem
        self._has_down = has_down
        self.faults: list[str] = []

    def match_links(self, name: str, where: str) -> Ints:
        """Return the links that match `tail->head` or `tail<->head`; record a fault where none does."""
        if name in self._rows_by_line:
            return self._rows_by_line[name]
        patterns = _expand_directions(name)
        if not patterns:
            self.faults.append(f"{where}: '{name}' is no link, write tail->head or tail<->head")
            return np.zeros(0, dtype=np.int64)
        rows = self._links_named(patterns)
        if not rows:
            name_sets = self._link_names, self._numbered_names
            rows = {
                row for pattern in patterns for names in name_sets for row in _match_names(names, pattern)
            }
        if not rows and not self._are_down(patterns):
            near = did_you_mean(patterns[0], self._problem.link_labels)
            self.faults.append(f"{where}: '{name}' matches no link" + near)
        return np.array(sorted(rows), dtype=np.int64)

    def is_exact(self, name: str) -> bool:
        """Return whether links have exactly this name, so that it is no pattern."""
        return name in self._rows_by_line or bool(self._links_named(_expand_directions(name)))

    def _links_named(self, names: Sequence[str]) -> set[int]:
        return {row for name in names for row in self._rows_by_name.get(name, ())}

    def _are_down(self, patterns: Sequence[str]) -> bool:
        """Return whether links that are down match one of the names."""
        down = self._problem.down if self._has_down else None
        if down is None:
            return False
        ends = [f"{tail}->{head}" for tail, head in zip(down["tail"], down["head"], strict=True)]
        numbers = np.maximum(down["parallel"].to_numpy(int), 1)  # 0: there are no others
        numbered = [f"{name}#{number}" for name, number in zip(ends, numbers, strict=True)]
        return any(_match_names(names, pattern) for names in (ends, numbered) for pattern in patterns)

    @cached_property
    def _rows_by_line(self) -> dict[str, Ints]:
        """The links of each line with a name that no other line has."""
        lines = DuplexLines.group(self._problem, both_ways=True)
        rows = np.split(np.argsort(lines.of_link, kind="stable"), np.cumsum(np.bincount(lines.of_link))[:-1])
        return {lines.names[line]: rows[line] for line in lines.unique}

    @cached_property
    def _rows_by_name(self) -> dict[str, list[int]]:
        """The links of each name, with and without their number."""
        rows: dict[str, list[int]] = {}
        for names in (self._link_names, self._numbered_names):
            for row, name in enumerate(names):
                rows.setdefault(name, []).append(row)
        return rows

    def match_nodes(self, name: str, where: str) -> Ints:
        """Return the node of that name, or the nodes that match it; record a fault where none does."""
        nodes = self._problem.nodes["node"].tolist()
        rows = [nodes.index(name)] if name in nodes else _match_names(nodes, name)
        if not rows:
            self.faults.append(f"{where}: '{name}' matches no node" + did_you_mean(name, nodes))
        return np.array(rows, dtype=np.int64)

    @cached_property
    def _numbered_names(self) -> list[str]:
        numbers = self._problem.parallel
        return [f"{name}#{number}" for name, number in zip(self._link_names, numbers, strict=True)]

    @cached_property
    def _link_names(self) -> list[str]:
        links = self._problem.links
        return [f"{tail}->{head}" for tail, head in zip(links["tail"], links["head"], strict=True)]


def _expand_directions(name: str) -> list[str]:
    """Return `tail->head` as it is, both directions of `tail<->head`, or nothing for other names."""
    if "<->" in name:
        tail, _, remainder = name.partition("<->")
        head, separator, number = remainder.partition("#")
        return [f"{tail}->{remainder}", f"{head}->{tail}{separator}{number}"]
    return [name] if "->" in name else []


def _match_names(names: Sequence[str], pattern: str) -> list[int]:
    return [row for row, name in enumerate(names) if fnmatch.fnmatchcase(name, pattern)]
