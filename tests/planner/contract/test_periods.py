"""Windows in any numbering: steps, gaps, dates and times."""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np
import pandas as pd
import pytest

from planner.contract.notes import observe_notes
from planner.contract.periods import describe_empty, describe_labels, natural_order
from planner.contract.table import Table, number, window
from planner.contract.tables import validate
from planner.errors import InputError

TABLE = Table(name="t", about="", columns={"window": window("w"), "v": number("v")})


def read(values: Any) -> tuple[list[float], list[str]]:
    notes: list[str] = []
    with observe_notes(notes.append):
        frame = validate(TABLE, pd.DataFrame({"window": values, "v": 1.0}))
    return frame["window"].tolist(), notes


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_counts_since_1970_are_times(unit: str) -> None:
    minutes = pd.to_datetime(["2026-03-29 00:55", "2026-03-29 01:00", "2026-03-29 01:10"])
    numbers, notes = read(minutes.as_unit(unit).astype("int64"))
    assert numbers == [1.0, 2.0, 3.0]
    assert notes[0] == f"assumed: t: window counts {unit} since 1970, in UTC"
    assert "2026-03-29 00:55 to 2026-03-29 01:10" in notes[1]


@pytest.mark.parametrize("values", [[2026032900, 2026032901], [10**9 + 1, 10**9 + 2], [1.0, 1e12]])
def test_other_numbers_are_no_times(values: list[float]) -> None:
    numbers, notes = read(values)
    assert numbers == values
    assert not any("1970" in note for note in notes)


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
        ["1 Jan 2024 00:05", "01-Jan-2024 00:00", "1. January 2024 00:10"],
        ["2024/01/01 00:05", "2024/1/1 00:00", "2024/01/01 00:10"],
        ["31-01-2024 00:05", "31-01-2024 00:00", "31-01-2024 00:10"],
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
            [171184320, 171484320],
            "assumed: t: windows are numbered in steps of 300,000, from 171184320 to 171484320: 2",
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
    assert any(item.startswith(note) for item in notes), notes


@pytest.mark.parametrize(
    ("values", "fault"),
    [
        ([1, "2024-01-01"], "t row 1: window is '1', must be a time as in other rows"),
        (["03/04/2024", "03/05/2024"], "t: window: '03/04/2024' is 2024-04-03 or 2024-03-04; write the year"),
        (["03-04-2024", "03-05-2024"], "t: window: '03-04-2024' is 2024-04-03 or 2024-03-04; write the year"),
        (["31/03/2024", "03/31/2024"], "t: window: '03/31/2024' has the month first, and others the day"),
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


@pytest.mark.parametrize(
    ("labels", "missing"),
    [
        (["1", "2", "4"], "1 window is missing (3)"),
        (["10", "20", "50"], "2 windows are missing (30, 40)"),
        (["window 1", "window 2", "window 5"], "2 windows are missing (3, 4)"),
        (["w008", "w009", "w011"], "1 window is missing (10)"),
        (
            ["2024-01-01 00:00", "2024-01-01 00:05", "2024-01-01 00:15"],
            "1 window is missing (2024-01-01 00:10)",
        ),
        (["m-20040301-2350", "m-20040301-2355", "m-20040302-0005"], "1 window is missing (2004-03-02 00:00)"),
        (["20240228", "20240229", "20240302"], "1 window is missing (2024-03-01 00:00)"),
        (["08:00", "09:00", "11:00"], "1 window is missing (10:00)"),
    ],
)
def test_missing_windows_are_named_in_any_form_of_labels(labels: list[str], missing: str) -> None:
    (note,) = describe_labels(labels, "file")
    assert note.startswith(f"warning: file: {missing}")
    assert note.endswith(": the 3 windows with rows count, no zeros are added")


@pytest.mark.parametrize(
    "labels",
    [
        [],
        ["morning", "noon", "night"],
        ["1", "2", "3"],
        ["300", "600", "900"],
        ["a1", "b2", "c9"],
        ["m-20040229-2355", "m-20040301-0000", "m-20040301-0005"],
        ["20240228", "20240229", "20240301"],
    ],
)
def test_labels_without_gaps_or_numbers_say_nothing(labels: list[str]) -> None:
    assert describe_labels(labels, "file") == ()


def test_names_are_ordered_by_the_numbers_in_them() -> None:
    names = ["w10", "w2", "w1", "10", "2", "w1 b", "w1 a"]
    assert sorted(names, key=natural_order) == ["2", "10", "w1", "w1 a", "w1 b", "w2", "w10"]


def test_empty_windows_of_a_trace_are_those_that_a_count_of_each_window_gives() -> None:
    random = np.random.default_rng(0)
    for _ in range(200):
        count = int(random.integers(1, 30))
        first = random.integers(0, count, int(random.integers(0, 8))).astype(float)
        last = np.minimum(first + random.integers(0, 4, len(first)), count - 1)
        spans = [range(int(begin), int(end) + 1) for begin, end in zip(first, last, strict=True)]
        busy = {window for span in spans for window in span}
        note = describe_empty(first, last, count, start=0, where="file", length=60, unit="s", noun="session")
        if len(busy) == count:
            assert note is None
        else:
            assert note is not None
            assert note.startswith(f"warning: file: {count - len(busy):,} of {count:,} window")


def test_empty_windows_are_named_by_their_times() -> None:
    first, last = np.array([3.0, 0.0]), np.array([4.0, 0.0])
    note = describe_empty(first, last, 7, where="file", start=60, length=60, unit="s", noun="x")
    assert note is not None
    assert note.startswith(
        "warning: file: 4 of 7 windows have no x (120 to 240 s, 360 to 480 s): they count as"
    )
