"""A workbook to fill in for a system: a sheet for each table, and one that explains the columns.

Sheets and columns have our names, so that the filled workbook reads back as it is. Tables and columns that
stay empty are left out where they are optional.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from planner.contract.synonyms import other_names
from planner.contract.units import unit_of
from planner.errors import InputError
from planner.io.file_replacement import replace_file
from planner.io.formulas import quote_formulas
from planner.io.recognition import DESCRIPTION_HEADER

if TYPE_CHECKING:
    import pandas as pd

    from planner.contract.system import System
    from planner.contract.table import Column, Table

ABOUT_SHEET: Final = "About the columns"
WIDTHS: Final = (14, 22, 10, 10, 60, 34, 16, 18, 50)
MIN_WIDTH: Final = 12
MAX_OTHER_NAMES: Final = 6
FILLED_ROWS: Final = 1_000
"""Rows of a column that offer a list of words to choose from."""


def write_template(system: System, path: Path) -> None:
    """Write the workbook of a system, completely or not at all.

    raises  InputError where the path is no xlsx file, exists already, or cannot be written
    """
    import openpyxl

    if path.suffix.lower() != ".xlsx":
        raise InputError(f"{path}: must end in .xlsx")
    if path.exists():
        raise InputError(f"{path}: exists already; name another file with --out")
    book = openpyxl.Workbook()
    _fill_about(book.active, system)
    for table in _in_order(system):
        _add_table(book.create_sheet(table.name), table)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with replace_file(path) as partial:
            book.save(partial)
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror or error})") from None


def _in_order(system: System) -> list[Table]:
    """Return the tables of a system, the required ones first."""
    optional = system.problem.optional_tables
    return sorted(system.problem.tables, key=lambda table: table.name in optional)


def _columns_in_order(table: Table) -> list[str]:
    """Return the columns of a table, the required ones first."""
    return sorted(table.columns, key=lambda name: not table.columns[name].required)


def _fill_about(sheet: Any, system: System) -> None:
    """Write a row for each column: its unit, meaning, limits, default, example and other names."""
    from openpyxl.styles import Alignment, Font

    sheet.title = ABOUT_SHEET
    sheet.append(DESCRIPTION_HEADER)
    for cell in sheet[1]:
        cell.font = Font(bold=True)
    for row in describe_columns(system):
        sheet.append(row)
    for index, width in enumerate(WIDTHS):
        sheet.column_dimensions["ABCDEFGHI"[index]].width = width
    for cells in sheet.iter_rows(min_row=2):
        for cell in cells:
            cell.alignment = Alignment(wrap_text=True, vertical="top")
    sheet.freeze_panes = "A2"


def describe_columns(system: System) -> Iterator[tuple[str, ...]]:
    """Yield a row of DESCRIPTION_HEADER for each column of the tables of a system."""
    examples = _first_rows(system)
    for table in _in_order(system):
        is_optional = table.name in system.problem.optional_tables
        for name in _columns_in_order(table):
            column = table.columns[name]
            unit = unit_of(name)[1]
            needed = "yes" if column.required else "no"
            yield (
                table.name,
                name,
                f"{needed}, where the table is there" if is_optional and column.required else needed,
                "" if unit is None else unit.symbol,
                column.about,
                "; ".join(rule for rule, _ in column.rules),
                _describe_empty(column),
                _example(name, column, examples.get(table.name)),
                ", ".join(list(other_names(table, name))[:MAX_OTHER_NAMES]),
            )


def _describe_empty(column: Column) -> str:
    """Return the meaning of an empty column."""
    if column.default is not None:
        return f"{column.default:g}"
    if column.required:
        return "cells may be" if column.nullable else "not possible"
    return "cells may be" if column.nullable else "all cells or none"


def _first_rows(system: System) -> Mapping[str, pd.DataFrame]:
    """Return the first rows of the tables of the first problem that the system makes."""
    make = next(iter(system.problem.presets.values()), None)
    if make is None:
        return {}
    return {name: frame.head(1) for name, frame in make().to_tables().items()}


def _example(name: str, column: Column, frame: pd.DataFrame | None) -> str:
    """Return an example of a column's cells: of a problem, one of its words, or a likely number."""
    import pandas as pd

    if text := _first_cell(name, frame):
        return text
    if column.spellings:
        return next(iter(column.spellings.values()))
    if column.kind == "text":
        return ""
    numbers = [column.default, column.usual[0] if column.usual else None, 1.0, 0.5, 0.0, column.at_most]
    fitting = [number for number in numbers if number is not None and column.satisfied(pd.Series([number]))]
    return f"{fitting[0]:g}" if fitting else ""


def _first_cell(name: str, frame: pd.DataFrame | None) -> str:
    """Return the first cell of a column of a problem's table; "" for none, or a blank one."""
    import pandas as pd

    if frame is None or name not in frame or not len(frame):
        return ""
    value = quote_formulas(frame[[name]])[name].iloc[0]
    if pd.isna(value):
        return ""
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _add_table(sheet: Any, table: Table) -> None:
    """Write the names of the columns; the needed ones in bold, words to choose from as lists."""
    from openpyxl.styles import Font
    from openpyxl.utils import get_column_letter
    from openpyxl.worksheet.datavalidation import DataValidation

    names = _columns_in_order(table)
    sheet.append(names)
    for index, name in enumerate(names, start=1):
        column = table.columns[name]
        letter = get_column_letter(index)
        sheet.cell(row=1, column=index).font = Font(bold=column.required, italic=not column.required)
        sheet.column_dimensions[letter].width = max(MIN_WIDTH, len(name) + 3)
        words = list(dict.fromkeys(column.spellings.values()))
        listed = f'"{",".join(words)}"'
        if words and len(listed) < 255 and not any("," in word or '"' in word for word in words):
            choices = DataValidation(type="list", formula1=listed, allow_blank=column.nullable)
            choices.add(f"{letter}2:{letter}{FILLED_ROWS}")
            sheet.add_data_validation(choices)
    sheet.freeze_panes = "A2"
