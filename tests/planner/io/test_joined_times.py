"""Dates and hours of two columns: one time with a note, or an error, that names both columns."""

from __future__ import annotations

import pandas as pd
import pytest

from planner.errors import InputError
from planner.io.joined_times import join_times


def test_the_note_names_both_columns() -> None:
    dates, hours = pd.Series(["2026-03-01"], name="Date"), pd.Series([8], name="Hour")
    joined = join_times(dates, hours, window="window", where="a.csv")
    assert joined is not None
    assert joined[0].tolist() == ["2026-03-01 08:00:00"]
    assert joined[1] == "a.csv: read columns 'Date' and 'Hour' together as window"


def test_the_error_names_both_columns_in_short() -> None:
    dates, hours = pd.Series(["2026-03-01"] * 2, name="Date" * 100), pd.Series(["8", "noon"], name="Hour")
    with pytest.raises(InputError, match=r"a\.csv: columns '.+' and 'Hour': 'noon' is no hour") as error:
        join_times(dates, hours, window="window", where="a.csv")
    assert len(str(error.value)) < 300


def test_other_columns_are_left_alone() -> None:
    names = pd.Series(["north"], name="Date"), pd.Series([8], name="Hour")
    assert join_times(*names, window="window", where="a.csv") is None
