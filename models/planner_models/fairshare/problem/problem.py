"""Problem of system `fairshare`: nodes of a partitioned store, and the tenants that share it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from planner.arrays import Floats
from planner.contract.tables import collect_tables, validate_fields
from planner.errors import InputError
from planner.io.in_memory import take_tables
from planner_models.fairshare.problem.schema import OPTIONAL_TABLES, TABLES
from planner_models.fairshare.problem.tables import StoreTables
from planner_models.fairshare.problem.validation import find_faults


@dataclass(frozen=True, kw_only=True, eq=False)
class SharedStore(StoreTables):
    """Nodes of a store, tenants, and their partitions with the requests for them.

    nodes       node, rate_kops, memory_gb, domain?, failed
    tenants     tenant, weight, mix, replicas, most_nodes?
    partitions  tenant, partition, demand_kops, size_gb
    resources   node, resource, capacity; None: requests are the only resource
    uses        tenant, resource, per_op
    placed      tenant, partition, node; None: nothing is placed yet
    pinned      tenant, partition, node
    forbidden   tenant, partition, node
    events      at_s, tenant, partition, demand_kops: changes of demand in a simulation

    Below, N nodes, T tenants, P partitions and R resources, of which the first one is requests; arrays refer
    to them by row.

    raises   InputError with every fault
    """

    def __post_init__(self) -> None:
        faults = validate_fields(self, TABLES)
        if not faults:
            faults += find_faults(self)
        if faults:
            raise InputError(*faults)

    @classmethod
    def from_tables(cls, tables: Mapping[str, pd.DataFrame]) -> SharedStore:
        """Return the problem in its tables."""
        return cls(**take_tables(TABLES, tables, optional=OPTIONAL_TABLES))

    def to_tables(self) -> dict[str, pd.DataFrame]:
        """Return the tables that make this problem again."""
        return collect_tables(self, TABLES)

    def size(self) -> dict[str, int]:
        """Return the number of tenants, partitions, replicas and nodes."""
        return {
            "tenants": len(self.tenants),
            "partitions": len(self.partitions),
            "replicas": int(self.wanted_replicas.sum()),
            "nodes": len(self.nodes),
        }

    def with_demand(self, demand_kops: Floats) -> SharedStore:
        """Return the problem with other demands of the partitions, (P,)."""
        return replace(self, partitions=self.partitions.assign(demand_kops=demand_kops))

    def with_nodes(self, **columns: Any) -> SharedStore:
        """Return the problem with other columns of `nodes`."""
        return replace(self, nodes=self.nodes.assign(**columns))

    def with_tenants(self, **columns: Any) -> SharedStore:
        """Return the problem with other columns of `tenants`."""
        return replace(self, tenants=self.tenants.assign(**columns))

    def with_placed(self, placed: pd.DataFrame) -> SharedStore:
        """Return the problem with other present places of replicas."""
        return replace(self, placed=placed)

    def with_events(self, events: pd.DataFrame) -> SharedStore:
        """Return the problem with changes of demand in a simulation."""
        return replace(self, events=events)

    # --- nodes ----------------------------------------------------------------------------

    # --- tenants --------------------------------------------------------------------------

    # --- partitions -----------------------------------------------------------------------

    # --- resources ------------------------------------------------------------------------
