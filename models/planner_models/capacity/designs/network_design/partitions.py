"""Separation of partition rows: facets of the small network that remains when node sets become nodes.

Each part of a partition becomes a node, and the links between two parts one link with the modules of all. The
modules bought must lie in the convex hull of the whole points that satisfy every cut of the small network. A
row that cuts a point off this hull is found by linear programming over whole points, which an integer program
generates (local cuts: Applegate, Bixby, Chvatal and Cook 2001). Cuts alone are not enough for five parts and
more; the rows are valid all the same.

Reference: Agarwal, "k-Partition-based facets of the network design problem", Networks 47, 2006.
"""

from __future__ import annotations

import highspy
import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from planner.search.deadline import Deadline
from planner_models.capacity.designs.network_design.cutsets import CutsetSeparator
from planner_models.capacity.designs.network_design.instance import Instance
from planner_models.capacity.designs.network_design.master import Master
from planner_models.capacity.designs.network_design.network import Floats, Ints, Network

MAX_PARTS = 5
MAX_KINDS = 40
"""Most variables of a small network; larger ones are left out."""

MAX_POINTS = 60
"""Whole points that one separation of one partition generates."""

MAX_CALLS = 200
"""Integer programs of small networks in one round."""

MAX_PARTITIONS = 60
"""Partitions that are tried in one round."""

TREE_RUNS = 6
"""Partitions that one round tries for rows that count links."""

TREE_VIOLATION = 0.02

MIN_VIOLATION = 1e-3
"""Violation of a row scaled to right-hand side 1 from which it is added."""


class _SmallNetwork:
    """The small network of one partition, in one variable per pair of parts and module size."""

    def __init__(self, instance: Instance, labels: Ints) -> None:
        parts = int(labels.max()) + 1
        tail, head = labels[instance.tail], labels[instance.head]
        source, target = labels[instance.source], labels[instance.target]
        if instance.direction == "undirected":
            source, target = np.minimum(source, target), np.maximum(source, target)
        pair = tail * parts + head
        if instance.direction != "directed":
            pair = np.minimum(tail, head) * parts + np.maximum(tail, head)
        self.links = tail != head
        kinds = self.links[instance.module_edge]
        self.modules = np.flatnonzero(kinds)
        edge = instance.module_edge[self.modules]
        keys = np.column_stack([pair[edge], np.round(instance.module_size[self.modules], 9)])
        unique, self.kind = np.unique(keys, axis=0, return_inverse=True)
        self.size, self.pairs = unique[:, 1], unique[:, 0].astype(int)
        self.count = len(unique)
        self.limit = np.zeros(self.count)
        np.add.at(self.limit, self.kind, instance.module_limit[self.modules])
        rows, rhs = [], []
        directed = instance.direction != "undirected"
        first, second = self.pairs // parts, self.pairs % parts
        one_way = instance.direction == "directed"
        for number in range(1, 2**parts - 1 if directed else 2 ** (parts - 1)):
            side = (number >> np.arange(parts)) & 1 == 1
            if one_way:
                over, across = side[first] & ~side[second], side[tail] & ~side[head]
            else:
                over, across = side[first] != side[second], side[tail] != side[head]
            needed = side[source] & ~side[target] if directed else side[source] != side[target]
            need = float(instance.rate[needed].sum() - instance.installed[across].sum())
            if need > 1e-9:
                rows.append(self.size * over)
                rhs.append(need)
        self.rows, self.rhs = np.array(rows), np.array(rhs)
        self.points: list[Floats] = []
        self.fruitless = 0
        self._oracle: highspy.Highs | None = None

    def aggregate(self, counts: Floats) -> Floats:
        """Return the modules of each kind, (M,) to (kinds,)."""
        total = np.zeros(self.count)
        np.add.at(total, self.kind, counts[self.modules])
        return total

    def cheapest(self, price: Floats) -> Floats | None:
        """Return the cheapest whole point that satisfies every cut."""
        if self._oracle is None:
            self._oracle = highs = highspy.Highs()
            highs.setOptionValue("output_flag", False)
            highs.setOptionValue("threads", 1)
            highs.setOptionValue("mip_rel_gap", 0.0)
            highs.setOptionValue("mip_max_nodes", 2000)
            for limit_of in self.limit:
                highs.addVar(0.0, float(limit_of))
            columns = np.arange(self.count, dtype=np.int32)
            for row, need in zip(self.rows, self.rhs, strict=True):
                used = columns[row > 0]
                highs.addRow(need - 1e-7 * max(1.0, need), np.inf, len(used), used, row[used])
            highs.changeColsIntegrality(
                self.count, columns, np.full(self.count, highspy.HighsVarType.kInteger)
            )
        highs = self._oracle
        highs.changeColsCost(self.count, np.arange(self.count, dtype=np.int32), price)
        highs.run()
        if highs.getModelStatus() != highspy.HighsModelStatus.kOptimal:
            return None
        return np.round(np.array(highs.getSolution().col_value))

    def separate(self, point: Floats) -> tuple[Floats, float] | None:
        """Return a row `price x >= 1` that a point (kinds,) violates most; None where none is found."""
        program = highspy.Highs()
        program.setOptionValue("output_flag", False)
        for _ in range(self.count):
            program.addVar(0.0, np.inf)
        columns = np.arange(self.count, dtype=np.int32)
        program.changeColsCost(self.count, columns, point + 1e-7)
        if not self.points:
            first = self.cheapest(np.ones(self.count))
            if first is None:
                return None
            self.points.append(first)
        for existing in self.points:
            program.addRow(1.0, np.inf, self.count, columns, existing)
        for _ in range(MAX_POINTS):
            program.run()
            if program.getModelStatus() != highspy.HighsModelStatus.kOptimal:
                return None
            price = np.maximum(0.0, np.array(program.getSolution().col_value))
            value = float(price @ point)
            if value > 1.0 - MIN_VIOLATION:
                return None
            cheapest = self.cheapest(price)
            if cheapest is None:
                return None
            lowest = float(price @ cheapest)
            if lowest >= 1.0 - 1e-6:
                return price, min(1.0, lowest) - 1e-6
            self.points.append(cheapest)
            program.addRow(1.0, np.inf, self.count, columns, cheapest)
        return None


