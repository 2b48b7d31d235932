"""A column of dates and one of hours, read as one time of each row; note and error name both."""

from __future__ import annotations

import pandas as pd

from planner.contract.columns import shorten_name
from planner.contract.date_and_hour import join_date_and_hour
from planner.contract.periods import UnclearTimes
from planner.errors import InputError


def join_times(
    dates: pd.Series, hours: pd.Series, *, window: str, where: str
) -> tuple[pd.Series, str] | None:
    """Return the time of each row and the note on it; None where the columns are no days and hours.

    dates, hours  cells, each with the name of its column
    window        our column that the times are read as
    where         the file, in note and error

    raises  InputError where an hour is no time of day, or the hours have two readings
    """
    columns = f"columns '{shorten_name(str(dates.name))}' and '{shorten_name(str(hours.name))}'"
    try:
        times = join_date_and_hour(dates, hours)
    except UnclearTimes as error:
        raise InputError(f"{where}: {columns}: {error}") from None
    return None if times is None else (times, f"{where}: read {columns} together as {window}")
