"""Differences between two plans, table by table: new, missing and changed rows, with amounts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from planner.arrays import Floats
from planner.contract.system import System
from planner.contract.table import Table


def compare_plans(
    system: System, before: Mapping[str, pd.DataFrame], after: Mapping[str, pd.DataFrame]
) -> dict[str, pd.DataFrame]:
    """Return the rows that differ, for each of the system's plan tables.

    Rows are matched by the table's key, or by all its names where it has no key. Each row has `change`
    ("new", "gone" or "changed") and every figure before and after, the largest change first.
    """
    differences = {}
    for table in system.plan.tables:
        old, new = before.get(table.name), after.get(table.name)
        if old is not None and new is not None:
            differences[table.name] = _compare_tables(table, old, new)
    return differences


def _compare_tables(table: Table, old: pd.DataFrame, new: pd.DataFrame) -> pd.DataFrame:
    columns = [name for name in table.columns if name in old and name in new]
    numbers = [name for name in columns if pd.api.types.is_numeric_dtype(new[name]) and name not in table.key]
    names = [name for name in columns if name not in numbers]
    if not names:  # only figures: the whole row is the name
        names, numbers = columns, []
    sides = [_index_by_names(frame, names, numbers) for frame in (old, new)]
    suffixes = (" before", " after")
    both = sides[0].merge(sides[1], how="outer", left_index=True, right_index=True, suffixes=suffixes)
    was, is_now = (both.index.isin(side.index) for side in sides)
    change = np.where(~was, "new", np.where(~is_now, "gone", "changed"))
    size, is_equal = _compare_numbers(both, numbers)
    same = was & is_now & is_equal
    both.insert(0, "change", change)
    order = np.argsort(-size[~same], kind="stable")
    return both[~same].iloc[order].reset_index()


def _compare_numbers(both: pd.DataFrame, numbers: Sequence[str]) -> tuple[Floats, NDArray[np.bool_]]:
    """Return the largest change of a number in each row, and whether all numbers of the row are equal."""
    size, is_equal = np.zeros(len(both)), np.ones(len(both), dtype=bool)
    for name in numbers:
        first, last = (both[f"{name} {when}"].to_numpy(float) for when in ("before", "after"))
        size = np.maximum(size, np.abs(np.nan_to_num(last) - np.nan_to_num(first)))
        is_equal &= np.isclose(first, last, rtol=1e-9, atol=1e-9)
    return size, is_equal


def _index_by_names(frame: pd.DataFrame, names: list[str], numbers: list[str]) -> pd.DataFrame:
    """Return the figures by row name; rows of the same name are added up."""
    plain = frame[[*names, *numbers]].copy()
    plain[names] = plain[names].astype(str)
    if not numbers:
        return plain.drop_duplicates().set_index(names)
    return plain.groupby(names, sort=False)[numbers].sum()