class PartitionSeparator:
    """Finds violated rows of partitions that tight cutsets make together, and adds them to a master."""

    def __init__(
        self, instance: Instance, network: Network, master: Master, cutsets: CutsetSeparator
    ) -> None:
        self.instance, self.network, self.master, self.cutsets = instance, network, master, cutsets
        self._known: dict[bytes, _SmallNetwork | None] = {}

    def separate(self, point: Floats, rng: np.random.Generator, deadline: Deadline) -> int:
        """Add rows that a point violates, within MAX_CALLS integer programs; return their number."""
        counts = point[: self.master.modules]
        added, calls = 0, 0
        for labels in self._partitions(point, rng):
            if calls > MAX_CALLS or deadline.is_over:
                break
            small = self._small_network(labels)
            if small is None:
                continue
            before = len(small.points)
            cut = small.separate(small.aggregate(counts))
            calls += 1 + len(small.points) - before
            small.fruitless = 0 if cut else small.fruitless + 1
            if cut is None:
                continue
            price, limit = cut
            row = np.zeros(self.master.pooled)
            scale = float(price[price > 1e-9].min())
            row[small.modules] = price[small.kind] / scale
            row[np.abs(row) < 1e-9] = 0.0
            added += self.master.add_row(row, limit / scale)
        return added

    def separate_trees(self, point: Floats, rng: np.random.Generator) -> int:
        """Add rows that count links: joined parts need one link less than parts; return their number.

        Partitions come from merging, again and again, the two parts with the most modules between them.
        """
        instance = self.instance
        if instance.direction == "directed":
            return 0
        bought = np.zeros(instance.edges)
        np.add.at(bought, instance.module_edge, point[: self.master.modules])
        bought[instance.installed > 0] = self.network.nodes
        added = 0
        for _ in range(TREE_RUNS):
            noisy = bought * (0.7 + 0.6 * rng.random(instance.edges))
            labels = self._merge(self.network.link_matrix(noisy[None, :])[0], bought)
            if labels is None:
                continue
            row = np.zeros(self.master.pooled)
            across = labels[instance.tail] != labels[instance.head]
            row[: self.master.modules] = across[instance.module_edge]
            added += self.master.add_row(row, float(self._least_links(labels)))
        return added

    def _merge(self, between: Floats, bought: Floats) -> Ints | None:
        """Return the partition (nodes,) that misses most links on the way to one part; None for no miss."""
        instance, labels = self.instance, np.arange(self.network.nodes)
        best, best_labels = TREE_VIOLATION, None
        between = between.copy()
        np.fill_diagonal(between, -1.0)
        for _ in range(self.network.nodes - 2):
            first, second = np.unravel_index(int(between.argmax()), between.shape)
            between[first] += between[second]
            between[:, first] += between[:, second]
            between[second], between[:, second] = -1.0, -1.0
            between[first, first] = -1.0
            labels[labels == labels[second]] = labels[first]
            across = labels[instance.tail] != labels[instance.head]
            missed = self._least_links(labels) - float(bought[across].sum())
            if missed > best:
                best, best_labels = missed, labels.copy()
        return best_labels

    def _least_links(self, labels: Ints) -> int:
        """Return the parts less the groups of parts that demands join: links that traffic needs at least."""
        instance = self.instance
        graph = sp.csr_array(
            (np.ones(len(instance.rate)), (labels[instance.source], labels[instance.target])),
            shape=(self.network.nodes, self.network.nodes),
        )
        return self.network.nodes - int(connected_components(graph, directed=False)[0])

    def _small_network(self, labels: Ints) -> _SmallNetwork | None:
        """Return the small network of a partition; None where it is too large or needs nothing."""
        key = labels.tobytes()
        if key not in self._known:
            small = _SmallNetwork(self.instance, labels)
            fits = small.count <= MAX_KINDS and len(small.rhs) > 0
            self._known[key] = small if fits else None
        return self._known[key]

    def _partitions(self, point: Floats, rng: np.random.Generator) -> list[Ints]:
        """Return partitions into 3 to MAX_PARTS parts by two or three tight node sets, (nodes,) labels."""
        sets = self.cutsets.tight_sets(point)
        if len(sets) < 2:
            return []
        partitions: dict[bytes, Ints] = {}
        for _ in range(10 * MAX_PARTITIONS):
            if len(partitions) >= MAX_PARTITIONS:
                break
            selected = sets[rng.choice(len(sets), int(rng.integers(2, 1 + min(3, len(sets)))), replace=False)]
            code = (selected * (1 << np.arange(len(selected)))[:, None]).sum(axis=0)
            _, labels = np.unique(code, return_inverse=True)
            if not 3 <= labels.max() + 1 <= MAX_PARTS:
                continue
            key = labels.tobytes()
            existing = self._known.get(key)
            if key not in partitions and (existing is None or rng.random() < 0.5**existing.fruitless):
                partitions[key] = labels
        return list(partitions.values())
