"""Faults of the tables of a problem that no rule of a single column finds."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd

from planner.arrays import Bools
from planner.compiled import kernel, run_small_in_python
from planner.contract.notes import add_note
from planner.contract.tables import SHOWN_ROWS, file_name, row_name, shorten_faults
from planner.errors import InputError
from planner_models.flowtables.problem.actions import Goto, list_unknown, read_steps
from planner_models.flowtables.problem.schema import (
    ADD,
    MOST_BITS,
    MOST_CHANGES,
    MOST_ENTRIES,
    MOST_FIELDS,
    REMOVE,
)
from planner_models.flowtables.problem.values import REGISTER, BadMatch, describe_first

if TYPE_CHECKING:
    from planner_models.flowtables.problem.tables import SwitchTables

MOST_PAIRS: Final = 16  # of overlapping rules that are looked for


def find_faults(problem: SwitchTables) -> list[str]:
    """Return all faults: first of fields and costs, then of each row, then of rules that overlap."""
    faults = [*_find_bad_sizes(problem)]
    if faults:
        return faults
    faults = [*_find_bad_matches(problem), *_find_bad_actions(problem), *_find_bad_headers(problem)]
    if not faults:
        note_unknown_fields(problem)
        faults = _find_overlaps(problem)
    return faults


def _find_bad_sizes(problem: SwitchTables) -> Iterable[str]:
    for name in ("costs", "fields"):
        frame = getattr(problem, name)
        limit = 1 if name == "costs" else MOST_FIELDS
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
