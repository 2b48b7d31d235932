"""Clocks that are wrong: named the same in any blocks, by limits around the middle half of the starts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.contract.units import DAY_S
from planner.errors import InputError
from planner_models.flowrecords import text_records
from planner_models.flowrecords.clocks import HOUR_S, StartHours
from planner_models.flowrecords.reading import ReadSettings, open_records, read_records
from planner_models.flowrecords.records import FlowRecords
from tests.models.flowrecords.test_partitions import draw


def at(starts: list[float]) -> FlowRecords:
    """Return records of instants."""
    records = draw(len(starts), 1)
    times = np.array(starts)
    return FlowRecords(**{**vars(records), "start_s": times, "end_s": times})


@given(
    st.lists(st.floats(0, 1e9), min_size=1, max_size=40),
    st.integers(1, 7),
)
def test_limits_are_those_of_whole_hours(starts: list[float], size: int) -> None:
    hours = StartHours()
    for first in range(0, len(starts), size):
        hours.add(at(starts[first : first + size]))
    lower_rank, upper_rank = (
        np.quantile(starts, 0.25, method="lower"),
        np.quantile(starts, 0.75, method="higher"),
    )
    lower = np.floor(lower_rank / HOUR_S) * HOUR_S
    upper = (np.floor(upper_rank / HOUR_S) + 1) * HOUR_S
    width = 2 * (upper - lower) + DAY_S
    assert hours.limits() == (lower - width, upper + width)
    assert hours.is_one_time() == (min(starts) >= lower - width and max(starts) <= upper + width)


NAMES = "ts,te,td,sa,da,sp,dp,pr,ipkt,ibyt,ra"
ROW = "2026-03-02 08:00:00.000,2026-03-02 08:00:01.000,1,10.0.0.1,10.0.0.2,1,2,TCP,1,100,192.0.2."


@pytest.mark.parametrize("holds", [True, False])
def test_records_far_from_others_are_named_over_blocks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, holds: bool
) -> None:
    monkeypatch.setattr(text_records, "ROWS", 3)
    rows = [f"{ROW}{number % 3 + 1}" for number in range(20)]
    for row in (5, 13, 14):
        rows[row] = rows[row].replace("2026-03-02", f"1970-01-{row:02}")
    (tmp_path / "f.csv").write_text("\n".join([NAMES, *rows]))
    expected = (
        "f.csv: 3 of 20 records are over a day outside the time of the others, the first at "
        "1970-01-05T08:00:00, of exporter 192.0.2.2, 192.0.2.3; is a clock wrong?"
    )
    paths = [tmp_path / "f.csv"]
    with pytest.raises(InputError) as error:
        read_records(paths) if holds else open_records(paths, ReadSettings())
    assert str(error.value) == expected
