"""The problem of system `traffic`: demands over a capacitated directed network."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import dijkstra

from planner.errors import InputError
from planner.tables import Table, adopt, few, file_name, label, number, row_name, strangers

NODES: Final = Table(
    name="nodes",
    about="a place where traffic starts, ends or is switched",
    columns={
        "node": label("its name"),
        "latitude": number("degrees north", at_least=-90, at_most=90, optional=True),
        "longitude": number("degrees east", at_least=-180, at_most=180, optional=True),
    },
    key=("node",),
)
LINKS: Final = Table(
    name="links",
    about="a one-way link; two rows with the same ends are parallel links",
    columns={
        "tail": label("node where it starts"),
        "head": label("node where it ends"),
        "capacity_mbps": number("most traffic, Mbit/s", more_than=0),
        "weight": number("routing metric", more_than=0, optional=True, default=1.0),
        "cost": number("price of carrying traffic, per Mbit/s", at_least=0, optional=True),
        "latency_ms": number("one-way delay, ms", at_least=0, optional=True),
    },
)
DEMANDS: Final = Table(
    name="demands",
    about="traffic that wants to get from one node to another",
    columns={
        "source": label("node where it starts"),
        "target": label("node where it ends"),
        "rate_mbps": number("wanted rate, Mbit/s", at_least=0),
    },
    key=("source", "target"),
)
TABLES: Final = (NODES, LINKS, DEMANDS)
RATELESS: Final = {
    *("nodes", "links", "tail", "head", "source", "target", "capacity_mbps", "weight", "balance"),
    *("parallel", "link_labels", "demand_labels", "node_places", "_by_weight", "_pairs", "_triples"),
}
"""What a problem keeps when only its rates change."""
SHARED: Final = ("balance", "_pairs", "_triples")
"""What of it is worth working out before, for all problems with other rates."""


def totals(places: NDArray[Any], amounts: NDArray[np.float64], count: int) -> NDArray[np.float64]:
    """(count,) the amounts added up by place."""
    return np.bincount(places, weights=amounts, minlength=count).astype(float, copy=False)


def _found(wanted: NDArray[np.int64], known: NDArray[np.int64], row: NDArray[np.int64]) -> NDArray[np.int64]:
    """The row of each number among the known ones, which ascend; -1 where it is none of them."""
    if not len(known):
        return np.full(len(wanted), -1, dtype=np.int64)
    place = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
    return np.where(known[place] == wanted, row[place], -1).astype(np.int64)


@dataclass(frozen=True, kw_only=True, eq=False)
class Traffic:
    """Demands over a capacitated directed network.

    nodes    one row a node: node, latitude?, longitude?
    links    one row a link: tail, head, capacity_mbps, weight, cost?, latency_ms?
    demands  one row a pair: source, target, rate_mbps

    Below, N, E and K are their numbers of rows; nodes, links and demands are meant by row.
    InputError with every fault: a value out of range, a node that is not in `nodes`, a link or a
    demand from a node to itself, a demand without a path.
    """

    nodes: pd.DataFrame
    links: pd.DataFrame
    demands: pd.DataFrame

    def __post_init__(self) -> None:
        faults = adopt(self, TABLES)
        if not faults:
            faults += self._unknown_nodes()
        if not faults:
            faults += self._unreachable()
        if faults:
            raise InputError(*faults)

    @classmethod
    def from_tables(cls, tables: Mapping[str, pd.DataFrame]) -> Traffic:
        """The problem in the tables nodes, links and demands; without nodes, those that links name."""
        links = tables["links"]
        nodes = tables.get("nodes")
        if nodes is None:
            ends = pd.unique(pd.concat([links["tail"], links["head"]], ignore_index=True))
            nodes = pd.DataFrame({"node": ends})
        return cls(nodes=nodes, links=links, demands=tables["demands"])

    def to_tables(self) -> dict[str, pd.DataFrame]:
        """The tables that make this problem again."""
        return {table.name: getattr(self, table.name).reset_index(drop=True) for table in TABLES}

    def size(self) -> dict[str, int]:
        """Number of nodes, links and demands."""
        return {"nodes": len(self.nodes), "links": len(self.links), "demands": len(self.demands)}

    def scaled(self, factor: float) -> Traffic:
        """The same network with every demand times `factor`."""
        if factor == 1:
            return self
        with np.errstate(over="ignore"):  # a rate without end is refused in words
            return self.with_rates(self.rate_mbps * factor)

    def with_capacity(self, factor: float) -> Traffic:
        """The same demands over links of `factor` times the capacity."""
        if factor == 1:
            return self
        with np.errstate(over="ignore"):  # a capacity without end is refused in words
            capacity = self.capacity_mbps * factor
        return replace(self, links=self.links.assign(capacity_mbps=capacity))

    def with_rates(self, rate_mbps: NDArray[np.float64]) -> Traffic:
        """The same network and pairs with other rates, (K,)."""
        rate = np.asarray(rate_mbps, dtype=float)
        demands = self.demands.assign(rate_mbps=rate)
        if not (np.isfinite(rate) & (rate >= 0)).all():
            return replace(self, demands=demands)  # which says what is wrong
        # the network and the pairs are valid already: only demands that now want a rate can fail
        for name in SHARED:
            getattr(self, name)
        other = object.__new__(Traffic)
        other.__dict__.update({name: self.__dict__[name] for name in RATELESS & self.__dict__.keys()})
        other.__dict__["demands"] = demands
        if np.array_equal(self.targets, other.targets):
            other.__dict__["distance"] = self.distance
        if (other.rate_mbps[self.rate_mbps <= 0] > 0).any() and (faults := list(other._unreachable())):
            raise InputError(*faults)
        return other

    # --- as arrays ------------------------------------------------------------------------

    @cached_property
    def tail(self) -> NDArray[np.int64]:
        """(E,) node where each link starts."""
        return self._places(self.links["tail"])

    @cached_property
    def head(self) -> NDArray[np.int64]:
        """(E,) node where each link ends."""
        return self._places(self.links["head"])

    @cached_property
    def source(self) -> NDArray[np.int64]:
        """(K,) node where each demand starts."""
        return self._places(self.demands["source"])

    @cached_property
    def target(self) -> NDArray[np.int64]:
        """(K,) node where each demand ends."""
        return self._places(self.demands["target"])

    @cached_property
    def capacity_mbps(self) -> NDArray[np.float64]:
        """(E,)"""
        return self.links["capacity_mbps"].to_numpy(float)

    @cached_property
    def weight(self) -> NDArray[np.float64]:
        """(E,) routing metric."""
        return self.links["weight"].to_numpy(float)

    @cached_property
    def rate_mbps(self) -> NDArray[np.float64]:
        """(K,)"""
        return self.demands["rate_mbps"].to_numpy(float)

    @cached_property
    def targets(self) -> NDArray[np.int64]:
        """(D,) the nodes that demands with a rate end at, ascending."""
        return np.unique(self.target[self.rate_mbps > 0])

    @cached_property
    def balance(self) -> sp.csr_array:
        """(N, E) node-link incidence: +1 where a link leaves a node, -1 where it enters one."""
        count = len(self.links)
        links = np.arange(count)
        signs = np.repeat([1.0, -1.0], count)
        places = (np.concatenate([self.tail, self.head]), np.concatenate([links, links]))
        return sp.csr_array((signs, places), shape=(len(self.nodes), count))

    @cached_property
    def distance(self) -> NDArray[np.float64]:
        """(D, N) weight of the shortest path from each node to each of `targets`; inf without one."""
        weights: NDArray[np.float64] = dijkstra(self._by_weight.T, indices=self.targets)
        return weights

    @cached_property
    def link_labels(self) -> list[str]:
        """`tail->head` for each link; parallel links are numbered, `tail->head#2`."""
        number = self.parallel
        pairs = zip(self.links["tail"], self.links["head"], number, strict=True)
        return [f"{tail}->{head}" + (f"#{k}" if k > 1 else "") for tail, head, k in pairs]

    @cached_property
    def parallel(self) -> NDArray[np.int64]:
        """(E,) 1 for the first link between its ends, 2 for the second, ... in the table's order."""
        return self.links.groupby(["tail", "head"]).cumcount().to_numpy(dtype=np.int64) + np.int64(1)

    @cached_property
    def demand_labels(self) -> list[str]:
        """`source->target` for each demand."""
        return [f"{s}->{t}" for s, t in zip(self.demands["source"], self.demands["target"], strict=True)]

    @cached_property
    def node_places(self) -> pd.Index:
        """Turns node names into rows of `nodes`."""
        places: pd.Index = pd.Index(self.nodes["node"])
        return places

    def demand_rows(self, source: NDArray[np.int64], target: NDArray[np.int64]) -> NDArray[np.int64]:
        """The demand from each source to each target, nodes by row; -1 where there is none."""
        pair = source * len(self.nodes) + target
        return _found(np.where((source < 0) | (target < 0), -1, pair), *self._pairs)

    def link_rows(
        self, tail: NDArray[np.int64], head: NDArray[np.int64], nth: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """The nth link from each tail to each head, nodes by row; -1 where there is none."""
        most = int(self.parallel.max(initial=0))
        triple = (tail * len(self.nodes) + head) * most + nth - 1
        none = (tail < 0) | (head < 0) | (nth < 1) | (nth > most)
        return _found(np.where(none, -1, triple), *self._triples)

    @cached_property
    def _pairs(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """(K,) source and target of each demand as one number, ascending; the demand that each is of."""
        pair = self.source * len(self.nodes) + self.target
        row = np.argsort(pair, kind="stable")
        return pair[row], row

    @cached_property
    def _triples(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """(E,) as `_pairs` for links: tail, head and which of the parallel ones."""
        most = int(self.parallel.max(initial=0))
        triple = (self.tail * len(self.nodes) + self.head) * most + self.parallel - 1
        row = np.argsort(triple, kind="stable")
        return triple[row], row

    @cached_property
    def _by_weight(self) -> sp.csr_array:
        """(N, N) weight from tail to head; of parallel links the smallest."""
        order = np.lexsort((self.weight, self.head, self.tail))
        tail, head, weight = self.tail[order], self.head[order], self.weight[order]
        first = np.r_[True, (np.diff(tail) != 0) | (np.diff(head) != 0)]
        count = len(self.nodes)
        return sp.csr_array((weight[first], (tail[first], head[first])), shape=(count, count))

    def _places(self, names: pd.Series) -> NDArray[np.int64]:
        return self.node_places.get_indexer(pd.Index(names)).astype(np.int64)

    # --- validation -----------------------------------------------------------------------

    def _unknown_nodes(self) -> Iterator[str]:
        for table, one, other in (("links", "tail", "head"), ("demands", "source", "target")):
            frame: pd.DataFrame = getattr(self, table)
            where = file_name(frame, table)
            for column in (one, other):
                yield from strangers(frame, table, column, self.node_places, "no node of the network")
            loops = np.flatnonzero(frame[one].to_numpy() == frame[other].to_numpy()).tolist()
            faults = [
                f"{row_name(frame, table, row)}: {one} and {other} "
                f"are both '{frame[one].iloc[row]}', must differ"
                for row in loops
            ]
            yield from few(faults, where, f"where {one} and {other} are the same")

    def _unreachable(self) -> Iterator[str]:
        wanted = np.flatnonzero(self.rate_mbps > 0)
        row = np.searchsorted(self.targets, self.target[wanted])
        lost = wanted[np.isinf(self.distance[row, self.source[wanted]])]
        names = self.demands[["source", "target"]]
        faults = [
            f"{row_name(self.demands, 'demands', k)}: "
            f"no path from '{names['source'].iloc[k]}' to '{names['target'].iloc[k]}'"
            for k in lost.tolist()
        ]
        yield from few(faults, file_name(self.demands, "demands"), "without a path")
