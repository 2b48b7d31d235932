"""Spreadsheets that tests write."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import openpyxl

from planner.contract.tables import Table
from planner.scenarios.catalogue import find_system

Content = bytes | str | Callable[[Path], None]
"""Content of a file, or what writes it."""


def table_of(name: str) -> Table:
    """Return a table of a problem by `system.table`."""
    system, _, table = name.partition(".")
    return next(one for one in find_system(system).problem.tables if one.name == table)


def sheet(
    *rows: list[Any], name: str = "links", more: Mapping[str, list[list[Any]]] | None = None
) -> Content:
    """Return a function that writes an xlsx workbook."""

    def write(path: Path) -> None:
        book = openpyxl.Workbook()
        assert book.active is not None
        book.active.title = name
        for row in rows:
            book.active.append(row)
        for other, cells in (more or {}).items():
            added = book.create_sheet(other)
            for row in cells:
                added.append(row)
        book.save(path)

    return write
