"""Windows in any numbering: steps, gaps, dates and times."""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np
import pandas as pd
import pytest

from planner.contract.notes import observe_notes
from planner.contract.tables import Table, number, validate, window
from planner.errors import InputError

TABLE = Table(name="t", about="", columns={"window": window("w"), "v": number("v")})


def read(values: Any) -> tuple[list[float], list[str]]:
    notes: list[str] = []
    with observe_notes(notes.append):
        frame = validate(TABLE, pd.DataFrame({"window": values, "v": 1.0}))
    return frame["window"].tolist(), notes


@pytest.mark.parametrize(
    "values",
    [
        pd.to_datetime(["2024-01-01 00:05", "2024-01-01 00:00", "2024-01-01 00:10"]),
        ["2024-01-01 00:05", "2024-01-01 00:00", "2024-01-01 00:10"],
        ["2024-01-01T00:05:00Z", "2024-01-01T00:00:00Z", "2024-01-01T00:10:00Z"],
        ["01.01.2024 00:05", "01.01.2024 00:00", "01.01.2024 00:10"],
        ["01/31/2024 00:05", "01/31/2024 00:00", "01/31/2024 00:10"],
        ["00:05", "00:00", "0:10"],
        [datetime.time(0, 5), datetime.time(0), datetime.time(0, 10)],
        [
            datetime.datetime(2024, 1, 1, 0, 5),
            datetime.date(2024, 1, 1),
            datetime.datetime(2024, 1, 1, 0, 10),
        ],
        np.array(["2024-01-01T00:05", "2024-01-01T00:00", "2024-01-01T00:10"], dtype="datetime64[s]"),
        pd.Categorical(["2024-01-01 00:05", "2024-01-01 00:00", "2024-01-01 00:10"]),
    ],
)
def test_times_are_numbered_in_their_order(values: Any) -> None:
    numbers, notes = read(values)
    assert numbers == [2.0, 1.0, 3.0]
    assert len(notes) == 1
    assert notes[0].startswith("t: windows 1 to 3 are ")
    assert notes[0].endswith(", every 5 minutes")


def test_time_zones_tell_apart_the_hour_that_comes_twice() -> None:
    numbers, _ = read(["2024-10-27T02:30+02:00", "2024-10-27T02:30+01:00", "2024-10-27T03:30+01:00"])
    assert numbers == [1.0, 2.0, 3.0]
    assert read(["2024-03-31T01:30+01:00", "2024-03-31T03:30+02:00"])[0] == [1.0, 2.0]


@pytest.mark.parametrize(
    ("values", "note"),
    [
        ([1, 2, 4], "warning: t: 1 window is missing (3): the 3 windows with rows count, no zeros are added"),
        ([5, 15, 10], "assumed: t: windows are numbered in steps of 5, from 5 to 15: 3 windows"),
        ([0, 1, 1000], "warning: t: 998 windows are missing (2, 3, 4 and 995 more): the 3 windows with rows"),
        ([1, 3, 7, 9, 12], "warning: t: numbers of windows are not regular, 2 to 4 apart: each counts"),
        (
            [1711843200000, 1711843500000],
            "assumed: t: windows are numbered in steps of 300,000, from 1711843200000 to 1711843500000: 2",
        ),
        (
            ["2024-01-01 00:00", "2024-01-01 00:05", "2024-01-01 00:15"],
            "warning: t: 1 window is missing (2024-01-01 00:10): the 3 windows with rows count",
        ),
        (["2024-01", "2024-02", "2024-04"], "warning: t: 1 window is missing (2024-03): the 3 windows"),
        (
            ["2024-01-01 00:00", "2024-01-01 00:05", "2024-01-01 00:12"],
            "warning: t: times are not regular, 5 minutes to 7 minutes apart: each counts as one window",
        ),
    ],
)
def test_steps_and_gaps_are_said(values: Any, note: str) -> None:
    _, notes = read(values)
    assert any(one.startswith(note) for one in notes), notes


@pytest.mark.parametrize(
    ("values", "fault"),
    [
        ([1, "2024-01-01"], "t row 1: window is '1', must be a time as in other rows"),
        (["03/04/2024", "03/05/2024"], "t: window: '03/04/2024' is 2024-04-03 or 2024-03-04; write the year"),
        (["2024-03-31T01:55+01:00", "2024-03-31T03:00"], "t: window: some times have a time zone and others"),
        (["2024-01-01 00:00", "2024-13-01 00:00"], "t: window: '2024-13-01 00:00' is no time; write 2024-03"),
        ([1.5, 2], "t row 1: window is 1.5, must be a whole number"),
        ([-1, 2], "t row 1: window is -1.0, must be at least 0"),
        (["first", "second"], "t row 1: window is 'first', must be a number"),
    ],
)
def test_windows_with_two_readings_or_none_are_refused(values: Any, fault: str) -> None:
    with pytest.raises(InputError) as error:
        read(values)
    assert error.value.faults[0].startswith(fault)
