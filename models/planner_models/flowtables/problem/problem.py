"""Problem of system `flowtables`: rules of a switch, and the connections that meet them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from planner.arrays import Bools
from planner.contract.tables import collect_tables, file_name, validate, validate_fields
from planner.errors import InputError
from planner.io.in_memory import take_tables
from planner_models.flowtables.problem.fields import Words, make_layout
from planner_models.flowtables.problem.policies import compile_rules as compile_policies
from planner_models.flowtables.problem.schema import FIELDS, OPTIONAL_TABLES, RULE_TABLES, TABLES
from planner_models.flowtables.problem.tables import DEFAULT_COSTS, SwitchTables
from planner_models.flowtables.problem.validation import apply_change, find_bad_changes, find_faults


@dataclass(frozen=True, kw_only=True, eq=False)
class FlowTables(SwitchTables):
    """Rules of a switch, the connections that meet them, and the costs of its cache.

    rules    priority, match, action, table
    flows    header, packets, start_s?: one row a connection
    fields   field, bits, stage, prefix, role?; None: the five-tuple
    costs    probe_ns, upcall_us, revalidate_us, revalidate_s, flow_limit, table_limit, microflow_entries,
             idle_s, in one row; None: as published
    changes  time_s, change, priority, match, action, table; None: rules stay

    raises   InputError with every fault
    """

    def __post_init__(self) -> None:
        faults = validate_fields(self, RULE_TABLES)
        if not faults:
            faults += find_faults(self)
        if not faults and self.changes is not None:
            faults += find_bad_changes(self)
        if faults:
            raise InputError(*faults)

    @classmethod
    def from_tables(cls, tables: Mapping[str, pd.DataFrame]) -> FlowTables:
        """Return the problem in its tables; rules of modules are compiled."""
        frames = take_tables(TABLES, tables, optional=OPTIONAL_TABLES)
        modules, policies = frames.pop("modules", None), frames.pop("policies", None)
        if modules is None and policies is not None:
            raise InputError("modules: is missing; policies compose modules")
        if modules is None and "rules" not in frames:
            raise InputError("rules: is missing; give rules or modules")
        if modules is not None and "rules" in frames:
            raise InputError("rules: give rules or modules, not both")
        if modules is not None:
            fields = frames.get("fields")
            if fields is not None:
                fields = validate(FIELDS, fields, where=file_name(fields, "fields"))
            frames["rules"] = compile_policies(modules, policies, make_layout(fields))
        return cls(**frames)

    def to_tables(self) -> dict[str, pd.DataFrame]:
        """Return the tables that make this problem again."""
        return collect_tables(self, RULE_TABLES)

    def size(self) -> dict[str, int]:
        """Return the number of rules, of entries without ranges, and of connections."""
        return {
            "rules": len(self.rules),
            "entries": len(self.entries.action),
            "connections": len(self.flows),
        }

    def with_flows(self, flows: pd.DataFrame) -> FlowTables:
        """Return the problem with other connections."""
        return replace(self, flows=flows)

    def rules_after(self, time_s: float) -> FlowTables:
        """Return the problem with the rules after all changes up to a time, and no changes.

        raises  InputError where they are no rules of a switch
        """
        rules = self.rules
        if self.changes is not None:
            order = np.argsort(self.changes["time_s"].to_numpy(float), kind="stable")
            for row in order.tolist():
                if self.changes["time_s"].iloc[row] <= time_s:
                    rules = apply_change(rules, self.changes.iloc[row])
        return replace(self, rules=rules.reset_index(drop=True), changes=None)

    def with_costs(self, **values: float) -> FlowTables:
        """Return the problem with other values in the table `costs`."""
        if not values:
            return self
        now = self.costs if self.costs is not None else pd.DataFrame([DEFAULT_COSTS])
        return replace(self, costs=now.assign(**values))

    # --- as arrays ------------------------------------------------------------------------


def match_any(words: Words, value: Words, mask: Words) -> Bools:
    """Return the mask of some entries (N, words) that match a header (words,)."""
    matches: Bools = (((words ^ value) & mask) == 0).all(axis=1)
    return matches
