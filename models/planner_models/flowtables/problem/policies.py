"""Policies of modules, compiled to the rules of one table: in parallel, in sequence, and restricted.

A policy is a list of entries, of which the first that matches a packet gives its actions; packets that none
matches get no action, and are dropped. Both parts of a composition are looked up for each packet, so that a
composed list has an entry for each pair of entries that meet, in the order of the first list and then of the
second (Foster et al. 2013, III).

>>> import numpy as np
>>> from planner_models.flowtables.problem.fields import make_layout
>>> from planner_models.flowtables.problem.generators import draw_modules
>>> modules, policies = draw_modules(200, 5_000, same_field=False, random=np.random.default_rng(1))
>>> for merging in merge_modules(modules, policies, make_layout(None)):
...     print(merging.lookups, "lookups of a packet:", sum(merging.entries), "entries")
1 lookups of a packet: 1005201 entries
2 lookups of a packet: 5202 entries
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np
import pandas as pd

from planner.contract.table import Table
from planner.contract.tables import file_name, row_name, validate
from planner.errors import InputError, did_you_mean
from planner_models.flowtables.problem.actions import DROP, read_steps
from planner_models.flowtables.problem.fields import Layout
from planner_models.flowtables.problem.pipeline import (
    Merging,
    Stage,
    count_joint_cubes,
    make_stage,
    merge_tables,
)
from planner_models.flowtables.problem.schema import MODULES, MOST_ENTRIES, PARALLEL, POLICIES, RESTRICT
from planner_models.flowtables.problem.values import BadMatch

PASS: Final = "pass"


class Entry(NamedTuple):
    """A cube of packets and its actions; none: they are dropped."""

    value: int
    mask: int
    actions: tuple[str, ...]


Entries = list[Entry]
REST: Final = Entry(0, 0, ())


def replace_modules(
    frames: dict[str, pd.DataFrame], fields_table: Table, find_layout: Callable[[pd.DataFrame | None], Layout]
) -> None:
    """Replace the tables `modules` and `policies`, where they are given, by the rules that they compose.

    fields_table  declares the table `fields`
    find_layout   returns the layout of headers for that table, or for None
    raises        InputError for policies without modules, for modules beside rules, and as `compile_rules`
    """
    modules, policies = frames.pop("modules", None), frames.pop("policies", None)
    if modules is None:
        if policies is not None:
            raise InputError("modules: is missing; policies compose modules")
        return
    if "rules" in frames:
        raise InputError("rules: give rules or modules, not both")
    fields = frames.get("fields")
    if fields is not None:
        fields = validate(fields_table, fields, where=file_name(fields, "fields"))
    frames["rules"] = compile_rules(modules, policies, find_layout(fields))


def compile_rules(modules: pd.DataFrame, policies: pd.DataFrame | None, layout: Layout) -> pd.DataFrame:
    """Return the table `rules` with the effect of the last policy; with one module alone, of that module.

    modules   module, priority, match, action
    policies  policy, operator, first, second; a policy may name modules, and policies before it
    raises    InputError for names that are unknown or there twice, matches without a meaning, several modules
              without policies, and policies of more than 1,000,000 entries
    """
    entries = _compose(*_read(modules, policies, layout), layout)
    distinct: dict[tuple[int, int], Entry] = {}
    for entry in entries:  # the first of two equal cubes gives the actions
        distinct.setdefault((entry.value, entry.mask), entry)
    if len(distinct) and not (last := next(reversed(distinct.values()))).mask and not last.actions:
        del distinct[last.value, last.mask]  # packets without a match are dropped anyway
    return pd.DataFrame(
        {
            "priority": np.arange(len(distinct), 0.0, -1),
            "match": [layout.format_match(entry.value, entry.mask) for entry in distinct.values()],
            "action": [_format(entry.actions) for entry in distinct.values()],
        }
    )


def find_bad_action(parts: Sequence[str], layout: Layout) -> str:
    """Return the rule that the actions of a module violate."""
    for action in parts:
        if action.startswith(("set:", "copy:")):
            return "changes headers, which modules cannot: modules after it would see others"
        if action.startswith("goto:") or action == "exit":
            return "is no action of a module, which has one table"
        try:
            read_steps(action, layout)
        except BadMatch as error:
            return str(error)
    return ""


def merge_modules(
    modules: pd.DataFrame, policies: pd.DataFrame | None, layout: Layout, *, memory: int | None = None
) -> list[Merging]:
    """Return the sharing of tables by the modules of a policy that packets pass one after another.

    The parts of the last policy that are in parallel are the tables of a pipeline: each adds its actions. For
    each number of lookups, the groups of neighbours with the fewest entries; see `merge_tables`.

    memory  most entries of all tables together
    """
    parts, rows = _read(modules, policies, layout)
    names = _find_parallel(rows, rows[-1][0]) if rows else list(parts)
    stages = [_make_stage(_compose(parts, _rows_of(rows, name), layout, name), layout) for name in names]
    return merge_tables(stages, memory=memory)


# --- composition --------------------------------------------------------------------------


def join_parallel(first: Sequence[Entry], second: Sequence[Entry]) -> Entries:
    """Return the policy that gives packets the actions of both."""
    return [
        Entry(entry.value | other.value, entry.mask | other.mask, _union(entry.actions, other.actions))
        for entry in _complete(first)
        for other in _complete(second)
        if (entry.value ^ other.value) & entry.mask & other.mask == 0
    ]


def join_sequential(first: Sequence[Entry], second: Sequence[Entry]) -> Entries:
    """Return the policy that gives the first's actions and then the second's, where neither drops."""
    entries: Entries = []
    for entry in _complete(first):
        if not entry.actions:
            entries.append(entry)
            continue
        entries += [
            Entry(
                entry.value | other.value,
                entry.mask | other.mask,
                _union(entry.actions, other.actions) if other.actions else (),
            )
            for other in _complete(second)
            if (entry.value ^ other.value) & entry.mask & other.mask == 0
        ]
    return entries


def _complete(entries: Sequence[Entry]) -> list[Entry]:
    """Return entries up to the first that holds all packets, or with one that drops all others."""
    distinct: list[Entry] = []
    for entry in entries:
        distinct.append(entry)
        if not entry.mask:
            return distinct
    return [*distinct, REST]


def _union(first: tuple[str, ...], second: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*first, *second)))


def _format(actions: tuple[str, ...]) -> str:
    """Return actions as the table `rules` has them, in one order; packets that only pass are dropped."""
    named = sorted({action for action in actions if action != PASS})
    return " ".join(named) or DROP


# --- reading ------------------------------------------------------------------------------

Row = tuple[str, str, str, str]


def _read_entries(text: object, action: str, layout: Layout) -> Entries:
    """Return the entries of a row of modules; raises BadMatch where its match or action is none."""
    try:
        cubes = layout.parse(text if isinstance(text, str) else "")
    except BadMatch as error:
        raise BadMatch(f"match '{text}': {error}") from error
    actions = tuple(step for step in action.split() if step != DROP)
    rule = find_bad_action([step for step in actions if step != PASS], layout)
    if rule:
        raise BadMatch(f"action '{action}' {rule}")
    return [Entry(value, mask, actions) for value, mask in cubes]


def _read(
    modules: pd.DataFrame, policies: pd.DataFrame | None, layout: Layout
) -> tuple[dict[str, Entries], list[Row]]:
    """Return the entries of each module, and the rows of policies, with filters of matches as modules."""
    frame = validate(MODULES, modules, where=file_name(modules, "modules"))
    frame.attrs = dict(modules.attrs)
    faults: list[str] = []
    parts: dict[str, Entries] = {str(name): [] for name in pd.unique(frame["module"])}
    order = np.argsort(-frame["priority"].to_numpy(float), kind="stable")
    for row in order.tolist():
        name, text, action = (frame[column].iloc[row] for column in ("module", "match", "action"))
        try:
            parts[str(name)] += _read_entries(text, str(action), layout)
        except BadMatch as error:
            faults.append(f"{row_name(frame, 'modules', row)}: {error}")
    rows: list[Row] = []
    if policies is not None:
        table = validate(POLICIES, policies, where=file_name(policies, "policies"))
        table.attrs = dict(policies.attrs)
        faults += _read_policies(table, parts, rows, layout)
    elif len(parts) > 1:
        faults.append(f"policies: is missing; it says how the {len(parts)} modules are composed")
    if faults:
        raise InputError(*faults)
    return parts, rows


def _read_policies(
    frame: pd.DataFrame, parts: dict[str, Entries], rows: list[Row], layout: Layout
) -> list[str]:
    """Add the rows of policies to `rows`, and filters to `parts`; return all faults."""
    faults, names = [], list(parts)
    for row, (name, operator, first, second) in enumerate(
        zip(*(frame[column].astype(str) for column in POLICIES.columns), strict=True)
    ):
        where = row_name(frame, "policies", row)
        if name in names:
            faults.append(f"{where}: policy '{name}' is the name of a module or policy before it")
        for column, module in (("first", first), ("second", second)):
            if module not in names and not (operator == RESTRICT and column == "second"):
                faults.append(
                    f"{where}: {column} '{module}' is no module, and no policy before it"
                    + did_you_mean(module, names)
                )
        if operator == RESTRICT:
            filter_name = f"{name}: {second}"
            try:
                parts[filter_name] = [Entry(*cube, (PASS,)) for cube in layout.parse(second)]
            except BadMatch as error:
                faults.append(f"{where}: second '{second}': {error}")
            first, second = filter_name, first
        rows.append((name, operator, first, second))
        names.append(name)
    return faults


def _compose(parts: Mapping[str, Entries], rows: Sequence[Row], layout: Layout, name: str = "") -> Entries:
    """Return the entries of a policy, or module; default: of the last one."""
    composed = dict(parts)
    for policy, operator, first, second in rows:
        stages = [_make_stage(composed[operand], layout) for operand in (first, second)]
        if count_joint_cubes(stages, limit=MOST_ENTRIES) is None:
            raise InputError(
                f"policies: {policy} needs more than {MOST_ENTRIES:,} entries in one table; modules in "
                "parallel may have tables of their own"
            )
        join = join_parallel if operator == PARALLEL else join_sequential
        composed[policy] = join(composed[first], composed[second])
    return composed[name or (rows[-1][0] if rows else next(iter(parts)))]


def _find_parallel(rows: Sequence[Row], name: str) -> list[str]:
    """Return the parts of a policy that are in parallel, in their order."""
    for policy, operator, first, second in rows:
        if policy == name and operator == PARALLEL:
            return [*_find_parallel(rows, first), *_find_parallel(rows, second)]
    return [name]


def _rows_of(rows: Sequence[Row], name: str) -> list[Row]:
    """Return the rows that a policy needs, in their order; none for a module."""
    row_of = [row for row in rows if row[0] == name]
    if not row_of:
        return []
    needed = [*_rows_of(rows, row_of[0][2]), *_rows_of(rows, row_of[0][3]), *row_of]
    return [row for row in rows if row in needed]


def _make_stage(entries: Entries, layout: Layout) -> Stage:
    """Return entries as a table of a pipeline."""
    entries = _complete(entries)
    value = layout.to_words([entry.value for entry in entries])
    return make_stage(value, layout.to_words([entry.mask for entry in entries]))
