"""Dates in one column and hours or times of day in another, read as one time for each row."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from planner.contract.time_texts import DATE
from planner.contract.units import LONGEST_NAME, plain

if TYPE_CHECKING:
    import pandas as pd

    from planner.contract.table import Table

NAMES_OF_DATES: Final = frozenset({"date", "day", "datum", "tag", "fecha", "dia", "jour", "giorno", "data"})
"""Names of columns of dates, without case and punctuation."""
NAMES_OF_HOURS: Final = frozenset(
    {
        *("hour", "hours", "hr", "hh", "time", "timeofday", "starttime", "starthour", "hourofday"),
        *("hourending", "interval", "period", "uhrzeit", "stunde", "zeit", "heure", "hora", "ora", "hhmm"),
    }
)
"""Names of columns of hours or times of day, without case and punctuation."""
HOUR: Final = re.compile(
    r"(?P<hour>\d{1,2})(?:[:h.](?P<minute>\d{2}))?(?::(?P<second>\d{2})(?:\.0+)?)?\s*h?\s*(?P<half>[ap]\.?m\.?)?"
    r"(?:\s*(?:-|–|to)\s*\d.*)?",
    re.IGNORECASE,
)
"""An hour or a time of day, as 8, 08:00, 8h30, 8 PM, or 08:00-09:00, whose start counts."""
REMARK: Final = re.compile(r"[(\[][^)\]]*[)\]]")
HOURS_A_DAY: Final = 24


def find_date_and_hour(names: Iterable[str]) -> tuple[str, str] | None:
    """Return the one name of a column of dates and the one of a column of hours; None where there are others.

    names  of columns
    """
    listed = [name for name in names if len(name) <= LONGEST_NAME]
    dates = [name for name in listed if _plain(name) in NAMES_OF_DATES]
    hours = [name for name in listed if _plain(name) in NAMES_OF_HOURS]
    return (dates[0], hours[0]) if len(dates) == 1 and len(hours) == 1 else None


def find_hours(table: Table, dates: str, ignored: Sequence[str]) -> str | None:
    """Return the ignored column with the hours of the days in a column of windows; None where it has none."""
    pair = find_date_and_hour([dates, *ignored])
    has_windows = any(column.kind == "window" for column in table.columns.values())
    return pair[1] if has_windows and pair is not None and pair[0] == dates else None


def _plain(name: str) -> str:
    return plain(REMARK.sub("", name))


def join_date_and_hour(dates: pd.Series, hours: pd.Series) -> pd.Series | None:
    """Return the time of each row, as a text or a number of hours; None where these are no days and hours.

    Days are dates, or numbers, of which each has 24 hours. Hours from 1 to 24 are those that end then.

    raises  UnclearTimes where an hour is no time of day, or 24 is beside 0
    """
    import pandas as pd  # slow to load

    from planner.contract.periods import UnclearTimes

    days = [_day_of(date) for date in dates]
    if None in days or not days:
        return None
    times = [_time_of(hour) for hour in hours]
    if all(time is None for time in times):
        return None
    read = []
    for hour, time in zip(hours, times, strict=True):
        if time is None:
            raise UnclearTimes(f"'{hour}' is no hour or time of day; write 8, 08:00 or 8 PM")
        read.append(time)
    if any(minutes == HOURS_A_DAY * 60 for minutes, _ in read):
        if any(minutes < 60 for minutes, _ in read):
            raise UnclearTimes(
                "hours are 0 to 24, and hour 24 of a day is hour 0 of the next; write 0 to 23, or 1 to 24"
            )
        read = [(minutes - 60, seconds) for minutes, seconds in read]
    if all(isinstance(day, int) for day in days):
        if any(minutes % 60 or seconds for minutes, seconds in read):
            return None
        numbers = [
            int(day or 0) * HOURS_A_DAY + minutes // 60 for day, (minutes, _) in zip(days, read, strict=True)
        ]
        return pd.Series(numbers, index=dates.index)
    if any(isinstance(day, int) for day in days):
        return None
    texts = [
        f"{day} {minutes // 60:02d}:{minutes % 60:02d}:{seconds:02d}"
        for day, (minutes, seconds) in zip(days, read, strict=True)
    ]
    return pd.Series(texts, index=dates.index, dtype=object)


def _day_of(value: object) -> str | int | None:
    """Return a date without a time of day as a text, or the number of a day; None for anything else."""
    if isinstance(value, datetime.datetime):  # so are timestamps of pandas
        is_midnight = value.time() == datetime.time() and value.tzinfo is None
        return value.strftime("%Y-%m-%d") if is_midnight else None
    if isinstance(value, datetime.date):
        return value.isoformat()
    if isinstance(value, str):
        text = value.strip()
        if DATE.fullmatch(text):
            return text
        return int(text) if text.isdecimal() and len(text) <= 5 else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return _integer(value, limit=99_999)


def _integer(value: float, *, limit: int) -> int | None:
    """Return a number as an integer from 0 to a limit; None where it is none."""
    return int(value) if value == value and value == int(value) and 0 <= value <= limit else None


def _time_of(value: object) -> tuple[int, int] | None:
    """Return the minutes and seconds of an hour or a time of day since midnight; None for anything else."""
    if isinstance(value, datetime.time):
        return value.hour * 60 + value.minute, value.second
    if isinstance(value, datetime.timedelta):
        seconds = int(value.total_seconds())
        return (seconds // 60, seconds % 60) if 0 <= seconds <= HOURS_A_DAY * 3600 else None
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        hours = _integer(value, limit=HOURS_A_DAY)
        return None if hours is None else (hours * 60, 0)
    match = HOUR.fullmatch(str(value).strip())
    if match is None:
        return None
    hour, minute, second = (int(match[name] or 0) for name in ("hour", "minute", "second"))
    if match["half"]:
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + (12 if match["half"][0] in "pP" else 0)
    is_time = minute < 60 and second < 60 and hour * 60 + minute <= HOURS_A_DAY * 60
    return (hour * 60 + minute, second) if is_time else None
