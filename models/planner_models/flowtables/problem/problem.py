"""Problem of system `flowtables`: rules of a switch, and the connections that meet them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final, NamedTuple

import numpy as np
import pandas as pd

from planner.arrays import Bools, Floats, Ints, Ints32
from planner.contract.tables import collect_tables, file_name, validate, validate_fields
from planner.errors import InputError
from planner.io.in_memory import take_tables
from planner_models.flowtables.problem.fields import Layout, Words, make_layout
from planner_models.flowtables.problem.policies import compile_rules
from planner_models.flowtables.problem.schema import COSTS, FIELDS, OPTIONAL_TABLES, RULE_TABLES, TABLES
from planner_models.flowtables.problem.validation import apply_change, find_bad_changes, find_faults

DROP: Final = "drop"
GOTO: Final = "goto:"
LAST: Final = -1  # in place of a next table: the action is final
DEFAULT_COSTS: Final = {name: float(column.default or 0.0) for name, column in COSTS.columns.items()}


class Rules(NamedTuple):
    """Entries of all flow tables, by table and falling priority; ranges are several entries of one rule.

    value     (N, words) value, 0 outside of the mask
    mask      (N, words)
    action    (N,) number of the action; 0 is `drop`, which also packets without a match get
    next      (N,) the place of the next table; -1 where the action is final
    rule      (N,) row of the table `rules`
    priority  (N,)
    start     (T + 1,) first entry of each table; the tables that rules name, in order
    """

    value: Words
    mask: Words
    action: Ints32
    next: Ints32
    rule: Ints32
    priority: Ints
    start: Ints


@dataclass(frozen=True, kw_only=True, eq=False)
class FlowTables:
    """Rules of a switch, the connections that meet them, and the costs of its cache.

    rules    priority, match, action, table
    flows    header, packets, start_s?: one row a connection
    fields   field, bits, stage, prefix; None: the five-tuple
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
            frames["rules"] = compile_rules(modules, policies, make_layout(fields))
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
        """The header fields and their places."""
        return make_layout(self.fields)

    @cached_property
    def matches(self) -> list[str]:
        """The matches of the rules; "" for all packets."""
        return [text if isinstance(text, str) else "" for text in self.rules["match"]]

    @cached_property
    def actions(self) -> list[str]:
        """The names of actions; the first one is `drop`."""
        named = [str(action) for action in pd.unique(self.rules["action"])]
        return [DROP, *(action for action in named if action != DROP)]

    @cached_property
    def table_numbers(self) -> list[int]:
        """The numbers of the tables that have rules, in order; table 0 is always the first."""
        return sorted({0, *self.rules["table"].astype(int)})

    @cached_property
    def entries(self) -> Rules:
        """The entries of all rules."""
        layout = self.layout
        priority = self.rules["priority"].to_numpy(float).astype(np.int64)
        tables = np.searchsorted(self.table_numbers, self.rules["table"].to_numpy(float))
        order = np.lexsort((np.arange(len(priority)), -priority, tables))
        cubes = [layout.parse(text) for text in self.matches]
        counts = np.array([len(cubes[row]) for row in order.tolist()], dtype=np.int64)
        rule = np.repeat(order, counts).astype(np.int32)
        flat = [cube for row in order.tolist() for cube in cubes[row]]
        number = {name: place for place, name in enumerate(self.actions)}
        named = self.rules["action"].astype(str).tolist()
        action = np.array([number[name] for name in named], dtype=np.int32)
        place = {number: row for row, number in enumerate(self.table_numbers)}
        following = np.array(
            [place[int(name[len(GOTO) :])] if name.startswith(GOTO) else LAST for name in named],
            dtype=np.int32,
        )
        return Rules(
            value=layout.to_words([cube[0] for cube in flat]),
            mask=layout.to_words([cube[1] for cube in flat]),
            action=action[rule],
            next=following[rule],
            rule=rule,
            priority=priority[rule],
            start=np.searchsorted(tables[rule], np.arange(len(self.table_numbers) + 1)).astype(np.int64),
        )

    @cached_property
    def headers(self) -> Words:
        """(F, words) header of each connection."""
        known: dict[str, int] = {}
        parse = self.layout.parse_header
        numbers = []
        for text in self.flows["header"]:
            if text not in known:
                known[text] = parse(text)
            numbers.append(known[text])
        return self.layout.to_words(numbers)

    @cached_property
    def full_mask(self) -> Words:
        """(words,) mask of all bits of all fields."""
        full: Words = self.layout.to_words([self.layout.full_mask(self.layout.by_name)])[0]
        return full

    @cached_property
    def used_mask(self) -> Words:
        """(words,) mask of the bits that some rule matches."""
        used: Words = np.bitwise_or.reduce(self.entries.mask, axis=0, initial=np.uint64(0))
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
