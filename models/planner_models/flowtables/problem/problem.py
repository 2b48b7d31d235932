"""Problem of system `flowtables`: rules of a switch, and the connections that meet them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

import numpy as np
import pandas as pd

from planner.arrays import Bools, Floats, Ints
from planner.contract.tables import collect_tables, file_name, validate, validate_fields
from planner.errors import InputError
from planner.io.in_memory import take_tables
from planner_models.flowtables.problem.actions import CONTROLLER, Step, read_steps
from planner_models.flowtables.problem.entries import (
    Compiled,
    Rules,
    Searched,
    compile_rules,
    list_searched,
)
from planner_models.flowtables.problem.fields import Layout, Words, make_layout
from planner_models.flowtables.problem.policies import compile_rules as compile_policies
from planner_models.flowtables.problem.schema import COSTS, FIELDS, OPTIONAL_TABLES, RULE_TABLES, TABLES
from planner_models.flowtables.problem.validation import apply_change, find_bad_changes, find_faults

DEFAULT_COSTS: Final = {name: float(column.default or 0.0) for name, column in COSTS.columns.items()}


@dataclass(frozen=True, kw_only=True, eq=False)
class FlowTables:
    """Rules of a switch, the connections that meet them, and the costs of its cache.

    rules    priority, match, action, table
    flows    header, packets, start_s?: one row a connection
    fields   field, bits, stage, prefix, role?; None: the five-tuple
    costs    probe_ns, upcall_us, revalidate_us, revalidate_s, flow_limit, table_limit, microflow_entries,
             idle_s, in one row; None: as published
    changes  time_s, change, priority, match, action, table; None: rules stay

    raises   InputError with every fault
    """

    rules: pd.DataFrame
    flows: pd.DataFrame
    fields: pd.DataFrame | None = None
    costs: pd.DataFrame | None = None
    changes: pd.DataFrame | None = None

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

    @cached_property
    def change_times(self) -> Floats:
        """Times at which rules change, ascending, s."""
        if self.changes is None:
            return np.zeros(0)
        return np.unique(self.changes["time_s"].to_numpy(float))

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

    @cached_property
    def layout(self) -> Layout:
        """The header fields of packets and their places."""
        return make_layout(self.fields)

    @cached_property
    def whole_layout(self) -> Layout:
        """The same with registers after them."""
        return make_layout(self.fields, with_registers=True)

    @cached_property
    def matches(self) -> list[str]:
        """The matches of the rules; "" for all packets."""
        return [text if isinstance(text, str) else "" for text in self.rules["match"]]

    @cached_property
    def steps(self) -> list[list[Step]]:
        """The steps of each rule's action."""
        known = {name: read_steps(name, self.whole_layout) for name in set(self.rules["action"].astype(str))}
        return [known[name] for name in self.rules["action"].astype(str)]

    @cached_property
    def table_numbers(self) -> list[int]:
        """The numbers of the tables that have rules, in order; table 0 is always the first."""
        return sorted({0, *self.rules["table"].astype(int)})

    @cached_property
    def compiled(self) -> Compiled:
        """The entries of all rules and the names of their actions."""
        return compile_rules(self.rules, self.layout, self.whole_layout, self.steps, self.table_numbers)

    @cached_property
    def is_plain(self) -> bool:
        """True where the lookups of packets are the flow tables: no rule writes what another one reads."""
        return self.compiled.translated is None

    @property
    def entries(self) -> Rules:
        """The entries of all lookups."""
        return self.compiled.rules

    @property
    def actions(self) -> list[str]:
        """The names of actions; the first one is `drop`."""
        return self.compiled.actions

    @cached_property
    def searched(self) -> Searched:
        """The entries as a search of the switch meets them."""
        return list_searched(self.compiled, self.layout, self.whole_layout)

    @cached_property
    def is_punt(self) -> Bools:
        """(A,) whether packets of each action go to the controller, so that each of them is an upcall."""
        return np.array([CONTROLLER in name.split() for name in self.actions], dtype=bool)

    @cached_property
    def headers(self) -> Words:
        """(F, words) header of each connection."""
        known: dict[str, int] = {}
        parse = self.layout.parse_header
        numbers = []
        for text in self.flows["header"]:
            if text not in known:
                known[text] = parse(self.layout.drop_unused(text)[0])
            numbers.append(known[text])
        return self.layout.to_words(numbers)

    @cached_property
    def full_mask(self) -> Words:
        """(words,) mask of all bits of all fields."""
        full: Words = self.layout.to_words([self.layout.full_mask(self.layout.by_name)])[0]
        return full

    @cached_property
    def used_mask(self) -> Words:
        """(words,) mask of the bits that some rule matches, or some entry of a cache must match."""
        rules = self.entries
        masks = np.vstack([rules.mask, rules.needs, rules.always])
        used: Words = np.bitwise_or.reduce(masks, axis=0, initial=np.uint64(0))
        return used

    @cached_property
    def packets(self) -> Ints:
        """(F,) packets of each connection."""
        return self.flows["packets"].to_numpy(float).astype(np.int64)

    def cost(self, name: str) -> float:
        """Return a value of the table `costs`."""
        if self.costs is None:
            return DEFAULT_COSTS[name]
        return float(self.costs[name].iloc[0])

    @cached_property
    def probe_us(self) -> float:
        """CPU time of one lookup, us."""
        return self.cost("probe_ns") / 1_000

    @cached_property
    def most_entries(self) -> int:
        """The entries that the cache may hold, by its limit and by the time to check them again."""
        each = self.cost("revalidate_us")
        by_time = int(1e6 * self.cost("revalidate_s") / each * (1 + 1e-12)) if each > 0 else len(self.flows)
        return min(int(self.cost("flow_limit")), by_time)


def match_any(words: Words, value: Words, mask: Words) -> Bools:
    """Return which of some entries (N, words) match a header (words,)."""
    found: Bools = (((words ^ value) & mask) == 0).all(axis=1)
    return found
