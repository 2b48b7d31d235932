"""Names of nodes that tables of users spell in several ways: `London `, `london` and `LONDON`.

A name that is no node is that of the one node that differs by case and spaces only. Valid tables stay as
they are, but for names that differ by spaces alone, which nobody sees.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import pandas as pd

from planner.contract.end_columns import ENDS, NODE_COLUMNS
from planner.contract.notes import add_note
from planner.contract.table import Table
from planner.formatting import counted

MAX_NAMES: Final = 1_000_000
"""Names of nodes in tables up to which other spellings are looked for."""


def unify_names(tables: Iterable[Table], frames: Mapping[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
    """Return tables in which each node has one spelling, that of the first table that names it; say so."""
    columns = {
        table.name: names
        for table in tables
        if table.name in frames
        and (names := [name for name in _node_columns(table) if name in frames[table.name]])
    }
    if not columns:
        return dict(frames)
    first, *_ = columns
    names_of = {name: _distinct(frames[name], columns_of) for name, columns_of in columns.items()}
    if sum(map(len, names_of.values())) > MAX_NAMES:
        return dict(frames)
    spelling: dict[str, str] = {}
    for name in [name for names in names_of.values() for name in names]:
        plain = _without_spaces(name)
        spelling[plain] = name if spelling.get(plain, name) == name else plain
    by_case: dict[str, list[str]] = {}
    for name in dict.fromkeys(spelling[_without_spaces(name)] for name in names_of[first]):
        by_case.setdefault(_without_spaces(name).casefold(), []).append(name)
    nodes = {name for names in by_case.values() for name in names}
    unified = dict(frames)
    for table, names in columns.items():
        changes: dict[str, str] = {}
        for name in names_of[table]:
            same = spelling[_without_spaces(name)]
            near = by_case.get(_without_spaces(name).casefold(), [])
            selected = near[0] if same not in nodes and len(near) == 1 else same
            if selected != name:
                changes[name] = selected
        if changes:
            unified[table] = _rename(frames[table], names, changes)
            example = next(iter(changes.items()))
            more = len(changes) - 1
            count = f", and {counted(more, 'more names')} likewise" if more else ""
            where = frames[table].attrs.get("where", table)
            add_note(f"assumed: {where}: '{example[0]}' is the node '{example[1]}'{count}")
    return unified


def _node_columns(table: Table) -> list[str]:
    """Return the columns of a table that name nodes."""
    own_names = [name for name in table.key[:1] if len(table.key) == 1 and name in NODE_COLUMNS]
    ends = [name for pair in ENDS if set(pair) <= set(table.columns) for name in pair]
    return own_names or ends


def _distinct(frame: pd.DataFrame, columns: Iterable[str]) -> list[str]:
    """Return the distinct names in columns, in the order in which they occur."""
    return list(dict.fromkeys(str(name) for column in columns for name in frame[column].dropna().unique()))


def _without_spaces(name: str) -> str:
    return " ".join(name.split())


def _rename(frame: pd.DataFrame, columns: Iterable[str], changes: Mapping[str, str]) -> pd.DataFrame:
    """Return a table with other spellings of names; columns keep their types."""
    changed = frame.copy(deep=False)
    for column in columns:
        cells = frame[column]
        renamed = cells.astype(object).map(lambda name: changes.get(name, name))
        changed[column] = renamed.astype(
            "category" if isinstance(cells.dtype, pd.CategoricalDtype) else cells.dtype
        )
    changed.attrs = dict(frame.attrs)
    return changed
