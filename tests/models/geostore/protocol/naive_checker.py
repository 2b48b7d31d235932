"""Checker of histories without counters, from the words of its rules: what precedes what is a graph."""

from __future__ import annotations

from collections.abc import Iterator

import networkx as nx
import numpy as np

from planner_models.geostore.protocol import checker
from planner_models.geostore.protocol.cluster import Cluster
from planner_models.geostore.protocol.history import History
from planner_models.geostore.protocol.state import EMPTY, NONE, READ, TRANSACTION


class NaiveChecker:
    """Finds the operations of a history that breach each rule."""

    def __init__(self, cluster: Cluster, history: History) -> None:
        self.cluster, self.history, self.operations = cluster, history, history.operations
        rows = zip(self.operations.first[:-1], self.operations.first[1:], strict=True)
        self.items = [range(start, end) for start, end in rows]
        self.precedes = self.find_order()

    def find_order(self) -> nx.DiGraph:
        """Return a graph from each operation and written item to what it follows directly."""
        graph, last = nx.DiGraph(), dict[int, tuple[str, int]]()
        spans, kind = self.history.spans_ms, self.operations.kind
        for operation in np.argsort(np.where(kind == READ, spans[:, 1], spans[:, 0]), kind="stable"):
            node, client = ("operation", int(operation)), int(self.operations.client[operation])
            before = last.get(client)
            graph.add_node(node)
            if before is not None:
                graph.add_edge(node, before)
            for item in self.items[operation]:
                if kind[operation] != READ:
                    graph.add_edge(node, ("item", item))
                    if before is not None:
                        graph.add_edge(("item", item), before)
                    if kind[operation] == TRANSACTION:
                        others = [other for other in self.items[operation] if other != item]
                        graph.add_edges_from((("item", item), ("item", other)) for other in others)
                elif self.history.value[item] >= 0:
                    graph.add_edge(node, ("item", int(self.history.value[item])))
            last[client] = node
        return graph

    def past(self, node: tuple[str, int]) -> set[int]:
        """Return the written items that an operation or an item follows."""
        return {number for kind, number in nx.descendants(self.precedes, node) if kind == "item"}

    def shown(self, home: int, key: int, time: int) -> int:
        """Return the newest item of a key that is visible in a datacenter at a logical time, or NONE."""
        written = [
            item
            for operation, items in enumerate(self.items)
            if self.operations.kind[operation] != READ
            for item in items
            if self.operations.key[item] == key and 0 < self.history.evt[home, item] <= time
        ]
        return max(written, key=lambda item: int(self.history.stamp[item]), default=NONE)

    def stamp(self, item: int) -> int:
        """Return the stamp of an item, 0 of none."""
        return 0 if item < 0 else int(self.history.stamp[item])

    def rules_of_read(self, operation: int) -> Iterator[int]:
        """Yield the rules that a read breaches."""
        key, value = self.operations.key, self.history.value
        read = [item for item in self.items[operation] if value[item] != EMPTY]
        home = self.cluster.home[self.operations.datacenter[self.operations.client[operation]]]
        if len(read) < len(self.items[operation]):
            yield checker.IS_EMPTY
        times = [0, *self.history.evt.ravel().tolist()]
        if not any(all(self.shown(home[key[i]], key[i], time) == value[i] for i in read) for time in times):
            yield checker.NO_TIME
        before = set[int]()
        for kind, number in self.precedes.successors(("operation", operation)):
            if kind == "operation":
                before |= self.past((kind, number))
        follows = set[int]()
        for item in read:
            if value[item] >= 0:
                follows |= {int(value[item])} | self.past(("item", int(value[item])))
        for rule, items in ((checker.GOES_BACK, before), (checker.NOT_CAUSAL, follows)):
            if any(key[i] == key[w] and self.stamp(value[i]) < self.stamp(w) for i in read for w in items):
                yield rule

    def rules_of_write(self, operation: int) -> Iterator[int]:
        """Yield the rules that a write breaches."""
        cluster, evt, key = self.cluster, self.history.evt, self.operations.key
        places = [
            (int(d), item)
            for item in self.items[operation]
            for d in np.flatnonzero(cluster.present[:, key[item]])
        ]
        if any(evt[place] == 0 for place in places):
            yield checker.NOT_VISIBLE
        for datacenter, item in places:
            for other in {item} | self.past(("item", item)):
                home = cluster.home[datacenter, key[other]]
                newest = self.shown(home, key[other], evt[datacenter, item])
                if self.stamp(newest) < self.stamp(other):
                    yield checker.OUT_OF_ORDER
                    return

    def count(self) -> list[int]:
        """Return the number of operations that breach each rule."""
        result = [0] * len(checker.RULES)
        for operation, kind in enumerate(self.operations.kind):
            rules = self.rules_of_read(operation) if kind == READ else self.rules_of_write(operation)
            for rule in rules:
                result[rule] += 1
        return result
