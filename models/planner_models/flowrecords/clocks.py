"""Records far outside the time of all others of their file, as an exporter's clock is wrong."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import numpy as np

from planner.contract.tables import SHOWN_ROWS
from planner.contract.units import DAY_S
from planner.errors import InputError
from planner_models.flowrecords.records import FlowRecords

HOUR_S: Final = 3600.0


class StartHours:
    """Records by the hour in which they start, of records that come in blocks."""

    def __init__(self) -> None:
        self.records_of: dict[int, int] = {}
        self.first_s, self.last_s = np.inf, -np.inf

    def add(self, records: FlowRecords) -> None:
        """Add a block of records."""
        if not len(records):
            return
        hours, counts = np.unique(np.floor(records.start_s / HOUR_S).astype(np.int64), return_counts=True)
        for hour, count in zip(hours.tolist(), counts.tolist(), strict=True):
            self.records_of[hour] = self.records_of.get(hour, 0) + count
        self.first_s = min(self.first_s, float(records.start_s.min()))
        self.last_s = max(self.last_s, float(records.end_s.max()))

    def limits(self) -> tuple[float, float]:
        """Return the time within which records must be, s since 1970.

        It is the hours of the middle half of the starts, as much again on both sides, and a day.
        """
        hours = np.array(sorted(self.records_of), dtype=np.int64)
        behind = np.cumsum([self.records_of[hour] for hour in hours.tolist()])
        last = int(behind[-1]) - 1
        lower = float(hours[np.searchsorted(behind, last // 4, side="right")]) * HOUR_S
        upper = float(hours[np.searchsorted(behind, last - last // 4, side="right")] + 1) * HOUR_S
        width = 2 * (upper - lower) + DAY_S
        return lower - width, upper + width

    def is_one_time(self) -> bool:
        """Return whether no record is outside the limits."""
        lower, upper = self.limits()
        return lower <= self.first_s and self.last_s <= upper


def describe_far(blocks: Iterable[FlowRecords], limits: tuple[float, float], name: str) -> InputError:
    """Return the error of a file with records outside limits, s since 1970."""
    lower, upper = limits
    count, all_records = 0, 0
    first_s = np.nan
    exporters: set[str] = set()
    for records in blocks:
        all_records += len(records)
        rows = np.flatnonzero((records.start_s < lower) | (records.end_s > upper))
        if len(rows) and not count:
            first_s = records.start_s[rows[0]]
        count += len(rows)
        codes = np.unique(records.exporter[rows]).tolist()
        exporters |= {records.exporters[code] for code in codes if code >= 0}
    of = f", of exporter {', '.join(sorted(exporters)[:SHOWN_ROWS])}" if exporters else ""
    shown = np.datetime_as_string(np.array([first_s]).astype("datetime64[s]"))[0]
    return InputError(
        f"{name}: {count:,} of {all_records:,} records are over a day outside the time of the others, "
        f"the first at {shown}{of}; is a clock wrong?"
    )
