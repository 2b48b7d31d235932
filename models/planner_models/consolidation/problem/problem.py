"""Problem of system `consolidation`: types of hosts with NUMA nodes, and machines to place on them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pandas as pd

from planner.contract.tables import collect_tables, validate_fields
from planner.errors import InputError
from planner.io.in_memory import take_tables
from planner_models.consolidation.problem import validation
from planner_models.consolidation.problem.schema import OPTIONAL_TABLES, TABLES
from planner_models.consolidation.problem.tables import ConsolidationTables


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

    @classmethod
    def from_tables(cls, tables: Mapping[str, pd.DataFrame]) -> Consolidation:
        """Return the problem in its tables."""
        return cls(**take_tables(TABLES, tables, optional=OPTIONAL_TABLES))

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
