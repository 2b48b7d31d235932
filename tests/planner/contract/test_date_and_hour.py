"""Dates and hours in two columns are one time for each row, or refused in one line."""

from __future__ import annotations

import datetime
from typing import Any

import pandas as pd
import pytest

from planner.contract.date_and_hour import find_date_and_hour, join_date_and_hour
from planner.contract.periods import UnclearTimes


@pytest.mark.parametrize(
    ("dates", "hours", "joined"),
    [
        (["2026-03-01", "2026-03-01"], [8, 9], ["2026-03-01 08:00:00", "2026-03-01 09:00:00"]),
        (
            [datetime.datetime(2026, 3, 1), pd.Timestamp(2026, 3, 2)],
            [datetime.time(8, 30), datetime.timedelta(hours=9)],
            ["2026-03-01 08:30:00", "2026-03-02 09:00:00"],
        ),
        (["01.03.2026"], ["8:05 PM"], ["01.03.2026 20:05:00"]),
        (["1 Mar 2026"], ["12 am"], ["1 Mar 2026 00:00:00"]),
        (["2026/3/1", "2026/3/1"], ["08:00-09:00", "9h30"], ["2026/3/1 08:00:00", "2026/3/1 09:30:00"]),
        (["2026-03-01", "2026-03-01"], [1, 24], ["2026-03-01 00:00:00", "2026-03-01 23:00:00"]),
        ([1, 1, 2], [0, 23, 0], [24, 47, 48]),
        ([1.0, "2"], ["08:00", 7.0], [32, 55]),
    ],
)
def test_a_date_and_an_hour_are_one_time(dates: list[Any], hours: list[Any], joined: list[Any]) -> None:
    times = join_date_and_hour(pd.Series(dates, dtype=object), pd.Series(hours, dtype=object))
    assert times is not None
    assert times.tolist() == joined


@pytest.mark.parametrize(
    ("dates", "hours", "fault"),
    [
        (
            ["2026-03-01", "2026-03-01"],
            [8, "noon"],
            "'noon' is no hour or time of day; write 8, 08:00 or 8 PM",
        ),
        (["2026-03-01", "2026-03-01"], [8, 25], "'25' is no hour"),
        (["2026-03-01", "2026-03-01"], [8, "13 PM"], "'13 PM' is no hour"),
        (["2026-03-01", "2026-03-01"], [0, 24], "hour 24 of a day is hour 0 of the next"),
    ],
)
def test_hours_that_are_none_or_unclear_are_refused(dates: list[Any], hours: list[Any], fault: str) -> None:
    with pytest.raises(UnclearTimes, match=fault):
        join_date_and_hour(pd.Series(dates, dtype=object), pd.Series(hours, dtype=object))


@pytest.mark.parametrize(
    ("dates", "hours"),
    [
        (["2026-03-01 08:00"], [8]),
        ([datetime.datetime(2026, 3, 1, 8)], [8]),
        (["Mon", "Tue"], [8, 8]),
        (["2026-03-01"], ["morning"]),
        ([1], ["08:30"]),
        ([1, "2026-03-01"], [8, 8]),
    ],
)
def test_other_columns_stay_as_they_are(dates: list[Any], hours: list[Any]) -> None:
    assert join_date_and_hour(pd.Series(dates, dtype=object), pd.Series(hours, dtype=object)) is None


def test_the_two_columns_are_found_by_their_names() -> None:
    assert find_date_and_hour(["Time (UTC)", "Date", "Region"]) == ("Date", "Time (UTC)")
    assert find_date_and_hour(["Datum", "Uhrzeit"]) == ("Datum", "Uhrzeit")
    assert find_date_and_hour(["Date", "Day", "Hour"]) is None
    assert find_date_and_hour(["Date", "Region"]) is None
