"""Problem of system `capacity`: demands that must fit, and the capacity that can be bought for them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components, dijkstra

from planner.arrays import Bools, Floats
from planner.contract.tables import collect_tables
from planner.errors import InputError
from planner.io.in_memory import take_tables
from planner_models.capacity.problem.schema import OPTIONAL_TABLES, TABLES
from planner_models.capacity.problem.tables import PlanningTables
from planner_models.capacity.problem.tunnels import TunnelPaths, read_tunnels
from planner_models.capacity.problem.validation import find_faults
from planner_models.networks.nodes import nodes_of_links


@dataclass(frozen=True, kw_only=True, eq=False)
class CapacityPlanning(PlanningTables):
    """Demands that must fit into a network, also under failures, and the modules that can be bought.

    nodes       one row a node: node, latitude?, longitude?, x?, y?
    links       tail, head, capacity_mbps, link?, installed_cost, setup_cost, setup_cost_per_km,
                routing_cost, length_km?, latency_ms?
    candidates  links that can be built: as links, without capacity; None for none
    modules     module, capacity_mbps, cost, cost_per_km, max_count?, link?
    demands     source, target, rate_mbps, growth?, max_latency_ms?, class?, year?
    classes     class, priority, protected_share; None: every demand must fit under every failure
    tunnels     path, source?, target?, parallel?, name?; None: demands may take any route
    failures    failure, member, probability?; None: no failure must be survived
    years       year, demand_factor, price_factor; None: one year
    network     one row: direction?, modules_per_link?, budget?; None: undirected links, no budget

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
