"""Tables of a network and its traffic as arrays, with look-ups of their rows; the problem checks them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, Literal

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components, dijkstra

from planner.arrays import Bools, Floats, Ints, Ints32
from planner.contract.tables import file_name
from planner.errors import InputError, did_you_mean
from planner_models.graphs.distances import find_distances
from planner_models.graphs.indexing import index_distinct, number_equal
from planner_models.networks.classes import order_classes
from planner_models.networks.nodes import find_names
from planner_models.traffic.problem.reservations import PRIORITIES

PAIRS_PER_DEMAND: Final = 16  # of nodes, up to which a table of all pairs is faster than a search
Overload = Literal["drop", "priority", "max-min"]


def lightest_links(nodes: int, tail: NDArray[Any], head: NDArray[Any], weight: Floats) -> sp.csr_array:
    """Return the weight from tail to head, shape (N, N): of parallel links the smallest.

    A sparse matrix made of the links as they are would add up the weights of parallel ones.
    """
    order = np.lexsort((weight, head, tail))
    tail, head, weight = tail[order], head[order], weight[order]
    first = np.concatenate([[True], (np.diff(tail) != 0) | (np.diff(head) != 0)])[: len(tail)]
    return sp.csr_array((weight[first], (tail[first], head[first])), shape=(nodes, nodes))


@dataclass(frozen=True, kw_only=True, eq=False)
class TrafficTables:
    """Tables of a problem of `traffic`, see `Traffic`, with their rows as arrays."""

    nodes: pd.DataFrame
    links: pd.DataFrame
    demands: pd.DataFrame
    classes: pd.DataFrame | None = None
    tunnels: pd.DataFrame | None = None
    rules: pd.DataFrame | None = None
    failures: pd.DataFrame | None = None
    down: pd.DataFrame | None = None
    overload: Overload = "drop"

    @property
    def names_links(self) -> bool:
        """True where tables name links, those that are down too: tunnels, rules or failures."""
        return any(table is not None for table in (self.tunnels, self.rules, self.failures))

    @property
    def numbered_links(self) -> pd.DataFrame:
        """The links, with the number of each that has or had parallel ones, which stays as others go down."""
        return self.links.assign(parallel=np.where(self.is_parallel, self.parallel, 0).astype(float))

    @cached_property
    def tail(self) -> Ints:
        """(E,) node where each link starts."""
        return self.find_nodes(self.links["tail"])

    @cached_property
    def head(self) -> Ints:
        """(E,) node where each link ends."""
        return self.find_nodes(self.links["head"])

    @cached_property
    def source(self) -> Ints:
        """(K,) node where each demand starts."""
        return self.find_nodes(self.demands["source"])

    @cached_property
    def target(self) -> Ints:
        """(K,) node where each demand ends."""
        return self.find_nodes(self.demands["target"])

    @cached_property
    def capacity_mbps(self) -> Floats:
        """(E,) capacity of each link, Mbit/s."""
        return self.links["capacity_mbps"].to_numpy(float)

    @cached_property
    def weight(self) -> Floats:
        """(E,) routing metric of each link."""
        return self.links["weight"].to_numpy(float)

    @cached_property
    def split_weight(self) -> Floats:
        """(E,) part of each link in traffic that splits over next hops; 1 where none is given."""
        if "split_weight" not in self.links:
            return np.ones(len(self.links))
        return self.links["split_weight"].fillna(1.0).to_numpy(float)

    @cached_property
    def rate_mbps(self) -> Floats:
        """(K,) rate of each demand, Mbit/s."""
        return self.demands["rate_mbps"].to_numpy(float)

    @cached_property
    def targets(self) -> Ints:
        """(D,) nodes where demands with a positive rate end, ascending."""
        return index_distinct(self.target[self.rate_mbps > 0], len(self.nodes))[0]

    @cached_property
    def target_row(self) -> Ints:
        """(K,) row of each demand's target in `targets`; where it has no rate, the row where it would be."""
        return np.searchsorted(self.targets, np.arange(len(self.nodes)))[self.target]

    @cached_property
    def incidence(self) -> sp.csr_array:
        """(N, E) node-link incidence: +1 where a link leaves a node, -1 where it enters one."""
        count = len(self.links)
        links = np.arange(count)
        signs = np.repeat([1.0, -1.0], count)
        entries = (np.concatenate([self.tail, self.head]), np.concatenate([links, links]))
        return sp.csr_array((signs, entries), shape=(len(self.nodes), count))

    @cached_property
    def distance(self) -> Floats:
        """(D, N) weight of the shortest path from each node to each of `targets`; inf without one."""
        return find_distances(self.link_weights, self.targets)

    @cached_property
    def max_latency_ms(self) -> Floats:
        """(K,) largest delay of each demand's routes, ms; inf for any."""
        if "max_latency_ms" not in self.demands:
            return np.full(len(self.demands), np.inf)
        limit = self.demands["max_latency_ms"].to_numpy(float)
        return np.where(np.isnan(limit), np.inf, limit)

    @cached_property
    def demand_weight(self) -> Floats:
        """(K,) weight of each demand under max-min fairness; 1 where none is given."""
        if "weight" not in self.demands:
            return np.ones(len(self.demands))
        return self.demands["weight"].fillna(1.0).to_numpy(float)

    @cached_property
    def setup_priority(self) -> Ints:
        """(K,) priority with which a reservation takes bandwidth, 0 the strongest; 7 where none is given."""
        if "setup_priority" not in self.demands:
            return np.full(len(self.demands), PRIORITIES - 1, dtype=np.int64)
        return self.demands["setup_priority"].fillna(PRIORITIES - 1).to_numpy(np.int64)

    @cached_property
    def hold_priority(self) -> Ints:
        """(K,) priority with which a reservation keeps bandwidth; its setup priority where none is given."""
        if "hold_priority" not in self.demands:
            return self.setup_priority
        hold = self.demands["hold_priority"].to_numpy(float)
        return np.where(np.isnan(hold), self.setup_priority, hold).astype(np.int64)

    @cached_property
    def link_labels(self) -> list[str]:
        """`tail->head` for each link; parallel links are numbered, `tail->head#2`."""
        number = self.parallel
        pairs = zip(self.links["tail"], self.links["head"], number, strict=True)
        return [f"{tail}->{head}" + (f"#{k}" if k > 1 else "") for tail, head, k in pairs]

    @cached_property
    def parallel(self) -> Ints:
        """(E,) 1 for the first link between its ends, 2 for the second, ...: as given, else as counted."""
        counted = number_equal(self._end_keys)[0] + 1
        if "parallel" not in self.links:
            return counted
        stated = self.links["parallel"].to_numpy(dtype=np.int64)
        return np.where(stated > 0, stated, counted)

    @cached_property
    def is_parallel(self) -> Bools:
        """(E,) whether a link has or had others with the same ends, so that its number tells it apart."""
        size = number_equal(self._end_keys)[1]
        numbered = self.links["parallel"].to_numpy() > 0 if "parallel" in self.links else False
        return np.asarray((size > 1) | numbered)

    @property
    def _end_keys(self) -> Ints:
        """(E,) number of each link's pair of ends, the same for parallel links."""
        if min(self.tail.min(initial=0), self.head.min(initial=0)) < 0:  # names of no node, told apart too
            return np.asarray(self.links.groupby(["tail", "head"]).ngroup(), dtype=np.int64)
        return self.tail * len(self.nodes) + self.head

    @cached_property
    def demand_labels(self) -> list[str]:
        """`source->target` for each demand, `source->target (class)` where demands have classes."""
        pairs = zip(self.demands["source"], self.demands["target"], strict=True)
        labels = [f"{source}->{target}" for source, target in pairs]
        if not self.has_classes:
            return labels
        return [f"{name} ({of})" for name, of in zip(labels, self.demands["class"], strict=True)]

    @cached_property
    def node_index(self) -> pd.Index:
        """Index of node names, which maps a name to its row."""
        index: pd.Index = pd.Index(self.nodes["node"])
        return index

    def find_nodes(self, names: pd.Series) -> Ints:
        """Return the node of each name; -1 where there is none. Each category is looked up once."""
        return find_names(self.node_index, names)

    @property
    def has_classes(self) -> bool:
        """True where demands have classes."""
        return "class" in self.demands

    @property
    def demand_key(self) -> list[str]:
        """Columns that tell demands apart: source, target and, with classes, class."""
        return ["source", "target", *(["class"] if self.has_classes else [])]

    @cached_property
    def class_table(self) -> pd.DataFrame:
        """Name, priority and weight of each class, the highest priority first; no rows without classes."""
        return order_classes(self.demands, self.classes)

    @cached_property
    def class_of(self) -> Ints:
        """(K,) row of `class_table` of each demand; 0 without classes."""
        classes = self.find_classes(self.demands)
        return np.zeros(len(self.demands), dtype=np.int64) if classes is None else classes

    def find_classes(self, table: pd.DataFrame) -> Ints | None:
        """Return the row of `class_table` of each row's `class`, -1 for none of them; None without classes.

        raises  InputError where demands have classes and the table has none
        """
        if not self.has_classes:
            return None
        if "class" not in table:
            where = file_name(table, "table")
            raise InputError(f"{where}: column 'class' is missing; demands have classes")
        return find_names(pd.Index(self.class_table["class"]), table["class"])

    def in_classes(self, names: Sequence[str], parameter: str) -> Bools:
        """Return the demands of some classes, (K,); InputError that names the parameter for unknown ones."""
        if not names:
            return np.zeros(len(self.demands), bool)
        if "class" not in self.demands:
            raise InputError(f"{parameter}: is '{names[0]}', but demands have no column class")
        classes = self.demands["class"].astype(str)
        for name in names:
            if name not in set(classes):
                near = did_you_mean(name, sorted(set(classes)))
                raise InputError(f"{parameter}: no demand has the class '{name}'{near}")
        return classes.isin(list(names)).to_numpy(bool)

    @cached_property
    def commodity(self) -> Ints:
        """(K,) class * N + target of each demand, one number for both; without classes the target."""
        return self.class_of * len(self.nodes) + self.target if self.has_classes else self.target

    @cached_property
    def _pair_table(self) -> Ints32 | None:
        """(N * N + 1,) the demand of each pair of nodes, -1 for none and last; None where few have one.

        With C classes it has N * N * C + 1 entries.
        """
        pairs = len(self.nodes) ** 2 * max(len(self.class_table), 1)
        if pairs > PAIRS_PER_DEMAND * len(self.demands):
            return None
        table = np.full(pairs + 1, -1, dtype=np.int32)
        table[self._pair_keys()] = np.arange(len(self.demands))
        return table

    def _pair_keys(self) -> Ints:
        """Return one number for source, target and class of each demand, shape (K,)."""
        pair = self.source * len(self.nodes) + self.target
        return pair * len(self.class_table) + self.class_of if self.has_classes else pair

    @cached_property
    def _pairs(self) -> tuple[Ints, Ints]:
        """(K,) key of each demand's source and target, ascending, and (K,) its demand."""
        pair = self._pair_keys()
        row = np.argsort(pair, kind="stable")
        return pair[row], row

    @cached_property
    def _triples(self) -> tuple[Ints, Ints]:
        """(E,) key of each link's tail, head and parallel number, ascending, and (E,) its link."""
        largest = int(self.parallel.max(initial=0))
        triple = (self.tail * len(self.nodes) + self.head) * largest + self.parallel - 1
        row = np.argsort(triple, kind="stable")
        return triple[row], row

    @cached_property
    def link_weights(self) -> sp.csr_array:
        """(N, N) weight from tail to head; of parallel links the smallest."""
        return lightest_links(len(self.nodes), self.tail, self.head, self.weight)

    @cached_property
    def unreachable(self) -> Bools:
        """(K,) whether a demand has a rate, but no path."""
        return self.disconnected_demands(np.ones(len(self.links), dtype=bool))

    def disconnected_demands(self, up: Bools) -> Bools:
        """Return demands with a rate and without a path over the links that are up, shape (K,)."""
        count = len(self.nodes)
        graph = sp.csr_array((np.ones(int(up.sum())), (self.head[up], self.tail[up])), shape=(count, count))
        _, component = connected_components(graph, connection="strong")
        lost = np.zeros(len(self.demands), dtype=bool)
        # only demands between parts that do not reach each other both ways may lack a path
        demands = np.flatnonzero((self.rate_mbps > 0) & (component[self.source] != component[self.target]))
        if len(demands):
            target, row = np.unique(self.target[demands], return_inverse=True)
            hops = dijkstra(graph, indices=target, unweighted=True)
            lost[demands] = np.isinf(hops[row, self.source[demands]])
        return lost
