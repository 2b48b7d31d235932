"""Rows of users' tables with the same key, such as several flows from a source to a target."""

from __future__ import annotations

import pandas as pd

from planner.contract.table import Table
from planner.formatting import counted


def number_parts(table: Table, frame: pd.DataFrame, first_row: int) -> tuple[pd.DataFrame, list[str]]:
    """Return a table whose rows of one key are numbered in the column that tells them apart, and notes.

    A table with that column, or without such rows, stays as it is. Rows that are equal in all columns may
    be there twice by mistake, which a warning says.

    first_row  number of the first row in the file
    """
    part = table.part_column
    key = [name for name in table.key_in(frame) if name != part]
    if not part or part in frame or not set(table.required_columns) <= set(frame.columns):
        return frame, []
    is_again = frame.duplicated(key)
    if not is_again.any():
        return frame, []
    again = frame.index[is_again.to_numpy(bool)][0]
    alike = (frame[key] == frame.loc[is_again, key].iloc[0]).all(axis=1)
    rows = f"rows {first_row + int(frame.index[alike.to_numpy(bool)][0])} and {first_row + int(again)}"
    count = counted(int(is_again.sum()), "rows")
    names = " and ".join(key)
    text = f"{count} with the {names} of another row, such as {rows}, are further ones"
    notes = [f"assumed: {text}; column {part} numbers them"]
    if (equal := frame.duplicated()).any():
        row = first_row + int(frame.index[equal.to_numpy(bool)][0])
        many = "is equal to another one" if equal.sum() == 1 else "are equal to others"
        notes.append(
            f"warning: {counted(int(equal.sum()), 'rows')} {many}, such as row {row}: leave out what is "
            "there twice by mistake"
        )
    number = frame.groupby(key, sort=False, observed=True, dropna=False).cumcount() + 1
    return frame.assign(**{part: number.astype(str)}), notes
