"""Numbers and times of windows, the `window` of tables: numbers with any step, dates or times of day.

A window that has no row is missing: it is named, and never read as a window of zeros.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pandas as pd

from planner.arrays import Floats
from planner.contract.time_texts import (
    DAY_AND_TIME,
    DAY_FIRST,
    MONTHS,
    NAMED_MONTH,
    TIME_OF_DAY,
    YEAR_FIRST,
)
from planner.formatting import counted

NUMBERED: Final = re.compile(r"(?P<text>(?:.*?[^0-9])??)(?P<number>[0-9]+(?:[-_T][0-9]+)?)")
"""A name of a window that ends in a number, or in a day and a time."""
MAX_NAMED: Final = 3
"""Missing windows that a note names."""
MAX_MISSING: Final = 100_000
"""Missing windows that are counted one by one."""
HOUR_NS: Final = 3600 * 10**9
SUNDAY: Final = 6
LAST_HOUR: Final = 3
MONTHS_OF_CHANGES: Final = (3, 4, 9, 10, 11)
"""Clocks change on a Sunday of these months, before 4 o'clock, wherever there is daylight-saving time."""
UNITS: Final = ((86_400, "day"), (3600, "hour"), (60, "minute"), (1, "second"))


EPOCHS: Final = ((1, 60.0, "s"), (10**3, 1.0, "ms"), (10**6, 1.0, "us"), (10**9, 1.0, "ns"))
"""Units of counts since 1970: how many are a second, and of how many seconds the steps are multiples."""
EPOCH_YEARS_S: Final = (978_307_200.0, 4_102_444_800.0)
"""The years 2001 to 2100, s since 1970."""


class UnclearTimes(ValueError):
    """Times that have several readings, or none."""


@dataclass(frozen=True, kw_only=True)
class Windows:
    """Numbers of windows, with the notes on them.

    numbers  (rows,) number of the window of each row
    changes  numbers of the windows in a night in which clocks may change
    step_s   time between two windows, s; None where it is unknown
    notes    texts without the name of the file
    times    of the windows from 1 on, as texts
    """

    numbers: Floats
    times: tuple[str, ...]
    step_s: float | None = None
    notes: tuple[str, ...] = ()
    changes: frozenset[float] = frozenset()


def is_time(value: object) -> bool:
    """Return whether a value is a date, a time, or a text of one."""
    if isinstance(value, datetime.date | datetime.time | datetime.timedelta | np.datetime64 | pd.Period):
        return True
    return isinstance(value, str) and (
        YEAR_FIRST.fullmatch(value.strip()) is not None
        or DAY_FIRST.fullmatch(value.strip()) is not None
        or _spell_month(value.strip()) is not None
        or TIME_OF_DAY.fullmatch(value.strip()) is not None
    )


def read_times(values: pd.Series) -> pd.Series:
    """Return dates and times as timestamps in UTC, or as they are without a time zone.

    raises  UnclearTimes where they have two readings, or are no times
    """
    if isinstance(values.dtype, pd.DatetimeTZDtype):
        in_utc: pd.Series = values.dt.tz_convert("UTC")
        return in_utc
    if values.dtype.kind == "M":
        return values
    texts = [_text_of(value) for value in values]
    if all(TIME_OF_DAY.fullmatch(text) for text in texts):
        days = [f"2000-01-01 {text.zfill(5)}" for text in texts]
        return pd.Series(pd.to_datetime(days), index=values.index)
    texts = [_spell_month(text) or text for text in texts]
    if all(DAY_FIRST.fullmatch(text) for text in texts):
        texts = _order_days(texts)
    return _read_iso(texts, values.index)


def _read_iso(texts: Sequence[str], index: pd.Index) -> pd.Series:
    """Return the timestamps of ISO texts, with a time zone or without."""
    has_zone = {re.search(r"(?:Z|[+-]\d{2}:?\d{2})$", text.partition(":")[2]) is not None for text in texts}
    if len(has_zone) > 1:
        raise UnclearTimes("some times have a time zone and others have none; write all alike")
    try:
        times = pd.to_datetime(pd.Series(texts, index=index), format="ISO8601", utc=has_zone == {True})
    except (ValueError, pd.errors.OutOfBoundsDatetime):
        bad = next((text for text in texts if not _is_iso(text)), texts[0])
        raise UnclearTimes(f"'{bad}' is no time; write 2024-03-31 00:05, or numbers") from None
    return times


