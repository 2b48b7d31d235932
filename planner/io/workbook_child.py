"""Program that reads a workbook for `planner.io.workbooks` in a process of its own, with little memory.

A file of a few kilobytes can name a cell in row 1,048,576 of column 16,384, for which a reader takes
hundreds of gigabytes and aborts its process. Here that is a child, which may not take so much.

usage: workbook_child.py sheets PATH | formats PATH | read PATH SHEET... | cells PATH SHEET ROW COLUMN...
Writes one pickled object to standard output: a result, or a `str` that says why there is none.
"""

from __future__ import annotations

import contextlib
import pickle
import sys
from typing import Any

MAX_MEMORY = 4 << 30
MAX_CPU_S = 120
MAX_CELLS = 20_000_000


def main(words: list[str]) -> None:
    """Run the command of the words and write its result."""
    with contextlib.suppress(ImportError, ValueError, OSError):  # a system without limits has none
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY, MAX_MEMORY))
        resource.setrlimit(resource.RLIMIT_CPU, (MAX_CPU_S, MAX_CPU_S))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    result: Any
    try:
        command, path, *arguments = words
        commands = {
            "sheets": list_sheets,
            "formats": list_formats,
            "read": read_sheets,
            "cells": describe_cells,
        }
        result = commands[command](path, arguments)
    except MemoryError:
        result = "needs too much memory"
    except Exception as error:  # a library may raise anything on a damaged file
        result = f"{type(error).__name__}: {error}"[:300]
    pickle.dump(result, sys.stdout.buffer, protocol=5)


def list_sheets(path: str, _: list[str]) -> list[str]:
    """Return the names of the sheets, hidden ones too."""
    import python_calamine

    with python_calamine.CalamineWorkbook.from_path(path) as book:
        kind = python_calamine.SheetTypeEnum.WorkSheet
        return [sheet.name for sheet in book.sheets_metadata if sheet.typ == kind]


def list_formats(path: str, rest: list[str]) -> dict[str, dict[str, Any]]:
    """Return the hidden parts and the cells in percent, by sheet."""
    from planner.io.workbook_formats import read_formats

    return read_formats(path, rest)


def read_sheets(path: str, sheets: list[str]) -> dict[str, list[list[Any]]] | str:
    """Return the cells of sheets by row, from the first row and column of the sheet."""
    import python_calamine

    sheet_rows: dict[str, list[list[Any]]] = {}
    with python_calamine.CalamineWorkbook.from_path(path) as book:
        for name in sheets:
            sheet = book.get_sheet_by_name(name)
            end = sheet.end or (0, 0)
            if (end[0] + 1) * (end[1] + 1) > MAX_CELLS:
                return f"sheet {name} spans {end[0] + 1:,} rows and {end[1] + 1:,} columns"
            sheet_rows[name] = _share_empty(sheet.to_python(skip_empty_area=False)) if sheet.end else []
    return sheet_rows


def _share_empty(rows: list[list[Any]]) -> list[list[Any]]:
    """Return rows of which all empty ones are the same list; it is pickled once."""
    empty = [""] * (len(rows[0]) if rows else 0)
    return [empty if row == empty else row for row in rows]


def describe_cells(path: str, rest: list[str]) -> dict[tuple[int, int], str]:
    """Return the content of cells of an xlsx file as typed, such as `=A1+B1`, by row and column from 1."""
    import openpyxl

    sheet, *numbers = rest
    cells_asked = list(zip(map(int, numbers[::2]), map(int, numbers[1::2]), strict=True))
    book = openpyxl.load_workbook(path, read_only=True, data_only=False, keep_links=False)
    columns: dict[int, list[int]] = {}
    for row, column in cells_asked:
        columns.setdefault(row, []).append(column)
    texts = {}
    first, last = min(columns), max(columns)  # in one pass: each call reads the sheet from its first row
    rows = book[sheet].iter_rows(min_row=first, max_row=last, values_only=True)
    for row, cells in enumerate(rows, start=first):
        for column in columns.get(row, ()):
            if column <= len(cells) and cells[column - 1] is not None:
                texts[row, column] = str(cells[column - 1])
    return texts


if __name__ == "__main__":
    main(sys.argv[1:])
