"""Problem of system `capacity`: demands that must fit, and the capacity that can be bought for them.

Rules of a problem of system `capacity` beyond those of single columns, and their errors.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components, dijkstra

from planner.arrays import Bools, Floats
from planner.contract.tables import (
    collect_tables,
    describe_rows,
    file_name,
    row_name,
    shorten_faults,
    validate_fields,
)
from planner.errors import InputError, did_you_mean
from planner.io.in_memory import take_tables
from planner_models.capacity.problem.schema import OPTIONAL_TABLES, TABLES
from planner_models.capacity.problem.tables import PlanningTables
from planner_models.capacity.problem.tunnels import TunnelPaths, find_tunnel_faults, read_tunnels
from planner_models.networks.classes import find_class_faults
from planner_models.networks.nodes import find_bad_ends, nodes_of_links


@dataclass(frozen=True, kw_only=True, eq=False)
class CapacityPlanning(PlanningTables):
    """Demands that must fit into a network, also under failures, and the modules that can be bought.

    nodes       one row a node: node, latitude?, longitude?, x?, y?
    links       tail, head, capacity_mbps, link?, installed_cost, setup_cost, setup_cost_per_km,
                routing_cost, length_km?, latency_ms?
    candidates  links that can be built: as links, without capacity; None for none
    modules     module, capacity_mbps, cost, cost_per_km, max_count?, link?, tenure
    demands     source, target, rate_mbps, growth?, max_latency_ms?, class?, year?
    classes     class, priority, protected_share, growth?; None: every demand must fit under every failure
    tunnels     path, source?, target?, parallel?, name?; None: demands may take any route
    failures    failure, member, probability?; None: no failure must be survived
    years       year, demand_factor, price_factor; None: one year
    network     one row: direction?, modules_per_link?, budget?, max_utilization?, max_utilization_failed?;
                None: undirected links, no budget, links may be full

    Below, N, L, M, D, S and Y are the numbers of nodes, links with candidates, pairs of a module and a link,
    demands, failures and years; arrays refer to them by row.

    raises   InputError with every fault
    """

    def __post_init__(self) -> None:
        faults = find_faults(self) or self.read_paths()[1]
        if faults:
            raise InputError(*faults)

    @classmethod
    def from_tables(cls, tables: Mapping[str, pd.DataFrame]) -> CapacityPlanning:
        """Build the problem from its tables; without `nodes`, take the ends of links and candidates."""
        frames = take_tables(TABLES, tables, optional=OPTIONAL_TABLES)
        if "nodes" not in frames:
            parts = [frames[name] for name in ("links", "candidates") if name in frames]
            frames["nodes"] = nodes_of_links(*parts)
        return cls(**frames)

    def to_tables(self) -> dict[str, pd.DataFrame]:
        """Return the tables that make this problem again."""
        return collect_tables(self, TABLES)

    def size(self) -> dict[str, int]:
        """Return the number of nodes, links, candidates, demands, failures and years."""
        size = {"nodes": len(self.nodes), "links": len(self.links)}
        if self.candidates is not None and len(self.candidates):
            size["candidates"] = len(self.candidates)
        size["demands"] = len(self.demands)
        if self.has_classes:
            size["classes"] = len(self.class_table)
        if self.tunnels is not None and len(self.tunnels):
            size["tunnels"] = len(self.tunnels)
        if len(self.states.names):
            size["failures"] = len(self.states.names)
        return {**size, "years": len(self.years)} if self.years is not None else size

    # --- rules ----------------------------------------------------------------------------

    def with_network(self, **columns: Any) -> CapacityPlanning:
        """Return the problem with other values in the table `network`."""
        is_given = self.network is not None and len(self.network) > 0
        frame = self.network if is_given else pd.DataFrame(index=range(1))
        assert frame is not None
        return replace(self, network=frame.assign(**columns))

    def without_budget(self) -> CapacityPlanning:
        """Return the problem without a limit on the cost of purchases."""
        return self if self.budget is None else self.with_network(budget=np.nan)

    # --- as arrays ------------------------------------------------------------------------

    @cached_property
    def _paths_of_demands(self) -> tuple[TunnelPaths | None, list[str]]:
        return read_tunnels(self)

    def read_paths(self) -> tuple[TunnelPaths | None, list[str]]:
        """Return the only paths of demands, and the faults of tunnels and latency limits."""
        return self._paths_of_demands

    @property
    def tunnel_paths(self) -> TunnelPaths | None:
        """The only paths of demands with tunnels or a latency limit; None where no demand has either."""
        return self.read_paths()[0]

    @cached_property
    def required_share(self) -> Floats:
        """(1 + S, D) share of each demand that must fit in each state; first without failures, where it is 1.

        0 for demands that a state cuts off, whatever is bought.
        """
        share = np.ones(self.cut_off.shape)
        if self.has_classes:
            share[1:] = self.class_table["protected_share"].to_numpy(float)[self.class_of]
        share[self.cut_off] = 0.0
        return share

    @cached_property
    def cut_off(self) -> Bools:
        """(1 + S, D) whether a demand has no path in a state, whatever is bought; first without failures."""
        states = self.states.link_down
        downs = np.vstack([np.zeros((1, len(self.lines)), dtype=bool), states])
        return np.array([self.without_path(self.is_usable & ~down) for down in downs])

    def without_path(self, up: Bools) -> Bools:
        """Return whether a demand has no path over the links that are up, (D,).

        up  (L,) links that can be used
        """
        off = self._disconnected(up)
        paths = self.tunnel_paths
        if paths is not None:
            bound = paths.pair_of >= 0
            off[bound] = ~paths.are_up(up)[paths.pair_of[bound]]
        return off

    def _disconnected(self, up: Bools) -> Bools:
        """Return the demands without a path over the links that are up, (D,)."""
        count = len(self.nodes)
        graph = sp.csr_array((np.ones(int(up.sum())), (self.tail[up], self.head[up])), shape=(count, count))
        if self.direction != "directed":
            group = connected_components(graph, directed=False)[1]
            return np.asarray(group[self.source] != group[self.target])
        starts, row = np.unique(self.source, return_inverse=True)
        if not len(starts):
            return np.zeros(0, dtype=bool)
        hops = dijkstra(graph, indices=starts, unweighted=True)
        is_cut: Bools = np.isinf(hops[row, self.target])
        return is_cut


def find_faults(problem: PlanningTables) -> list[str]:
    """Return every fault of a problem; later rules are only looked at where tables keep the first ones."""
    faults = validate_fields(problem, TABLES)
    if not faults:
        faults += [*_bad_rows(problem), *_bad_ends(problem)]
    if not faults:
        faults += _bad_names(problem)
    if not faults:
        faults += [*_bad_modules(problem), *_bad_members(problem), *_missing_lengths(problem)]
        faults += [*_missing_latencies(problem), *_bad_beginnings(problem)]
        faults += find_class_faults(problem.demands, problem.classes)
        if faults:
            faults += find_tunnel_faults(problem)
    return faults


def _bad_rows(problem: PlanningTables) -> Iterator[str]:
    """Yield faults of tables that must have one row, or rows in order."""
    if problem.network is not None and len(problem.network) > 1:
        yield f"{file_name(problem.network, 'network')}: has {len(problem.network)} rows, must have one"
    if problem.years is not None:
        year = problem.years["year"].to_numpy(float)
        for row in np.flatnonzero(np.diff(year) <= 0).tolist()[:1]:
            yield (
                f"{row_name(problem.years, 'years', row + 1)}: year is {year[row + 1]:g}, must be after "
                f"{year[row]:g}"
            )
    if not len(problem.links) and (problem.candidates is None or not len(problem.candidates)):
        yield f"{file_name(problem.links, 'links')}: there is no link and no candidate"


def _bad_ends(problem: PlanningTables) -> Iterator[str]:
    """Yield a fault for each end that is no node, and for each row with the same node at both ends."""
    for table, start, end in (
        ("links", "tail", "head"),
        ("candidates", "tail", "head"),
        ("demands", "source", "target"),
    ):
        frame = getattr(problem, table)
        if frame is not None:
            rows = problem.find_nodes(frame[start]), problem.find_nodes(frame[end])
            yield from find_bad_ends(frame, table, (start, end), problem.node_index, rows)


def _bad_names(problem: PlanningTables) -> Iterator[str]:
    """Yield a fault for each link with the name of another link or of a node."""
    names = pd.Series(problem.names)
    repeated = names.duplicated()
    is_node = names.isin(problem.node_index)
    for row in np.flatnonzero((repeated | is_node).to_numpy()).tolist()[:5]:
        frame, table, table_row = _row_of_line(problem, row)
        what = "of another link" if repeated.iloc[row] else "of a node"
        yield f"{row_name(frame, table, table_row)}: link '{names.iloc[row]}' is the name {what}, must differ"


def _row_of_line(problem: PlanningTables, row: int) -> tuple[pd.DataFrame, str, int]:
    """Return the table of a link, its name, and the row there."""
    if row < len(problem.links) or problem.candidates is None:
        return problem.links, "links", row
    return problem.candidates, "candidates", row - len(problem.links)


def _bad_modules(problem: PlanningTables) -> Iterator[str]:
    """Yield a fault for each module of a link that is none."""
    if "link" not in problem.modules:
        return
    modules, names = problem.modules, problem.modules["link"].tolist()
    yield from describe_rows(
        [row for row, name in enumerate(names) if name and problem.find_line(name) < 0],
        lambda row: (
            f"{row_name(modules, 'modules', row)}: link '{names[row]}' is no link"
            + did_you_mean(names[row], problem.names)
        ),
        file_name(modules, "modules"),
        "with an unknown link",
    )


def _bad_beginnings(problem: PlanningTables) -> Iterator[str]:
    """Yield a fault for each demand that begins in a year that the plan does not have."""
    if "year" not in problem.demands or problem.years is None:
        return
    year, years = problem.demands["year"].to_numpy(float), problem.year_numbers
    faults = [
        f"{row_name(problem.demands, 'demands', row)}: year is {year[row]:g}, must be one of the years: "
        f"{', '.join(map(str, years))}"
        for row in np.flatnonzero(~np.isnan(year) & ~np.isin(year, years)).tolist()
    ]
    yield from shorten_faults(faults, file_name(problem.demands, "demands"), "with an unknown year")


def _bad_members(problem: PlanningTables) -> Iterator[str]:
    """Yield a fault for each member of a failure that is no element, and for differing probabilities."""
    frame = problem.failures
    if frame is None:
        return
    names = frame["member"].tolist()
    yield from describe_rows(
        [
            row
            for row, name in enumerate(names)
            if problem.find_line(name) < 0 and name not in problem.node_index
        ],
        lambda row: (
            f"{row_name(frame, 'failures', row)}: member '{names[row]}' is no link and no node"
            + did_you_mean(names[row], [*problem.names, *problem.nodes["node"]])
        ),
        file_name(frame, "failures"),
        "with an unknown member",
    )
    if "probability" in frame:
        first = frame.groupby("failure", sort=False)["probability"].transform("first")
        yield from describe_rows(
            np.flatnonzero((first != frame["probability"]).to_numpy()),
            lambda row: (
                f"{row_name(frame, 'failures', row)}: probability is {frame['probability'].iloc[row]:g}, "
                f"must be {first.iloc[row]:g} as in the first row of failure '{frame['failure'].iloc[row]}'"
            ),
            file_name(frame, "failures"),
            "with another probability",
        )


def _missing_lengths(problem: PlanningTables) -> Iterator[str]:
    """Yield a fault for each link without a length, where costs are per kilometre."""
    needs = problem.lines["setup_cost_per_km"].to_numpy(float) > 0
    if (problem.modules["cost_per_km"] > 0).any():
        needs = np.ones(len(problem.lines), dtype=bool)
    missing = np.isnan(problem.length_km) & needs
    yield from _unknown_of_links(problem, missing, "length_km is missing", "costs are per kilometre")


def _missing_latencies(problem: PlanningTables) -> Iterator[str]:
    """Yield a fault for each link without a delay, where a demand has a latency limit."""
    if np.isfinite(problem.max_latency_ms).any():
        missing = np.isnan(problem.latency_ms)
        yield from _unknown_of_links(
            problem, missing, "latency_ms and length_km are missing", "demands have max_latency_ms"
        )


def _unknown_of_links(problem: PlanningTables, missing: Bools, what: str, why: str) -> Iterator[str]:
    """Yield a fault for each link (L,) of which neither a length nor the places of its ends are known."""
    faults = []
    for row in np.flatnonzero(missing).tolist():
        frame, table, table_row = _row_of_line(problem, row)
        where = row_name(frame, table, table_row)
        faults.append(f"{where}: {what}, and nodes have no latitude and longitude; {why}")
    yield from shorten_faults(faults, file_name(problem.links, "links"), "without a length")