def _text_of(value: object) -> str:
    if isinstance(value, datetime.time):
        return value.strftime("%H:%M:%S")
    if isinstance(value, datetime.timedelta):
        return str(pd.Timestamp("2000-01-01") + value)
    if isinstance(value, pd.Period):
        return str(value.start_time)
    return str(value).strip()


def _spell_month(text: str) -> str | None:
    """Return a date that names its month in English as an ISO text; None for other texts."""
    match = NAMED_MONTH.fullmatch(text)
    if match is None or match["month"][:3].lower() not in MONTHS:
        return None
    month = MONTHS.index(match["month"][:3].lower()) + 1
    return f"{match['year']}-{month:02d}-{match['day'].zfill(2)}{match['time']}"


def _is_iso(text: str) -> bool:
    try:
        pd.to_datetime(text, format="ISO8601")
    except ValueError:
        return False
    return True


def _order_days(texts: Sequence[str]) -> list[str]:
    """Return dates with the year last as ISO texts; raise UnclearTimes where day and month are unclear."""
    matches = [match for text in texts if (match := DAY_FIRST.fullmatch(text))]
    first, second = (max(int(match[group]) for match in matches) for group in (1, 2))
    is_day_first = any("." in match[0][:6] for match in matches) or first > 12
    if is_day_first and second > 12:
        other = next(match[0] for match in matches if int(match[2]) > 12)
        raise UnclearTimes(f"'{other}' has the month first, and others the day; write the year first")
    if not is_day_first and second <= 12 and any(match[1] != match[2] for match in matches):
        day, month = _iso(matches[0], is_day_first=True), _iso(matches[0], is_day_first=False)
        raise UnclearTimes(f"'{texts[0]}' is {day[:10]} or {month[:10]}; write the year first")
    return [_iso(match, is_day_first=is_day_first) for match in matches]


def _iso(match: re.Match[str], *, is_day_first: bool) -> str:
    day, month = (match[1], match[2]) if is_day_first else (match[2], match[1])
    time = (match[4] or "00:00").zfill(5)
    return f"{match[3]}-{month.zfill(2)}-{day.zfill(2)} {time}"


def read_epochs(numbers: pd.Series) -> tuple[pd.Series, str] | None:
    """Return numbers as timestamps in UTC where they count from 1970, and their unit; None for others.

    A count is of this century, and its steps are whole seconds; whole minutes where it is in seconds.
    """
    values = numbers.to_numpy(np.float64)
    if len(values) < 2 or not np.isfinite(values).all():
        return None
    for size, multiple_s, unit in EPOCHS:
        seconds = values / size
        if EPOCH_YEARS_S[0] <= seconds.min() and seconds.max() <= EPOCH_YEARS_S[1]:
            ms = np.round(seconds * 1e3).astype(np.int64)
            steps = np.diff(np.unique(ms))
            if not len(steps) or np.any(np.mod(steps, int(multiple_s * 1e3))):
                return None
            times = pd.to_datetime(ms, unit="ms", utc=True)
            return pd.Series(times, index=numbers.index), unit
    return None


