"""Columns of two readings, and assumptions about columns that a file does not have."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

import pandas as pd

from planner.contract.columns import shorten_name
from planner.contract.table import Table


def assume_absent(table: Table, present: Collection[str], where: str) -> list[str]:
    """Return a note for each absent column of a table with an assumption that the result depends on.

    present  our names of the columns that were found
    """
    return [
        f"assumed: {where}: {text}"
        for name, column in table.columns.items()
        if name not in present and (text := column.when_absent)
    ]


def find_unclear_readings(
    table: Table,
    frame: pd.DataFrame,
    names: Mapping[str, str],
    settled: Collection[str],
    *,
    where: str,
    advise: Callable[[str, str, str], str],
) -> list[str]:
    """Return a fault for each column that may as well be an absent one, where the two readings differ.

    A column with the same value in every row is the same in both readings.

    frame    values under our names
    names    name in the file by our name
    settled  our names of the columns that the user mapped
    advise   what to write, for our name of the column, that of the other one, and the name in the file
    """
    faults = []
    for name, other in readings_of(table).items():
        if name not in names or name in settled or other in names:
            continue
        if len(frame[name].drop_duplicates()) > 1:
            faults.append(
                f"{where}: column '{shorten_name(names[name])}' may be {describe(table, name)} or "
                f"{describe(table, other)}, and no column is {other}: {advise(name, other, names[name])}"
            )
    return faults


def readings_of(table: Table) -> dict[str, str]:
    """Return the columns of a table that may be another one in the words of other tools, with that one."""
    return {
        name: str(other)
        for name, column in table.columns.items()
        if (other := column.mistaken_for) is not None
    }


def describe(table: Table, name: str) -> str:
    """Return a column's name with its description, such as `weight (routing metric)`."""
    return f"{name} ({table.columns[name].about})"
