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
MAX_NAMES: Final = 500
"""Columns of such a table at most."""


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
    if set(match.names) != {window} or not 0 < len(others) <= MAX_NAMES:
        return None
    units = [_unit_of_name(table, name) for name in others]
    context = next((unit for ours in table.columns if (own := unit_of(ours)[1]) and (
        unit := find_context_unit(titles, own.dimension))), None)  # fmt: skip
    units = [unit or context for unit in units]
    quantities = {_quantity_in(table, unit) for unit in units if unit is not None}
    if None in units or len(quantities) != 1 or len(others) < 2:
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
    ours = unit_of(quantity)[1]
    time = raw.frame[match.names[window]]
    notes = raw.notes
    if hours is not None:
        joined = join_times(time, raw.frame[hours], window=window, where=match.where)
        if joined is None:
            return None
        time, notes = joined[0], (*notes, joined[1])
    frames = []
    for name, unit in zip(others, units, strict=True):
        cells = raw.frame[name]
        if not pd.api.types.is_numeric_dtype(cells):
            return None
        factor = unit.factor_to(ours)  # type: ignore[union-attr, arg-type]
        frames.append(
            pd.DataFrame(
                {
                    window: time,
                    name_column: _stem_of(table, name),
                    quantity: cells * factor.numerator / factor.denominator,
                }
            )
        )
    frame = pd.concat(frames).dropna(subset=[quantity]).sort_index(kind="stable").reset_index(drop=True)
    shape = f"{counted(len(others), 'columns')} of {name_column}, read as {counted(len(frame), 'rows')}"
    note = f"{match.where}: has {shape}"
    names = {ours: ours for ours in frame.columns}
    return replace(
        raw,
        frame=frame,
        match=ColumnMatch(where=match.where, names=names, form="columns"),
        notes=(*notes, note),
    )


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