def number_times(values: pd.Series) -> Windows:
    """Number the windows that times name, from 1 in their order, without numbers for missing ones.

    raises  UnclearTimes where the times have two readings, or are no times
    """
    times = read_times(values)
    unique, inverse = np.unique(times.to_numpy("datetime64[ns]"), return_inverse=True)
    shown = tuple(map(_show, unique))
    first, last = shown[0], shown[-1]
    numbers = inverse.astype(float) + 1
    if len(unique) == 1:
        return Windows(numbers=numbers, times=shown, notes=(f"window 1 is {first}",))
    gaps = np.diff(unique).astype("timedelta64[ns]").astype(np.int64)
    lengths, counts = np.unique(gaps, return_counts=True)
    step = int(lengths[np.argmax(counts)])
    named = f"windows 1 to {len(unique):,} are {first} to {last}"
    months = (unique.astype("datetime64[M]") - unique[0].astype("datetime64[M]")).astype(int)
    if int(lengths[0]) >= 28 * 86_400 * 10**9 and len(np.unique(months)) == len(months):
        return Windows(
            numbers=numbers, times=shown, notes=(f"{named}, by month", *_missing_months(unique[0], months))
        )
    if (gaps % step).any():
        doubt = (
            f"warning: times are not regular, {_duration(int(lengths[0]))} to {_duration(int(lengths[-1]))} "
            "apart: each counts as one window"
        )
        return Windows(numbers=numbers, times=shown, notes=(named, doubt))
    missing = [
        _show(unique[position] + np.timedelta64(step * more, "ns"))
        for position in np.flatnonzero(gaps > step)[:MAX_NAMED]
        for more in range(1, min(int(gaps[position]) // step, MAX_NAMED + 1))
    ]
    notes = [f"{named}, every {_duration(step)}"]
    count = int((gaps // step - 1).sum())
    if count:
        notes.append(_missing_note(missing, count, len(unique)) + _explain_hour(unique[:-1], gaps, step))
    return Windows(
        numbers=numbers,
        times=shown,
        step_s=step / 1e9,
        notes=tuple(notes),
        changes=frozenset((np.flatnonzero(_is_of_change(unique)) + 1.0).tolist()),
    )


def _explain_hour(before: np.ndarray, gaps: np.ndarray, step: int) -> str:
    """Return the end of a note on missing windows where one gap is the hour that summer time skips."""
    is_skipped = (gaps - step == HOUR_NS) & _is_of_change(before + np.timedelta64(step, "ns"))
    if not is_skipped.any():
        return ""
    time = _show(before[np.flatnonzero(is_skipped)[0]] + np.timedelta64(step, "ns"))
    return f"; the hour from {time} may be that which daylight-saving time skips: write times in UTC"


def _is_of_change(times: np.ndarray) -> np.ndarray:
    """Return a mask of times without a zone that are in a night of a possible change of clocks."""
    index = pd.DatetimeIndex(times)
    is_night = (index.day_of_week == SUNDAY) & (index.hour <= LAST_HOUR)
    return np.asarray(is_night & index.month.isin(MONTHS_OF_CHANGES))


def describe_numbers(numbers: Floats) -> tuple[str, ...]:
    """Return notes on numbers of windows that do not rise by 1: their step, and those that are missing."""
    unique = np.unique(numbers)
    if len(unique) < 2 or not np.isfinite(unique).all():
        return ()
    gaps = np.diff(unique)
    lengths, counts = np.unique(gaps, return_counts=True)
    step = float(lengths[np.argmax(counts)])
    notes = []
    if step != 1:
        notes.append(
            f"assumed: windows are numbered in steps of {step:,.15g}, from {unique[0]:.15g} to "
            f"{unique[-1]:.15g}: "
            f"{len(unique):,} windows"
        )
    if (gaps % step).any():
        notes.append(
            f"warning: numbers of windows are not regular, {lengths[0]:,.15g} to {lengths[-1]:,.15g} apart: "
            "each counts as one window"
        )
        return tuple(notes)
    count = int((gaps / step - 1).sum())
    if count:
        missing = [
            f"{unique[position] + step * more:.15g}"
            for position in np.flatnonzero(gaps > step)[:MAX_NAMED]
            for more in range(1, min(int(gaps[position] / step), MAX_NAMED + 1))
        ]
        notes.append(_missing_note(missing, count, len(unique)))
    return tuple(notes)


def describe_labels(labels: Sequence[str], where: str) -> tuple[str, ...]:
    """Return warnings on names of windows that are or end in numbers or times: those missing in between.

    Names that share no such form say nothing about gaps.

    where  name of the file or folder
    """
    notes = _describe_labels(labels) if labels else ()
    doubts = (note.removeprefix("warning: ") for note in notes if note.startswith("warning: "))
    return tuple(f"warning: {where}: {doubt}" for doubt in doubts)


def _describe_labels(labels: Sequence[str]) -> tuple[str, ...]:
    """Return notes on names that all are times, or one text before numbers, days or times."""
    if all(is_time(label) for label in labels):
        return _describe_times(labels)
    matches = [match for label in labels if (match := NUMBERED.fullmatch(label))]
    if len(matches) < len(labels):
        return ()
    texts, numbers = zip(*(match.group("text", "number") for match in matches), strict=True)
    if len(set(texts)) > 1:
        return ()
    days = [day for number in numbers if (day := DAY_AND_TIME.fullmatch(number))]
    if len(days) == len(numbers):
        return _describe_times(list(map(_spell_day, days)))
    if all(map(str.isdecimal, numbers)):
        return describe_numbers(np.array(list(map(float, numbers))))
    return ()


def _spell_day(day: re.Match[str]) -> str:
    """Return the ISO text of a day, with its time where it has one."""
    return f"{day[1]}-{day[2]}-{day[3]} {day[4] or '00'}:{day[5] or '00'}"


def _describe_times(texts: Sequence[str]) -> tuple[str, ...]:
    try:
        return number_times(pd.Series(texts, dtype=object)).notes
    except UnclearTimes:
        return ()


def natural_order(name: str) -> list[str | int]:
    """Return a key that sorts names by the numbers in them: `window 2` before `window 10`."""
    parts = re.split(r"([0-9]+)", name)
    return [int(piece) if odd % 2 else piece for odd, piece in enumerate(parts)]


def describe_empty(
    first: Floats,
    last: Floats,
    count: int,
    *,
    where: str,
    start: float,
    length: float,
    unit: str,
    noun: str,
) -> str | None:
    """Return the warning on windows of a trace in which nothing happens; None where there are none.

    first, last    windows, counted from 0, that each entry of the trace begins and ends in
    where          name of the file
    start, length  of the first window and of each, in `unit`
    noun           an entry of the trace, such as session
    """
    order = np.argsort(first, kind="stable")
    begins = np.r_[0.0, np.maximum.accumulate(last[order]) + 1]
    ends = np.r_[first[order], float(count)]
    is_gap = ends > begins
    empty = int((ends - begins)[is_gap].sum())
    if not empty:
        return None
    spans = [
        f"{start + length * begin:,.15g} to {start + length * end:,.15g} {unit}"
        for begin, end in zip(begins[is_gap][:MAX_NAMED], ends[is_gap][:MAX_NAMED], strict=True)
    ]
    more = int(is_gap.sum()) - MAX_NAMED
    shown = ", ".join(spans) + (f" and {more:,} more times" if more > 0 else "")
    have = "window has" if count == 1 else "windows have"
    return (
        f"warning: {where}: {empty:,} of {count:,} {have} no {noun} ({shown}): they count as windows without "
        "demand; where records are missing, leave these windows out"
    )


def _missing_months(first: np.datetime64, months: np.ndarray) -> tuple[str, ...]:
    absent = np.setdiff1d(np.arange(months[-1] + 1), months)
    if not len(absent):
        return ()
    names = [str(first.astype("datetime64[M]") + int(month)) for month in absent[:MAX_NAMED]]
    return (_missing_note(names, len(absent), len(months)),)


def _missing_note(names: Sequence[str], count: int, present: int) -> str:
    shown = ", ".join(names[:MAX_NAMED]) + (f" and {count - MAX_NAMED:,} more" if count > MAX_NAMED else "")
    are = "window is" if count == 1 else "windows are"
    return (
        f"warning: {count:,} {are} missing ({shown}): the {present:,} windows with rows count, "
        "no zeros are added"
    )


def _show(time: np.datetime64) -> str:
    stamp = pd.Timestamp(time)
    if stamp.year == 2000 and stamp.month == stamp.day == 1:
        return f"{stamp:%H:%M:%S}".removesuffix(":00")
    return f"{stamp:%Y-%m-%d %H:%M:%S}".removesuffix(":00")


def _duration(nanoseconds: int) -> str:
    seconds = nanoseconds / 1e9
    for size, name in UNITS:
        if seconds >= size and seconds % size == 0:
            count = int(seconds // size)
            return counted(count, f"{name}s")
    return f"{seconds:g} s"
