"""Faults across tables while some tables have faulty rows, so that users see all faults in one round.

The rules across tables need values that satisfy the rules of their columns. Faulty numbers are replaced by
valid ones, once by small and once by large ones: a fault that is found both times depends on none of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import pandas as pd

from planner.contract.table import Column, Table
from planner.errors import PlannerError

STAND_INS: Final = (1.0, 2.0, 0.0, 10.0, 0.5, 100.0, 1e4, 1e6, -1.0)
"""Numbers to try where a column holds fewer than two valid ones."""


def find_faults_across(
    tables: Mapping[str, Table],
    valid: Mapping[str, pd.DataFrame],
    faulty: Mapping[str, pd.DataFrame],
    build: Callable[[Mapping[str, pd.DataFrame]], Any],
) -> list[str]:
    """Return the faults of rules across tables that do not depend on faulty values.

    tables  declarations by name
    valid   tables without faults
    faulty  tables with faults in some rows; cells that are no numbers may be texts
    build   makes a problem of tables
    """
    rounds: list[tuple[str, ...]] = []
    for index in (0, -1):
        repaired = {name: _repair(tables[name], frame, index) for name, frame in faulty.items()}
        complete = {name: frame for name, frame in repaired.items() if frame is not None}
        if len(complete) < len(repaired):
            return []
        try:
            build({**valid, **complete})
        except PlannerError as error:
            rounds.append(tuple(str(error).split("\n")))
        else:
            return []
    return [fault for fault in rounds[0] if fault in rounds[1]]


def _repair(table: Table, frame: pd.DataFrame, index: int) -> pd.DataFrame | None:
    """Return a table with valid values in place of faulty ones; None where that is not possible.

    index  of the valid numbers in ascending order that stand in: 0 the least, -1 the largest
    """
    columns: dict[str, pd.Series] = {}
    for name, column in table.columns.items():
        if name in frame:
            repair = _repair_labels if column.is_label else _repair_numbers
            repaired = repair(column, frame[name], index)
            if repaired is None:
                return None
            columns[name] = repaired
    needed = [name for name in columns if not table.columns[name].nullable]
    made = pd.DataFrame(columns).dropna(subset=needed)  # rows without a name say nothing of other tables
    if table.key:
        made = made.drop_duplicates(table.key_in(made))
    if made.empty and not table.may_be_empty:
        return None
    made.attrs |= frame.attrs
    return made


def _repair_labels(column: Column, values: pd.Series, _: int) -> pd.Series | None:
    """Return labels with a valid one in place of those that break a rule; None for empty ones that do."""
    texts = values.astype(str)
    is_empty = values.isna() | (texts == "")
    good = ~is_empty & _satisfying(column, texts)
    bad = ~is_empty & ~good
    if bad.any():
        if not good.any():
            return None
        texts = texts.where(~bad, texts[good].iloc[0])
    return texts.where(~is_empty, "" if column.nullable else None)


def _repair_numbers(column: Column, values_given: pd.Series, index: int) -> pd.Series | None:
    """Return numbers with a valid one in place of faulty ones; None where none is known."""
    values = pd.to_numeric(values_given, errors="coerce").astype(float)  # times may be texts still
    good = values.notna() & _satisfying(column, values)
    is_valid = good | values_given.isna() if column.nullable else good  # a blank cell may decide a rule
    if is_valid.all():
        return values
    stand_ins = sorted({float(values[good].min()), float(values[good].max())} if good.any() else set())
    if len(stand_ins) < 2:
        tried = pd.Series([*stand_ins, *STAND_INS])
        stand_ins = sorted(tried[_satisfying(column, tried)].drop_duplicates().iloc[:2])
    return values.where(is_valid, stand_ins[index]) if stand_ins else None


def _satisfying(column: Column, values: pd.Series) -> pd.Series:
    """Return the mask of the values that satisfy all rules of a column."""
    good = pd.Series(data=True, index=values.index)
    for _, test in column.rules:
        good &= test(values)
    return good
