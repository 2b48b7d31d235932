"""Time series with a column for each name, such as traffic with a column for each region.

Such a table has a column of times, and columns of numbers whose names are those of a column that is missing.
It is read as a row for each time and name.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

import pandas as pd

from planner.contract.columns import ColumnMatch
from planner.contract.date_and_hour import find_hours
from planner.contract.table import Table, number
from planner.contract.units import Unit, split_unit, unit_of
from planner.errors import InputError
from planner.formatting import counted
from planner.io.joined_times import join_times
from planner.io.layout import TableFile
from planner.io.open_columns import find_context_unit
from planner.io.raw_table import RawTable
from planner.io.sheet_rows import is_sum

Reader = Callable[[Table, TableFile], RawTable]
MIN_NAMES: Final = 2
MAX_NAMES: Final = 500
"""Columns of amounts of such a table."""


def can_be_wide(table: Table) -> bool:
    """Return whether a table has a column of windows, one of names, and quantities."""
    kinds = [table.columns[ours].kind for ours in table.required_columns]
    return sorted(kinds) == ["text", "window"] and any(unit_of(ours)[1] for ours in table.columns)


def read_wide(
    table: Table, file: TableFile, read: Reader, match: ColumnMatch, titles: Sequence[str]
) -> RawTable | None:
    """Return the rows of a time series with a column for each name; None where it is none.

    read    the reader of the file's format
    match   the columns of the table found in the file
    titles  texts that may name the unit, where the columns name none
    """
    window, name_column = sorted(
        table.required_columns, key=lambda ours: table.columns[ours].kind != "window"
    )
    others = [name for name in match.ignored if not is_sum(name)]
    dates = match.names.get(window)
    hours = None if dates is None else find_hours(table, dates, others)
    others = [name for name in others if name != hours]
    if set(match.names) != {window} or not MIN_NAMES <= len(others) <= MAX_NAMES:
        return None
    units = _units_of_names(table, others, titles)
    quantities = {_quantity_in(table, unit) for unit in units}
    if len(quantities) != 1:
        return None
    quantity = quantities.pop()
    columns = {name: number("amounts", may_be_blank=True) for name in others}
    times = [match.names[window], *([] if hours is None else [hours])]
    declared = Table(
        name=table.name, about="", columns={**dict.fromkeys(times, table.columns[window]), **columns}
    )
    try:
        raw = read(declared, file)
    except InputError:
        return None  # the reader of rows says why
    time = raw.frame[match.names[window]]
    notes = raw.notes
    if hours is not None:
        joined = join_times(time, raw.frame[hours], window=window, where=match.where)
        if joined is None:
            return None
        time, notes = joined[0], (*notes, joined[1])
    if not all(pd.api.types.is_numeric_dtype(raw.frame[name]) for name in others):
        return None
    ours = unit_of(quantity)[1]
    assert ours is not None
    amounts = [
        (_stem_of(table, name), _convert(raw.frame[name], unit, ours))
        for name, unit in zip(others, units, strict=True)
    ]
    frame = _stack((window, name_column, quantity), time, amounts)
    shape = f"{counted(len(others), 'columns')} of {name_column}, read as {counted(len(frame), 'rows')}"
    note = f"{match.where}: has {shape}"
    names = {name: name for name in frame.columns}
    return replace(
        raw,
        frame=frame,
        match=ColumnMatch(where=match.where, names=names, form="columns"),
        notes=(*notes, note),
    )


def _units_of_names(table: Table, names: Sequence[str], titles: Sequence[str]) -> list[Unit]:
    """Return the unit of each column of amounts, by its name or else by titles; [] where one has none."""
    dimensions = [own.dimension for ours in table.columns if (own := unit_of(ours)[1])]
    of_titles = (find_context_unit(titles, dimension) for dimension in dimensions)
    context = next((unit for unit in of_titles if unit), None)
    units = [unit for name in names if (unit := _unit_of_name(table, name) or context)]
    return units if len(units) == len(names) else []


def _stack(
    columns: tuple[str, str, str], time: pd.Series, amounts: Sequence[tuple[str, pd.Series]]
) -> pd.DataFrame:
    """Return a row for each time and name with an amount, in the order of time.

    columns  names of the columns of times, of names and of amounts
    amounts  name and amounts of each column
    """
    window, name_column, quantity = columns
    frames = [pd.DataFrame({window: time, name_column: name, quantity: cells}) for name, cells in amounts]
    return pd.concat(frames).dropna(subset=[quantity]).sort_index(kind="stable").reset_index(drop=True)


def _convert(cells: pd.Series, unit: Unit, ours: Unit) -> pd.Series:
    """Return amounts in our unit."""
    factor = unit.factor_to(ours)
    return cells * factor.numerator / factor.denominator


def _quantity_in(table: Table, unit: Unit) -> str:
    """Return our column in a unit of a dimension."""
    return next(
        ours for ours in table.columns if (own := unit_of(ours)[1]) and own.dimension == unit.dimension
    )


def _unit_of_name(table: Table, name: str) -> Unit | None:
    """Return the unit that the name of a column of amounts says, of a dimension of the table; else None."""
    dimensions = {own.dimension for ours in table.columns if (own := unit_of(ours)[1])}
    for _, units in split_unit(name):
        if len(units) == 1 and units[0].dimension in dimensions:
            return units[0]
    return None


def _stem_of(table: Table, name: str) -> str:
    """Return the name of a column without its unit."""
    unit = _unit_of_name(table, name)
    stems = [stem.strip() for stem, units in split_unit(name) if unit in units and stem.strip()]
    return stems[0] if stems else name
