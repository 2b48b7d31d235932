"""Problem of system `consolidation`: types of hosts with NUMA nodes, and machines to place on them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
import pandas as pd

from planner.contract.tables import collect_tables, file_name, row_name, validate_fields
from planner.errors import InputError
from planner.io.in_memory import take_tables
from planner_models.consolidation.problem import validation
from planner_models.consolidation.problem.schema import OPTIONAL_TABLES, TABLES
from planner_models.consolidation.problem.tables import ConsolidationTables

SIZES: Final = ("threads", "memory_gb")
"""Columns of hosts that make up their only node."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Consolidation(ConsolidationTables):
    """Machines to place on hosts with NUMA nodes, in valid tables.

    raises   InputError with every error
    """

    def __post_init__(self) -> None:
        faults = validate_fields(self, TABLES)
        if not faults:
            faults += validation.find_unknown_names(self)
        if not faults:
            faults += validation.find_contradictions(self)
        if not faults:
            faults += validation.find_oversized(self)
        if faults:
            raise InputError(*faults)
        stated = [name for name in SIZES if name in self.hosts]
        if stated:  # they are those of the nodes, which adjustments change
            object.__setattr__(self, "hosts", self.hosts.drop(columns=stated))

    @classmethod
    def from_tables(cls, tables: Mapping[str, pd.DataFrame]) -> Consolidation:
        """Return the problem in its tables.

        Without a table of nodes, each host has one, with the threads and memory of the table of hosts.
        """
        frames = take_tables(TABLES, tables, optional=OPTIONAL_TABLES)
        return cls(**frames if "nodes" in frames else _add_nodes(frames))

    def to_tables(self) -> dict[str, pd.DataFrame]:
        """Return the tables that make this problem again."""
        return collect_tables(self, TABLES)

    def size(self) -> dict[str, int]:
        """Return the number of host types, shapes of machines, machines and present hosts."""
        return {
            "host types": len(self.hosts),
            "shapes": len(self.machines),
            "machines": int(self.count.sum()),
            "present hosts": 0 if self.present is None else len(self.present),
        }


def _add_nodes(frames: Mapping[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
    """Return the tables with a node for each host; raise InputError where hosts have no sizes."""
    hosts = frames["hosts"]
    where = file_name(hosts, "hosts")
    missing = [name for name in SIZES if name not in hosts]
    if missing:
        raise InputError(
            f"nodes: is missing; without NUMA nodes, {where} needs columns threads and memory_gb, and has no "
            + " and no ".join(missing)
        )
    faults = [
        f"{row_name(hosts, 'hosts', row)}: {name} is empty, and the table nodes is absent"
        for name in SIZES
        for row in np.flatnonzero(pd.to_numeric(hosts[name], errors="coerce").isna()).tolist()
    ]
    if faults:
        raise InputError(*faults)
    nodes = hosts[["host_type", *SIZES]].assign(node="0")[["host_type", "node", *SIZES]]
    nodes.attrs = {}
    return {**frames, "hosts": hosts.drop(columns=list(SIZES)), "nodes": nodes}
