"""Names of nodes that tables of users spell in several ways: `London `, `london` and `LONDON`.

A name that is no node is that of the one node that differs by case and spaces only. Valid tables stay as
they are, but for names that differ by spaces alone, which nobody sees, or by the mark of a footnote.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Final

import pandas as pd

from planner.contract.end_columns import ENDS, NODE_COLUMNS
from planner.contract.notes import add_note
from planner.contract.table import Table
from planner.formatting import counted

FOOTNOTE: Final = re.compile(r"\s*[*†‡§¹²³⁴⁵⁶⁷⁸⁹]{1,3}$")
"""Marks of footnotes behind a name."""
WITHOUT_WIDTH: Final = dict.fromkeys(map(ord, "\u200b\u200c\u200d\u2060\ufeff\u00ad"))
"""Letters that nobody sees, to be left out of names that are compared."""
MAX_NAMES: Final = 1_000_000
"""Names of nodes in tables up to which other spellings are looked for."""


def unify_names(tables: Iterable[Table], frames: Mapping[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
    """Return tables in which each node has one spelling, that of the first table that names it; say so."""
    columns = _named_columns(tables, frames)
    names_of = {name: _distinct(frames[name], columns_of) for name, columns_of in columns.items()}
    unified = dict(frames)
    if not columns or sum(map(len, names_of.values())) > MAX_NAMES:
        return unified
    spelling = _spell_without_spaces(chain.from_iterable(names_of.values()))
    first, *_ = columns
    by_case = _spell_without_case(names_of[first], spelling)
    _note_alike(by_case, frames[first].attrs.get("where", first))
    for table, names in columns.items():
        selected = {name: _select_spelling(name, spelling, by_case) for name in names_of[table]}
        changes = {name: node for name, node in selected.items() if node != name}
        if changes:
            unified[table] = _rename(frames[table], names, changes)
            _note_changes(changes, frames[table].attrs.get("where", table))
    return unified


def _named_columns(tables: Iterable[Table], frames: Mapping[str, pd.DataFrame]) -> dict[str, list[str]]:
    """Return the columns that name nodes, of each table that has some."""
    present = (table for table in tables if table.name in frames)
    columns = {
        table.name: [name for name in _node_columns(table) if name in frames[table.name]] for table in present
    }
    return {table: names for table, names in columns.items() if names}


def _spell_without_case(names: Iterable[str], spelling: Mapping[str, str]) -> dict[str, list[str]]:
    """Return the spellings of names by their letters without spaces and case."""
    by_case: dict[str, list[str]] = {}
    for name in dict.fromkeys(spelling[_without_spaces(name)] for name in names):
        by_case.setdefault(_without_spaces(name).casefold(), []).append(name)
    return by_case


def _spell_without_spaces(names: Iterable[str]) -> dict[str, str]:
    """Return the spelling of each name without the spaces around it: the only one, else that without them.

    A name with the mark of a footnote is the one without the mark, where that is there.
    """
    spelling: dict[str, str] = {}
    for name in names:
        plain = _without_spaces(name)
        spelling[plain] = name if spelling.get(plain, name) == name else plain
    for name in [name for name in spelling if FOOTNOTE.search(name)]:
        if (unmarked := FOOTNOTE.sub("", name)) in spelling:
            spelling[name] = spelling[unmarked]
    return spelling


def _select_spelling(name: str, spelling: Mapping[str, str], by_case: Mapping[str, Sequence[str]]) -> str:
    """Return the spelling of a node, in the case of the first table where that has only one such node.

    spelling  of the names without spaces
    by_case   nodes of the first table by their names without case and spaces
    """
    plain = _without_spaces(name)
    near = by_case.get(plain.casefold(), ())
    return near[0] if len(near) == 1 else spelling[plain]


def _note_changes(changes: Mapping[str, str], where: str) -> None:
    name, node = next(iter(changes.items()))
    more = len(changes) - 1
    count = f", and {counted(more, 'more names')} likewise" if more else ""
    add_note(f"assumed: {where}: '{name}' is the node '{node}'{count}")


def _note_alike(by_case: Mapping[str, Sequence[str]], where: str, what: str = "nodes") -> None:
    """Say that names of one table are different although they differ by case or spaces only."""
    alike = [names for names in by_case.values() if len(names) > 1]
    if alike:
        names = ", ".join(f"'{name}'" for name in alike[0][:3])
        more = f", and {counted(len(alike) - 1, 'more names')} likewise" if len(alike) > 1 else ""
        add_note(f"assumed: {where}: {names} are different {what}, by case or spaces{more}")


def note_alike_keys(tables: Iterable[Table], frames: Mapping[str, pd.DataFrame]) -> None:
    """Say which names of keys, other than nodes, are kept apart although they differ by case or spaces."""
    for table in tables:
        frame = frames.get(table.name)
        if frame is None:
            continue
        keys = [name for name in table.key if name in frame and table.columns[name].is_label]
        for key in keys:
            if key in _node_columns(table):
                continue
            names = _distinct(frame, [key])
            by_case: dict[str, list[str]] = {}
            for name in names if len(names) <= MAX_NAMES else ():
                by_case.setdefault(_without_spaces(name).casefold(), []).append(name)
            _note_alike(by_case, frame.attrs.get("where", table.name), f"names of {key}")


def nodes_of(tables: Iterable[Table], frames: Mapping[str, pd.DataFrame]) -> frozenset[str]:
    """Return the names of nodes in tables."""
    columns = _named_columns(tables, frames)
    return frozenset(chain.from_iterable(_distinct(frames[table], names) for table, names in columns.items()))


def _node_columns(table: Table) -> list[str]:
    """Return the columns of a table that name nodes."""
    own_names = [name for name in table.key[:1] if len(table.key) == 1 and name in NODE_COLUMNS]
    ends = [name for pair in ENDS if set(pair) <= set(table.columns) for name in pair]
    return own_names or ends


def _distinct(frame: pd.DataFrame, columns: Iterable[str]) -> list[str]:
    """Return the distinct names in columns, in the order in which they occur."""
    return list(dict.fromkeys(str(name) for column in columns for name in frame[column].dropna().unique()))


def _without_spaces(name: str) -> str:
    """Return a name without the spaces around it and letters of no width, in composed Unicode (NFC)."""
    if name.isascii():
        return " ".join(name.split())
    return unicodedata.normalize("NFC", " ".join(name.translate(WITHOUT_WIDTH).split()))


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
