"""Rows of users' tables with the same key, such as several flows from a source to a target."""

from __future__ import annotations

import pandas as pd

from planner.contract.table import Table
from planner.formatting import counted


def number_parts(table: Table, frame: pd.DataFrame, first_row: int) -> tuple[pd.DataFrame, list[str]]:
    """Return a table with rows of one key numbered in the column that tells them apart, and notes.

    A table with that column, or without such rows, stays as it is, and so does one with rows that are equal
    in all columns: these may be there twice by mistake, and are refused where keys are checked.

    first_row  number of the first row in the file
    """
    part = table.part_column
    key = [name for name in table.key_in(frame) if name != part]
    if not part or part in frame or not set(table.required_columns) <= set(frame.columns):
        return frame, []
    is_again = frame.duplicated(key)
    if not is_again.any() or frame.duplicated().any():
        return frame, []
    again = frame.index[is_again.to_numpy(bool)][0]
    alike = (frame[key] == frame.loc[is_again, key].iloc[0]).all(axis=1)
    rows = f"rows {first_row + int(frame.index[alike.to_numpy(bool)][0])} and {first_row + int(again)}"
    count = counted(int(is_again.sum()), "rows")
    names = " and ".join(key)
    text = f"{count} with the {names} of another row, such as {rows}, are further ones"
    notes = [f"assumed: {text}; column {part} numbers them"]
    number = frame.groupby(key, sort=False, observed=True, dropna=False).cumcount() + 1
    return frame.assign(**{part: number.astype(str)}), notes
