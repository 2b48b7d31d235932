"""Problem of system `traffic`: demands over a capacitated directed network."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd

from planner.arrays import Bools, Floats, Ints, Ints32
from planner.contract.notes import make_with_notes
from planner.contract.tables import collect_tables, file_name, row_name, shorten_faults, validate_fields
from planner.errors import InputError
from planner.io.in_memory import take_graph, take_pairs, take_tables, to_graph
from planner_models.graphs.indexing import look_up, sum_by_index
from planner_models.networks.classes import find_class_faults
from planner_models.networks.nodes import find_bad_ends, nodes_of_links
from planner_models.networks.tunnels import Tunnels
from planner_models.traffic.problem.failure_sets import read_failures
from planner_models.traffic.problem.rules import Rule, read_rules, read_tunnels
from planner_models.traffic.problem.schema import (
    DEMANDS,
    LEAST_MBPS,
    LINKS,
    MOST_MBPS,
    NODES,
    OPTIONAL_TABLES,
    TABLES,
)
from planner_models.traffic.problem.tables import TrafficTables

if TYPE_CHECKING:
    import networkx as nx

TRIPLES_PER_QUERY: Final = 16
"""Pairs of nodes and numbers, of which one is a link, per query up to which a table of all is faster."""

RATE_INDEPENDENT: Final = {
    *("nodes", "links", "overload", "tail", "head", "source", "target"),
    *("capacity_mbps", "weight", "incidence"),
    *("tunnels", "rules", "failures", "down", "parsed_tunnels", "parsed_rules", "max_latency_ms"),
    *("parallel", "is_parallel", "link_labels", "demand_labels", "node_index", "link_weights"),
    *("_pairs", "_pair_table", "_triples"),
    *("classes", "class_table", "class_of", "commodity", "_merging"),
}
"""Attributes of a problem that stay valid when only its rates change."""
PRECOMPUTED: Final = ("incidence", "_pairs", "_pair_table", "_triples")
"""Those of them that are computed before rates change, so that all such problems share them."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Traffic(TrafficTables):
    """Demands over a capacitated directed network.

    nodes    one row a node: node, latitude?, longitude?, x?, y?, group?
    links    one row a link: tail, head, capacity_mbps, weight, cost?, latency_ms?, parallel?, upgrade_cost?,
             upgrade_mbps?
    demands  one row a pair, or a pair and class: source, target, rate_mbps, max_latency_ms?, weight?, class?,
             setup_priority?, hold_priority?
    classes  one row a class of demands: class, priority, weight?; None: all have one priority
    tunnels  configured paths, see `planner_models.traffic.problem.rules`; None where there are none
    rules    what routes must use or avoid, see `planner_models.traffic.problem.rules`; None for no rules
    failures elements that may fail together, see `planner_models.traffic.problem.failure_sets`; None where
             none are given
    down     links that are down; tunnels, rules, failures and plans made before may name them
    overload  what happens on overloaded links, see `planner_models.traffic.plan.delivery`

    Links with capacity 0 are down: they are left out. Where all links have failed there is none. Below, N, E
    and K are the numbers of rows; arrays refer to nodes, links and demands by row.

    raises   InputError with every fault: a value out of range, a node that is not in `nodes`, a
             link or a demand from a node to itself, no link with a capacity
    """

    def __post_init__(self) -> None:
        faults = validate_fields(self, TABLES)
        if not faults:
            faults += self._unknown_nodes()
            faults += self._repeated_numbers()
            faults += find_class_faults(self.demands, self.classes)
            faults += self._missing_latencies()
            faults += self._weak_hold_priorities()
        if not faults:
            for table, read in (
                ("tunnels", read_tunnels),
                ("rules", read_rules),
                ("failures", read_failures),
            ):
                if getattr(self, table) is not None:
                    faults += read(self)[1]
        if faults:
            raise InputError(*faults)
        is_up = self.links["capacity_mbps"].to_numpy(float) > 0
        if len(is_up) and not is_up.any():
            raise InputError(
                f"{file_name(self.links, 'links')}: capacity_mbps is 0 in every row: no link is up"
            )
        if not is_up.all():
            links = self.links
            self._keep_down(self.numbered_links[~is_up])
            if self.names_links:
                links = self.numbered_links
            links = links[is_up]
            links.attrs |= self.links.attrs
            object.__setattr__(self, "links", links)
            for name in ("tail", "head", "parallel", "is_parallel"):  # those of all links, for the validation
                self.__dict__.pop(name, None)

    @classmethod
    def from_tables(cls, tables: Mapping[str, pd.DataFrame]) -> Traffic:
        """Build the problem from its tables; without `nodes`, take the links' ends."""
        tables = take_tables(TABLES, tables, optional=OPTIONAL_TABLES)
        links = tables["links"]
        if links.empty:
            raise InputError(f"{file_name(links, 'links')}: holds no rows")
        return cls(
            nodes=tables["nodes"] if "nodes" in tables else nodes_of_links(links),
            links=links,
            demands=tables["demands"],
            classes=tables.get("classes"),
            tunnels=tables.get("tunnels"),
            rules=tables.get("rules"),
            failures=tables.get("failures"),
        )

    @classmethod
    def from_networkx(
        cls,
        graph: nx.Graph,
        demands: Any,
        *,
        unit: str | None = None,
        capacity: str | None = None,
        weight: str | None = None,
        cost: str | None = None,
        latency: str | None = None,
    ) -> Traffic:
        """Build the problem from a networkx graph; an edge without direction is a link each way.

        demands   data frame with source, target and rate; a mapping from (source, target) to rates; or a
                  square matrix of rates, as an array in the order of the graph's nodes or a data frame
                  with their names
        unit      of capacities and rates without a unit in their name, such as "Gbit/s"; default: none,
                  and the names must have one, as capacity_gbps has
        capacity  edge attribute of the capacity; default: the one named `capacity`, with or without unit
        weight    edge attribute of the routing metric; default: `weight` or a common name of it, such as
                  `igp_metric`; 1 where there is none, which is said
        cost      edge attribute of the price per Mbit/s; default: `cost`, where there is one
        latency   edge attribute of the delay, ms unless its name says otherwise; default: `latency_ms`

        raises    InputError with every fault
        """
        attributes = {"capacity_mbps": capacity, "weight": weight, "cost": cost, "latency_ms": latency}

        def make() -> Traffic:
            nodes, links = take_graph(graph, nodes=NODES, links=LINKS, attributes=attributes, unit=unit)
            names = nodes["node"].tolist()
            pairs = take_pairs(DEMANDS, demands, names=names, unit=unit, where="demands")
            return cls(nodes=nodes, links=links, demands=pairs)

        return make_with_notes(make)

    def to_networkx(self) -> nx.MultiDiGraph:
        """Return the network as a graph; `graph.graph["demands"]` has the rates by pair, Mbit/s.

        Of demands with classes it has them by source, target and class.
        """
        graph = to_graph(self.nodes, self.links)
        ends = (self.demands[name].astype(str) for name in self.demand_key)
        graph.graph["demands"] = dict(zip(zip(*ends, strict=True), self.rate_mbps.tolist(), strict=True))
        return graph

    def to_tables(self) -> dict[str, pd.DataFrame]:
        """Return the tables that make this problem again; links that are down have capacity 0."""
        tables = collect_tables(self, TABLES)
        if self.down is not None and self.names_links and len(self.links):
            down = self.down.assign(capacity_mbps=0.0)
            tables["links"] = pd.concat([self.numbered_links, down], ignore_index=True)
        return tables

    def size(self) -> dict[str, int]:
        """Return the number of nodes, links and demands, and of classes where there are any."""
        size = {"nodes": len(self.nodes), "links": len(self.links), "demands": len(self.demands)}
        return {**size, "classes": len(self.class_table)} if self.has_classes else size

    def scale_demands(self, factor: float) -> Traffic:
        """Return the same network with every demand's rate times `factor`."""
        if factor == 1:
            return self
        with np.errstate(over="ignore"):  # an infinite rate is reported as a fault
            return self.with_rates(self.rate_mbps * factor)

    def scale_capacity(self, factor: float) -> Traffic:
        """Return the same demands over links with `factor` times the capacity."""
        if factor == 1:
            return self
        with np.errstate(over="ignore"):  # an infinite capacity is reported as a fault
            capacity = self.capacity_mbps * factor
        return replace(self, links=self.links.assign(capacity_mbps=capacity))

    def with_rates(self, rate_mbps: Floats) -> Traffic:
        """Return the same network and demands with other rates, shape (K,), Mbit/s."""
        rate = np.asarray(rate_mbps, dtype=float)
        demands = self.demands.assign(rate_mbps=rate)
        if not ((rate == 0) | (rate >= LEAST_MBPS) & (rate <= MOST_MBPS)).all():
            return replace(self, demands=demands)  # the validation reports the faults
        # the network and the demands' ends are valid already
        for name in PRECOMPUTED:
            getattr(self, name)
        other = object.__new__(Traffic)
        other.__dict__.update({name: self.__dict__[name] for name in RATE_INDEPENDENT & self.__dict__.keys()})
        other.__dict__["demands"] = demands
        if np.array_equal(self.targets, other.targets):
            other.__dict__["distance"] = self.distance
        return other

    def without_links(self, down: Bools) -> Traffic:
        """Return the problem without some links, (E,), and without tables that name links; it stays valid.

        Parallel links keep their numbers.
        """
        up = ~down
        links = self.links[up].reset_index(drop=True)
        if self.is_parallel.any():
            links = links.assign(parallel=self.parallel[up].astype(float))
        other = object.__new__(Traffic)
        names = ("nodes", "demands", "classes", "overload", "source", "target")
        other.__dict__.update({name: getattr(self, name) for name in names})
        other.__dict__.update(dict.fromkeys(("tunnels", "rules", "failures", "down")))
        other.__dict__.update(links=links, tail=self.tail[up], head=self.head[up])
        return other

    def _keep_down(self, links: pd.DataFrame) -> None:
        """Add links to those that are down."""
        parts = [links] if self.down is None else [self.down, links]
        object.__setattr__(self, "down", pd.concat(parts, ignore_index=True))

    # --- as arrays ------------------------------------------------------------------------

    @cached_property
    def parsed_tunnels(self) -> Tunnels | None:
        """The tunnels as arrays; None without the table."""
        return None if self.tunnels is None else read_tunnels(self)[0]

    @cached_property
    def parsed_rules(self) -> list[Rule]:
        """The rules, in the order of their table."""
        return [] if self.rules is None else read_rules(self)[0]

    def find_demands(self, table: pd.DataFrame) -> Ints:
        """Return the demand of each row's `source`, `target` and, with classes, `class`; -1 for none.

        raises  InputError where demands have classes and the table has none
        """
        of_class = self.find_classes(table)
        return self.demands_between(
            self.find_nodes(table["source"]), self.find_nodes(table["target"]), of_class
        )

    def demands_between(self, source: Ints, target: Ints, of_class: Ints | None = None) -> Ints:
        """Return the demand from each source to each target, nodes by row; -1 where there is none.

        of_class  row of `class_table`, of each; None without classes
        """
        pair = np.where((source < 0) | (target < 0), -1, source * len(self.nodes) + target)
        if of_class is not None:
            pair = np.where((pair < 0) | (of_class < 0), -1, pair * len(self.class_table) + of_class)
        if self._pair_table is not None:
            return self._pair_table[pair].astype(np.int64)
        return look_up(pair, *self._pairs)

    # --- classes --------------------------------------------------------------------------

    @cached_property
    def has_limits_by_class(self) -> bool:
        """True where classes of a pair of nodes have different latency limits."""
        if not self.has_classes or not np.isfinite(self.max_latency_ms).any():
            return False
        return bool((self.max_latency_ms != self.merged.max_latency_ms[self.merged_row]).any())

    @cached_property
    def _merging(self) -> tuple[Ints, Traffic]:
        """(K,) the demand of `merged` that each is in, and the problem that `merged` has other rates of."""
        pair = self.source * len(self.nodes) + self.target
        _, first, row = np.unique(pair, return_index=True, return_inverse=True)
        rank = np.empty(len(first), dtype=np.int64)
        rank[np.argsort(first, kind="stable")] = np.arange(len(first))
        row = rank[row]
        of_class = ["class", "setup_priority", "hold_priority"]
        demands = self.demands.iloc[np.sort(first)].drop(columns=of_class, errors="ignore")
        demands = demands.reset_index(drop=True)
        rate = sum_by_index(row, self.rate_mbps, len(first))
        demands = demands.assign(rate_mbps=np.minimum(rate, MOST_MBPS))
        if "max_latency_ms" in demands:
            demands["max_latency_ms"] = self.demands["max_latency_ms"].groupby(row).min().to_numpy()
        if "weight" in demands:
            demands["weight"] = sum_by_index(row, self.demand_weight, len(first))
        return row, replace(self, demands=demands, classes=None)

    @property
    def merged_row(self) -> Ints:
        """(K,) the demand of `merged` that each demand is in."""
        return self._merging[0]

    @cached_property
    def merged(self) -> Traffic:
        """The problem without classes, itself where there are none.

        A pair is one demand, with the rates of its classes together, the tightest of their latency limits and
        the sum of their weights.
        """
        if not self.has_classes:
            return self
        row, network = self._merging
        return network.with_rates(sum_by_index(row, self.rate_mbps, len(network.demands)))

    def find_links(self, tail: Ints, head: Ints, nth: Ints) -> Ints:
        """Return the nth of the parallel links from tail to head, nodes by row; -1 where there is none."""
        largest = int(self.parallel.max(initial=0))
        triple = (tail * len(self.nodes) + head) * largest + nth - 1
        triple = np.where((tail < 0) | (head < 0) | (nth < 1) | (nth > largest), -1, triple)
        triples = len(self.nodes) ** 2 * largest
        if triples > TRIPLES_PER_QUERY * len(triple):
            return look_up(triple, *self._triples)
        table: Ints32 = np.full(triples + 1, -1, dtype=np.int32)  # the last for none
        keys, links = self._triples
        table[keys] = links
        return np.asarray(table[triple], dtype=np.int64)

    @cached_property
    def routable(self) -> Traffic:
        """The same problem, in which demands without a path have rate 0; itself where all have one."""
        if not self.unreachable.any():
            return self
        other = self.with_rates(np.where(self.unreachable, 0.0, self.rate_mbps))
        other.__dict__["routable"] = other
        return other

    # --- validation -----------------------------------------------------------------------

    def _unknown_nodes(self) -> Iterator[str]:
        """Yield a fault for each end that is no node, and for each row with the same node at both ends."""
        for table, start, end in (("links", "tail", "head"), ("demands", "source", "target")):
            end_rows = getattr(self, start), getattr(self, end)
            yield from find_bad_ends(getattr(self, table), table, (start, end), self.node_index, end_rows)

    def _missing_latencies(self) -> Iterator[str]:
        """Yield a fault where demands limit a delay that links do not have."""
        limits = self.demands.get("max_latency_ms")
        if limits is not None and limits.notna().any() and "latency_ms" not in self.links:
            links, row = file_name(self.links, "links"), int(np.argmax(limits.notna().to_numpy()))
            where = row_name(self.demands, "demands", row)
            yield f"{where}: max_latency_ms is {limits.iloc[row]:g}, but {links} has no column latency_ms"

    def _weak_hold_priorities(self) -> Iterator[str]:
        """Yield a fault for each reservation that could be preempted by one of its own setup priority.

        source  RFC 3209, 4.7.3
        """
        faults = [
            f"{row_name(self.demands, 'demands', row)}: hold_priority is {self.hold_priority[row]}, must be "
            f"at most setup_priority, {self.setup_priority[row]} (0 is the strongest)"
            for row in np.flatnonzero(self.hold_priority > self.setup_priority).tolist()
        ]
        yield from shorten_faults(faults, file_name(self.demands, "demands"), "with a weak hold priority")

    def _repeated_numbers(self) -> Iterator[str]:
        """Yield a fault for each link with the number of a parallel one."""
        if "parallel" not in self.links:
            return
        links = self.links
        ends = pd.DataFrame({"tail": self.tail, "head": self.head, "parallel": self.parallel})
        faults = [
            f"{row_name(links, 'links', row)}: parallel is {ends['parallel'].iloc[row]}, as of another link "
            f"from {links['tail'].iloc[row]} to {links['head'].iloc[row]}, must differ"
            for row in np.flatnonzero(ends.duplicated().to_numpy()).tolist()
        ]
        yield from shorten_faults(faults, file_name(links, "links"), "with the number of a parallel link")
