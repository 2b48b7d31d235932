"""Columns read of users' files: each of them beside ours, with its unit, for a short table."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from planner.contract.columns import ColumnMatch, format_factor
from planner.contract.date_and_hour import find_hours
from planner.contract.table import WINDOW, Table
from planner.contract.units import Unit, find_units, is_per_unit, name_in_unit, split_unit, unit_of
from planner.io.layout import Layout
from planner.io.matrices import find_entry_unit, read_ends
from planner.io.recognition import Mappings, Sheet, match_sheet
from planner.io.service_status import find_status
from planner.io.table_files import find_joined_hours, title_texts

if TYPE_CHECKING:
    from planner.contract.system import System


@dataclass(frozen=True, kw_only=True)
class ReadColumn:
    """A column of a file as it is read.

    given  its name in the file
    ours   our name with that of the table, such as links.tail; "" where it is not read
    unit   its unit, and the factor to ours; "" for a column without a unit
    assumption  what is assumed of it; "" for nothing
    """

    sheet: str
    given: str
    ours: str
    unit: str = ""
    assumption: str = ""


def list_read_columns(
    system: System,
    sheets: Mapping[str, Sheet],
    mappings: Mappings,
    units: Mapping[str, str],
    windows: Mapping[str, str] | None = None,
) -> list[ReadColumn]:
    """Return the columns of the sheets of tables, those that are read first.

    units    of the entries of matrices that name none, by table
    windows  columns of times, by table
    """
    columns: list[ReadColumn] = []
    for name, sheet in sheets.items():
        table = system.problem.table_by_name[name]
        match = match_sheet(sheet, table, mappings.get(name), unit=units.get(name))
        if match.form == "matrix":
            columns += _list_parts(sheet, table, units.get(name))
        elif match.form == "columns":
            columns += _list_names(sheet, table, match)
        else:
            columns += _list_columns(sheet, table, match, mappings.get(name, {}), (windows or {}).get(name))
    return columns


def map_read_columns(
    system: System, sheets: Mapping[str, Sheet], mappings: Mappings, units: Mapping[str, str]
) -> dict[str, dict[str, str]]:
    """Return the columns as they are read, as [problem.columns] of a scenario says them.

    Those that have our names are left out, and matrices and time series with a column for each name.
    """
    columns: dict[str, dict[str, str]] = {}
    for name, sheet in sheets.items():
        match = match_sheet(
            sheet, system.problem.table_by_name[name], mappings.get(name), unit=units.get(name)
        )
        if match.form != "rows":
            continue
        mapping = {
            name_in_unit(ours, find_units(match.stated[ours])[0]) if ours in match.stated else ours: theirs
            for ours, theirs in match.names.items()
            if ours != theirs
        }
        if mapping := {**mapping, **mappings.get(name, {})}:
            columns[name] = mapping
    return columns


def _list_parts(sheet: Sheet, table: Table, unit: str | None) -> Iterator[ReadColumn]:
    """Yield the names of rows, those of columns, and the entries of a matrix."""
    source, target, amount = table.required_columns
    named, ours = entry_unit(sheet, table), unit_of(amount)[1]
    rows, columns = ("rows", "columns") if read_ends(next(iter(sheet.widest), ""))[0] else ("columns", "rows")
    symbol = unit or (named or ours).symbol  # type: ignore[union-attr]
    for location, name, text in ((rows, source, ""), (columns, target, ""), ("entries", amount, symbol)):
        yield ReadColumn(sheet=sheet.name, given=f"({location})", ours=f"{table.name}.{name}", unit=text)


def _list_names(sheet: Sheet, table: Table, match: ColumnMatch) -> Iterator[ReadColumn]:
    """Yield the times, the names of columns, and the entries of a time series."""
    for ours in match.names:
        column = table.columns[ours]
        location = "entries" if column.kind == "number" else "rows" if column.kind == "window" else "columns"
        yield ReadColumn(sheet=sheet.name, given=f"({location})", ours=f"{table.name}.{ours}")


def _list_columns(
    sheet: Sheet, table: Table, match: ColumnMatch, mapping: Mapping[str, str], window: str | None
) -> Iterator[ReadColumn]:
    for ours, name in match.names.items():
        yield ReadColumn(
            sheet=sheet.name,
            given=name,
            ours=f"{table.name}.{ours}",
            unit=_describe_unit(ours, name, match, is_mapped=name in mapping.values()),
            assumption=_describe_assumption(ours, name, match),
        )
    for ours, (name, _) in match.backward.items():
        unit = _describe_unit(ours, name, match, is_mapped=False)
        opposite = "in the opposite direction"
        yield ReadColumn(
            sheet=sheet.name, given=name, ours=f"{table.name}.{ours}", unit=unit, assumption=opposite
        )
    for ours, name in match.row_units.items():
        each = "the unit of each row"
        yield ReadColumn(sheet=sheet.name, given=name, ours=f"{table.name}.{ours}", assumption=each)
    times = table if window is None else table.over_time()
    dates = window or next(
        (name for ours, name in match.names.items() if table.columns[ours].kind == "window"), ""
    )
    hours = None
    if find_hours(times, dates, [name for name in match.ignored if name != dates]) is not None:
        columns = dict(mapping) if window is None else {**mapping, WINDOW: window}
        hours = find_joined_hours(times, sheet.file(Layout(columns=columns)))
    status = find_status(table, match.ignored)
    for name in match.ignored:
        if name in (window, hours):
            ours = next((ours for ours, column in times.columns.items() if column.kind == "window"), WINDOW)
            assumption = "together with the dates" if name == hours else ""
            yield ReadColumn(sheet=sheet.name, given=name, ours=f"{table.name}.{ours}", assumption=assumption)
        elif name == status:
            rows = "only rows in service"
            yield ReadColumn(sheet=sheet.name, given=name, ours=table.name, assumption=rows)
        else:
            yield ReadColumn(sheet=sheet.name, given=name, ours="")


def _describe_assumption(ours: str, name: str, match: ColumnMatch) -> str:
    """Return the assumption about a column, "" for none."""
    if name in match.guessed:
        return "the only column in such a unit"
    return "the unit is that of the title or the user" if ours in match.stated else ""


def _describe_unit(ours: str, name: str, match: ColumnMatch, *, is_mapped: bool) -> str:
    """Return the unit of a column of a file, with the factor to ours; `per GB` of prices for each GB."""
    stem, unit = unit_of(ours)
    if unit is None:
        return ""
    named = named_unit(name, unit)
    if named is None and ours in match.stated:
        named = find_units(match.stated[ours])[0]
    if named is None and not is_mapped:
        return "in each cell"
    factor = format_factor(match.factors.get(ours))
    symbol = f"per {(named or unit).symbol}" if is_per_unit(stem) else (named or unit).symbol
    return symbol + (f", {factor[2:-1]}" if factor else "")


def named_unit(name: str, ours: Unit) -> Unit | None:
    """Return the unit of the dimension of ours that a name says; None where it says none, or is not clear."""
    for _, units in split_unit(name):
        fitting = [unit for unit in units if unit.dimension == ours.dimension]
        if len(fitting) == 1:
            return fitting[0]
    return None


def entry_unit(sheet: Sheet, table: Table) -> Unit | None:
    """Return the unit that a matrix names; None where it names none."""
    file = sheet.file()
    return find_entry_unit(table, file, next(iter(sheet.widest), ""), title_texts(file))


def assume_units(
    system: System, sheets: Mapping[str, Sheet], mappings: Mappings, specified: Collection[str] = ()
) -> dict[str, Unit]:
    """Return the unit of each matrix that names none, by table: the one that all other tables name.

    specified  tables of matrices whose unit the user says
    """
    units = {}
    for name, sheet in sheets.items():
        table = system.problem.table_by_name[name]
        is_open = name not in specified and match_sheet(sheet, table, mappings.get(name)).form == "matrix"
        if is_open and entry_unit(sheet, table) is None:
            unit = find_shared_unit(system, sheets, mappings, table.required_columns[2])
            if unit is not None:
                units[name] = unit
    return units


def assume_entries(sheet: Sheet, unit: Unit) -> str:
    """Return the note that a matrix is assumed to have the unit of the other tables."""
    return f"assumed: {sheet.name}: entries are in {unit.symbol}, as columns of the other tables are"


def find_shared_unit(
    system: System, sheets: Mapping[str, Sheet], mappings: Mappings, ours: str
) -> Unit | None:
    """Return the one unit that the columns of all other tables name, of the dimension of ours; else None."""
    unit = unit_of(ours)[1]
    assert unit is not None
    tables = system.problem.table_by_name
    units = set()
    for name, sheet in sheets.items():
        match = match_sheet(sheet, tables[name], mappings.get(name))
        if match.form != "matrix":
            named = [
                named_unit(theirs, unit) for ours_name, theirs in match.names.items() if unit_of(ours_name)[1]
            ]
            units |= {unit_ for unit_ in named if unit_ is not None}
    return units.pop() if len(units) == 1 else None
