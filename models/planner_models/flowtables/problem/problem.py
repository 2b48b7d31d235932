"""Problem of system `flowtables`: rules of a switch, and the connections that meet them.

Faults of the tables of a problem that no rule of a single column finds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import pandas as pd

from planner.arrays import Bools
from planner.compiled import kernel, run_small_in_python
from planner.contract.notes import add_note
from planner.contract.tables import (
    SHOWN_ROWS,
    collect_tables,
    file_name,
    row_name,
    shorten_faults,
    validate_fields,
)
from planner.errors import InputError
from planner.io.in_memory import take_tables
from planner_models.flowtables.problem.actions import Goto, list_unknown, read_steps
from planner_models.flowtables.problem.fields import Words, make_layout
from planner_models.flowtables.problem.policies import replace_modules
from planner_models.flowtables.problem.schema import (
    ADD,
    FIELDS,
    MOST_BITS,
    MOST_CHANGES,
    MOST_ENTRIES,
    MOST_FIELDS,
    OPTIONAL_TABLES,
    REMOVE,
    RULE_TABLES,
    TABLES,
)
from planner_models.flowtables.problem.tables import DEFAULT_COSTS, SwitchTables
from planner_models.flowtables.problem.values import REGISTER, BadMatch, describe_first

MOST_PAIRS: Final = 16  # of overlapping rules that are looked for


@dataclass(frozen=True, kw_only=True, eq=False)
class FlowTables(SwitchTables):
    """Rules of a switch, the connections that meet them, and the costs of its cache.

    rules    priority, match, action, table
    flows    header, packets, start_s?: one row a connection
    fields   field, bits, stage, prefix, role?; None: the five-tuple
    costs    probe_ns, upcall_us, revalidate_us, revalidate_s, flow_limit, table_limit, microflow_entries,
             idle_s, in one row; None: as published
    installed  match, origin, packets?: entries that the cache has now, which the rules are; None: unknown
    statistics  hits, missed, lost?, mask_hits?, masks?: what the datapath has counted; None: unknown
    changes  time_s, change, priority, match, action, table; None: rules stay

    raises   InputError with every fault
    """

    def __post_init__(self) -> None:
        faults = validate_fields(self, RULE_TABLES)
        if not faults:
            faults += find_faults(self)
        if not faults and self.changes is not None:
            faults += find_bad_changes(self)
        if not faults and self.installed is not None:
            faults += _find_bad_installed(self)
        if faults:
            raise InputError(*faults)

    @classmethod
    def from_tables(cls, tables: Mapping[str, pd.DataFrame]) -> FlowTables:
        """Return the problem in its tables; rules of modules are compiled."""
        frames = take_tables(TABLES, tables, optional=OPTIONAL_TABLES)
        replace_modules(frames, FIELDS, make_layout)
        if "rules" not in frames:
            raise InputError("rules: is missing; give rules or modules")
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


def find_faults(problem: SwitchTables) -> list[str]:
    """Return all faults: first of fields and costs, then of each row, then of rules that overlap."""
    faults = [*_find_bad_sizes(problem)]
    if faults:
        return faults
    faults = [*_find_bad_matches(problem), *_find_bad_actions(problem), *_find_bad_headers(problem)]
    if not faults and problem.cost("nic_inserts_per_s") > 0 and problem.start_s is None:
        faults.append(
            f"{file_name(problem.flows, 'flows')}: start_s is missing; costs.nic_inserts_per_s limits the "
            "insertions in their time"
        )
    if not faults:
        note_unknown_fields(problem)
        faults = _find_overlaps(problem)
    return faults


def _find_bad_sizes(problem: SwitchTables) -> Iterable[str]:
    for name in ("costs", "fields", "statistics"):
        frame = getattr(problem, name)
        limit = MOST_FIELDS if name == "fields" else 1
        if frame is not None and not 1 <= len(frame) <= limit:
            yield f"{file_name(frame, name)}: has {len(frame)} rows, must have 1" + (
                f" to {limit}" if limit > 1 else ""
            )
    if problem.fields is not None:
        roles = problem.fields.get("role")
        in_packet = problem.fields if roles is None else problem.fields[roles != REGISTER]
        bits = int(in_packet["bits"].sum())
        if bits > 4 * MOST_BITS:
            where = file_name(problem.fields, "fields")
            yield f"{where}: bits add up to {bits}, must be at most {4 * MOST_BITS}"
        names = problem.fields["field"].astype(str)
        for row, name in enumerate(names):
            if not name.replace("_", "").isalnum():
                where = row_name(problem.fields, "fields", row)
                yield f"{where}: field is '{name}', must have letters, digits and underscores only"


def _find_bad_matches(problem: SwitchTables) -> list[str]:
    """Return an error for each rule with a match of no meaning, no protocol, or too many entries."""
    layout, entries = problem.whole_layout, 0
    faults: list[str] = []
    for row, text in enumerate(problem.matches):
        try:
            cubes = layout.parse(text)
            entries += len(cubes)
            rule = layout.find_missing_prerequisite(*cubes[0]) or layout.find_no_prefix(cubes[0][1])
            if rule:
                raise BadMatch(rule)
        except BadMatch as error:
            describe_first(faults, f"{row_name(problem.rules, 'rules', row)}: match '{text}': ", error)
    if not faults and entries > MOST_ENTRIES:
        faults.append(
            f"{file_name(problem.rules, 'rules')}: has {entries:,} entries, must have up to {MOST_ENTRIES:,}"
        )
    return shorten_faults(faults, file_name(problem.rules, "rules"), "with a bad match")


def _find_bad_actions(problem: SwitchTables) -> list[str]:
    """Return a fault for each action that is unknown, or goes to a table without rules."""
    tables = problem.rules["table"].astype(int).tolist()
    layout, table_numbers = problem.whole_layout, set(tables)
    faults: list[str] = []
    for row, (action, table) in enumerate(zip(problem.rules["action"].astype(str), tables, strict=True)):
        try:
            steps = read_steps(action, layout)
            for step in steps:
                if isinstance(step, Goto) and step.table not in table_numbers:
                    raise BadMatch(
                        "goes to a table without rules",
                        near=(str(step.table), map(str, sorted(table_numbers))),
                    )
                if isinstance(step, Goto) and step.table == table and len(steps) == 1 and step.port is None:
                    raise BadMatch("goes to its own table with the same packet, so that it would loop")
        except BadMatch as error:
            describe_first(faults, f"{row_name(problem.rules, 'rules', row)}: action '{action}' ", error)
    return shorten_faults(faults, file_name(problem.rules, "rules"), "with a bad action")


def note_unknown_fields(problem: SwitchTables) -> None:
    """Report the fields of actions that are no fields of the problem: no entry matches them."""
    unknown = {
        name
        for action in set(problem.rules["action"].astype(str))
        for name in list_unknown(action, problem.whole_layout)
    }
    if unknown:
        add_note(
            f"warning: {file_name(problem.rules, 'rules')}: actions change or read "
            f"{', '.join(sorted(unknown))}, no field here: a switch matches it, with more entries"
        )


def _find_bad_headers(problem: SwitchTables) -> list[str]:
    """Return a fault for each connection without a header."""
    layout, faults, count, seen = problem.layout, [], 0, set()
    unused: dict[str, None] = {}
    for row, text in enumerate(problem.flows["header"]):
        if text in seen:
            continue
        try:
            used, dropped = layout.drop_unused(text)
            layout.parse_header(used)
            seen.add(text)
            unused.update(dict.fromkeys(dropped))
        except BadMatch as error:
            count += 1
            if count <= SHOWN_ROWS:
                faults.append(f"{row_name(problem.flows, 'flows', row)}: header '{text}': {error}")
    if unused:
        add_note(
            f"{file_name(problem.flows, 'flows')}: {', '.join(unused)}: no rule matches it, so that it is "
            "not used"
        )
    return shorten_faults(faults, file_name(problem.flows, "flows"), "with a bad header", count=count)


def _find_bad_installed(problem: SwitchTables) -> list[str]:
    """Return a fault for each installed entry that is no cube of headers."""
    assert problem.installed is not None
    faults: list[str] = []
    for row, text in enumerate(problem.installed["match"].map(_text)):
        try:
            if len(problem.layout.parse(text)) > 1:
                raise BadMatch("is a range, must be one value and mask")
        except BadMatch as error:
            describe_first(
                faults, f"{row_name(problem.installed, 'installed', row)}: match '{text}': ", error
            )
    return shorten_faults(faults, file_name(problem.installed, "installed"), "with a bad match")


def find_bad_changes(problem: SwitchTables) -> list[str]:
    """Return a fault for each change that removes no rule, or after which rules have a fault."""
    changes = problem.changes
    assert changes is not None
    if len(changes) > MOST_CHANGES:
        return [
            f"{file_name(changes, 'changes')}: has {len(changes):,} rows, must have up to {MOST_CHANGES:,}"
        ]
    faults: list[str] = []
    rules = problem.rules
    for row in np.argsort(changes["time_s"].to_numpy(float), kind="stable").tolist():
        where = row_name(changes, "changes", row)
        change = changes.iloc[row]
        is_there = bool(_find_rule(rules, change).any())
        if change["change"] == REMOVE and not is_there:
            faults.append(f"{where}: removes a rule that is not there: match '{_text(change['match'])}'")
            continue
        if change["change"] == ADD and is_there:
            faults.append(f"{where}: adds a rule that is there: match '{_text(change['match'])}'")
            continue
        changed = apply_change(rules, change)
        try:
            replace(problem, rules=changed.reset_index(drop=True), flows=problem.flows.iloc[:1], changes=None)
        except InputError as error:
            faults.append(f"{where}: after this change, {str(error).splitlines()[0]}")
            continue
        rules = changed
    return shorten_faults(faults, file_name(changes, "changes"), "with a bad change")


def apply_change(rules: pd.DataFrame, change: pd.Series[Any]) -> pd.DataFrame:
    """Return the rules after a row of the table `changes`."""
    if change["change"] == REMOVE:
        return rules[~_find_rule(rules, change)]
    return pd.concat([rules, change[[*rules.columns]].to_frame().T.astype(rules.dtypes)], ignore_index=True)


def _find_rule(rules: pd.DataFrame, change: pd.Series[Any]) -> Bools:
    """Return the rules (R,) with the table, priority and match of a change."""
    same = (rules["table"] == change["table"]) & (rules["priority"] == change["priority"])
    return np.asarray(same & (rules["match"].map(_text) == _text(change["match"])), dtype=bool)


def _text(match: Any) -> str:
    return match if isinstance(match, str) else ""


def _find_overlaps(problem: SwitchTables) -> list[str]:
    """Return a fault for pairs of rules of one priority that overlap and have different actions."""
    compiled = problem.compiled
    entries = compiled.pipeline
    numbers: dict[str, int] = {}
    named = problem.rules["action"].astype(str).tolist()
    action = np.array([numbers.setdefault(name, len(numbers)) for name in named], dtype=np.int32)
    rule = np.array(entries.rule, dtype=np.int64)
    table = np.searchsorted(entries.start, np.arange(len(rule)), side="right")
    pairs = find_overlaps(
        entries.value, entries.mask, action[rule], np.array(entries.priority, dtype=np.int64),
        table.astype(np.int64), MOST_PAIRS,
    )  # fmt: skip
    faults, seen = [], set()
    for first, second in pairs.tolist():
        rows = tuple(sorted((int(entries.rule[first]), int(entries.rule[second]))))
        if rows in seen:
            continue
        seen.add(rows)
        names = [row_name(problem.rules, "rules", row) for row in rows]
        actions = [problem.rules["action"].iloc[row] for row in rows]
        faults.append(
            f"{names[1]}: overlaps row {names[0].rpartition(' ')[2]} of the same priority "
            f"{entries.priority[first]} with another action, '{actions[1]}' and '{actions[0]}'"
        )
    return shorten_faults(faults, file_name(problem.rules, "rules"), "that overlap")


@run_small_in_python(max_elements=1_000)
@kernel
def find_overlaps(value: Any, mask: Any, action: Any, priority: Any, table: Any, limit: Any) -> Any:
    """Return up to `limit` pairs (k, 2) of entries of a table and priority that meet and act differently."""
    pairs = np.zeros((limit, 2), np.int64)
    count = 0
    for i in range(len(action)):
        for j in range(i + 1, len(action)):
            if priority[j] != priority[i] or table[j] != table[i]:
                break
            if action[i] == action[j]:
                continue
            meets = True
            for w in range(value.shape[1]):
                if (value[i, w] ^ value[j, w]) & mask[i, w] & mask[j, w]:
                    meets = False
                    break
            if meets:
                pairs[count] = i, j
                count += 1
                if count == limit:
                    return pairs
    return pairs[:count]
