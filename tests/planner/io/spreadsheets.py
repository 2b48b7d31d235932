"""Spreadsheets that tests write."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import openpyxl
import pandas as pd

from planner.contract.tables import Table
from planner.contract.units import unit_of
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


OTHER_UNITS: Final = {
    "Mbit/s": ("Gbit/s", 1e3),
    "kbit/s": ("Mbit/s", 1e3),
    "ms": ("s", 1e3),
    "us": ("ms", 1e3),
    "B": ("kB", 1e3),
    "GB": ("TB", 1e3),
    "kops": ("Mops", 1e3),
}


def in_other_words(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a table as a stranger would name and measure it, such as `Capacity (Gbit/s)`."""
    columns = {}
    for name in frame:
        stem, unit = unit_of(str(name))
        title = str(name).replace("_", " ").title()
        if unit is not None and unit.symbol in OTHER_UNITS:
            symbol, factor = OTHER_UNITS[unit.symbol]
            columns[f"{stem.replace('_', ' ').title()} ({symbol})".strip()] = frame[name] / factor
        else:
            columns[title] = frame[name]
    return pd.DataFrame(columns).assign(Remark="checked")
