"""Forms of times in texts: dates, months, times of day, and names of columns that are times."""

from __future__ import annotations

import re
from typing import Final

DAY_FIRST: Final = re.compile(r"(\d{1,2})[./-](\d{1,2})[./-](\d{4})(?:[ T](\d{1,2}:\d{2}(?::\d{2})?))?")
"""Dates with the year last, such as 31.03.2024 00:05 or 03/31/2024; a point means the day is first."""
YEAR_FIRST: Final = re.compile(r"\d{4}[-/.]\d{1,2}(?:[-/.]\d{1,2}(?:[ T].*)?)?")
"""Dates with the year first, such as 2024-03-31 00:05 or 2024/03/31, and months."""
NAMED_MONTH: Final = re.compile(
    r"(?P<day>\d{1,2})[ .-]+(?P<month>[A-Za-z]{3,9})[ .,-]+(?P<year>\d{4})(?P<time>(?:[ T].*)?)"
)
"""Dates with the name of the month, such as 31 Mar 2024 00:05."""
DATE: Final = re.compile(
    r"\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[./-]\d{1,2}[./-]\d{4}|\d{1,2}[ .-]+[A-Za-z]{3,9}[ .,-]+\d{4}"
)
"""Dates without a time of day."""
MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
TIME_OF_DAY: Final = re.compile(r"\d{1,2}:\d{2}(?::\d{2}(?:\.\d+)?)?")
DAY_AND_TIME: Final = re.compile(
    r"((?:19|20)\d\d)(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01])(?:[-_T]?([01]\d|2[0-3])([0-5]\d)(?:[0-5]\d)?)?"
)
"""Days as in 20040301, with a time as in 20040301-0005."""
TIME_NAME: Final = re.compile(
    r"\d{1,2}(?::\d{2}){1,2}(?:\s*[ap]m)?"
    r"|\d{4}-\d{2}(?:-\d{2})?(?:[T ]\d{2}:\d{2}(?::\d{2})?)?|(?:19|20)\d{2}"
    r"|(?:hour|month|year|week|day|h|t|q)[ _]?\d{1,4}|jan\w*|feb\w*|mar(?:ch|z)?|apr\w*|may|june?|july?"
    r"|aug\w*|sep\w*|oct\w*|nov\w*|dec\w*",
    re.IGNORECASE,
)
"""Names of columns that are times: `08:00`, `2026-03-01`, `2026`, `Hour 8`, `March`."""
