"""The work of refusing a table of any system grows as its rows do, whatever is wrong in all of them."""

from __future__ import annotations

import contextlib
import cProfile
import difflib
import sys
from collections.abc import Callable, Mapping
from typing import Final

import numpy as np
import pandas as pd
import pytest

from planner.contract.table import Table
from planner.errors import InputError
from planner.io.table_files import check_problem
from planner.scenarios.catalogue import system_names
from tests.fuzzing.bases import Base, bases

ROWS: Final = 30
FACTOR: Final = 4
MOST_RATIO: Final = 6.0
"""Calls for four times the rows, over those for the rows; 16 is what a quadratic check makes."""
CALLS_OF_A_ROW: Final = 800
"""Python calls that a row may take."""
MORE_SEARCHES: Final = 10
"""Searches for a nearest name, each of which takes longer the more names there are, with more rows."""


def count_calls(work: Callable[[], object]) -> tuple[int, int]:
    """Return the numbers of calls of Python functions, and of searches for the nearest of many names.

    They are the same on any machine.
    """
    profile = cProfile.Profile(builtins=False)
    before = sys.getprofile()
    profile.enable()
    try:
        with contextlib.suppress(InputError):
            work()
    finally:
        profile.disable()
        sys.setprofile(before)
    counts = {entry.code: entry.callcount for entry in profile.getstats()}
    return sum(counts.values()), counts.get(difflib.get_close_matches.__code__, 0)


def stretch(table: Table, frame: pd.DataFrame, rows: int) -> pd.DataFrame:
    """Return the table with its rows repeated; names of its key are made to differ."""
    made = frame.iloc[np.arange(rows) % len(frame)].reset_index(drop=True)
    return made.astype({name: object for name in made if table.columns[str(name)].is_label})


def spoil(table: Table, frame: pd.DataFrame, column: str, rows: int) -> pd.DataFrame:
    """Return a table of that many rows in which one column has values that no other table knows."""
    made = stretch(table, frame, rows)
    if table.columns[column].is_label:
        return made.assign(**{column: [f"zz{row}" for row in range(rows)]})
    return made.assign(**{column: np.arange(rows) + 0.5})


def refuse(base: Base, table: Table, frame: pd.DataFrame) -> Callable[[], object]:
    kind = base.system.problem
    frames: Mapping[str, pd.DataFrame] = {**base.tables, table.name: frame}
    return lambda: kind.from_tables(check_problem(kind.tables, frames, kind.from_tables))


@pytest.mark.slow
@pytest.mark.parametrize("system", system_names())
def test_rows_that_are_all_wrong_are_refused_in_linear_work(system: str) -> None:
    base = next(base for base in bases() if base.system.name == system)
    kind = base.system.problem
    faults = []
    for table in kind.tables:
        frame = base.tables.get(table.name)
        if frame is None or not len(frame):
            continue
        faults += find_excesses(base, table, frame)
    assert not faults, "\n".join(faults)


def find_excesses(base: Base, table: Table, frame: pd.DataFrame) -> list[str]:
    """Return the columns of a table whose wrong rows take too many calls.

    The calls for few rows are nearly the same for all columns of a table, so they are counted for the first
    one, and again for a column that exceeds a limit by them. What exceeds it is counted twice: the first time
    may load Numba.
    """
    faults = []
    few = None
    for column in map(str, frame):
        work = refuse(base, table, spoil(table, frame, column, FACTOR * ROWS))
        many = count_calls(work)
        if few is None or say_excess(few, many):
            few = count_calls(refuse(base, table, spoil(table, frame, column, ROWS)))
        if say_excess(few, many):
            many = count_calls(work)
        if excess := say_excess(few, many):
            faults.append(f"{table.name}.{column}: {excess}")
    return faults


def say_excess(few: tuple[int, int], many: tuple[int, int]) -> str:
    """Return what the work for many rows has too much, compared with that for few; "" where it is linear.

    few, many  calls of functions and searches for names, as `count_calls` returns them
    """
    if many[0] > MOST_RATIO * few[0] or (many[0] - few[0]) / (ROWS * (FACTOR - 1)) > CALLS_OF_A_ROW:
        return f"{few[0]:,} calls, then {many[0]:,}"
    if many[1] > few[1] + MORE_SEARCHES:
        return f"{few[1]} searches for names, then {many[1]}"
    return ""
