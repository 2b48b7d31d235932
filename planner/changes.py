"""How two plans differ, table by table: what is new, what is gone, and what changed by how much."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from planner.system import System
from planner.tables import Table


def changes(
    system: System, before: Mapping[str, pd.DataFrame], after: Mapping[str, pd.DataFrame]
) -> dict[str, pd.DataFrame]:
    """The rows of each of the system's plan tables that differ.

    A table's rows are told apart by its key, or by its names where it has none. Each row has
    `change` ("new", "gone" or "changed") and every figure before and after, the largest change first.
    """
    found = {}
    for table in system.plan_tables:
        old, new = before.get(table.name), after.get(table.name)
        if old is not None and new is not None:
            found[table.name] = _differing(table, old, new)
    return found


def _differing(table: Table, old: pd.DataFrame, new: pd.DataFrame) -> pd.DataFrame:
    columns = [name for name in table.columns if name in old and name in new]
    numbers = [name for name in columns if pd.api.types.is_numeric_dtype(new[name]) and name not in table.key]
    names = [name for name in columns if name not in numbers]
    if not names:  # nothing but figures: a row is itself
        names, numbers = columns, []
    sides = [_keyed(frame, names, numbers) for frame in (old, new)]
    suffixes = (" before", " after")
    both = sides[0].merge(sides[1], how="outer", left_index=True, right_index=True, suffixes=suffixes)
    there = [both.index.isin(side.index) for side in sides]
    change = np.where(~there[0], "new", np.where(~there[1], "gone", "changed"))
    size = np.zeros(len(both))
    same = there[0] & there[1]
    for name in numbers:
        first, last = (both[f"{name} {when}"].to_numpy(float) for when in ("before", "after"))
        size = np.maximum(size, np.abs(np.nan_to_num(last) - np.nan_to_num(first)))
        same &= np.isclose(first, last, rtol=1e-9, atol=1e-9)
    both.insert(0, "change", change)
    order = np.argsort(-size[~same], kind="stable")
    return both[~same].iloc[order].reset_index()


def _keyed(frame: pd.DataFrame, names: list[str], numbers: list[str]) -> pd.DataFrame:
    """The figures by what a row is called; rows of the same name are added up."""
    plain = frame[[*names, *numbers]].copy()
    plain[names] = plain[names].astype(str)
    if not numbers:
        return plain.drop_duplicates().set_index(names)
    return plain.groupby(names, sort=False)[numbers].sum()
