"""Columns of times in tables of users that have a row for each window, as a demand for each hour."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import pandas as pd

from planner.contract.columns import REMARK, shorten_name
from planner.contract.notes import add_note
from planner.contract.periods import is_time
from planner.contract.table import WINDOW, Table
from planner.contract.units import LONGEST_NAME, plain
from planner.errors import InputError
from planner.io.layout import Layout
from planner.io.recognition import Mappings, Sheet, match_sheet
from planner.io.table_files import read_cells

if TYPE_CHECKING:
    from planner.contract.system import System

NAMES: Final = frozenset(
    {
        *("timestamp", "time", "date", "datetime", "window", "interval", "period", "step", "hour", "day"),
        *("week", "month", "minute", "starttime", "timestep", "zeit", "datum", "uhrzeit", "stunde", "tag"),
        *("zeitstempel", "zeitpunkt", "heure", "horodatage", "jour", "hora", "fecha", "data", "ora"),
    }
)
"""Names of columns of times, without case and punctuation."""


def find_windows(
    system: System, sheets: Mapping[str, Sheet], mappings: Mappings, decimal: str | None
) -> dict[str, str]:
    """Return the column of times of each table over time: one that tells apart rows with the same key.

    raises  InputError where only several columns together tell rows apart
    """
    windows: dict[str, str] = {}
    for name in system.problem.over_time:
        if name not in sheets:
            continue
        table = system.problem.table_by_name[name]
        column = _find_window(table, sheets[name], dict(mappings.get(name, {})), decimal)
        if column is not None:
            windows[name] = column
    return windows


def _find_window(table: Table, sheet: Sheet, mapping: Mapping[str, str], decimal: str | None) -> str | None:
    """Return the column of times of a sheet; None where it has none, or no row is there twice without it."""
    match = match_sheet(sheet, table, mapping)
    names = [name for name in match.ignored if _is_name_of_times(name)]
    if match.form != "rows" or not names:
        return None
    cells: dict[str, pd.DataFrame] = {}
    faults: dict[str, tuple[str, ...]] = {}
    for name in names:
        layout = Layout(columns={**mapping, WINDOW: name}, decimal=decimal)
        try:
            read = read_cells(table.over_time(), sheet.file(layout))
        except InputError:  # the reader of the table says it
            return None
        cells[name], faults[name] = read.frame, read.faults
    frame = cells[names[0]].assign(**{name: frame[WINDOW] for name, frame in cells.items()})
    key = table.key_in(frame)
    if not frame.duplicated(key).any():
        return None
    repeated = {name: int(frame.duplicated([*key, name]).sum()) for name in names}
    best = min(names, key=lambda name: (repeated[name], not _has_times(frame[name])))
    if repeated[best] == int(frame.duplicated(key).sum()):
        return None
    if len(names) > 1 and repeated[best] > int(frame.duplicated([*key, *names]).sum()):
        listed = " and ".join(f"'{shorten_name(name)}'" for name in names)
        if said := [fault for name in names for fault in faults[name]]:
            raise InputError(*said)
        raise InputError(
            f"{sheet.name}: columns {listed} tell the window of a row only together; "
            "write one column with both, such as 2026-03-01 08:00"
        )
    add_note(
        f"assumed: {sheet.name}: column '{shorten_name(best)}' is the window of each row: a network over time"
    )
    return best


def _is_name_of_times(name: str) -> bool:
    return len(name) <= LONGEST_NAME and plain(REMARK.sub("", name)) in NAMES


def _has_times(cells: Any) -> bool:
    return all(map(is_time, cells.tolist()))
