"""Sessions cut into windows, solved one after the other, and what moves between them."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import pandas as pd
import pytest

from planner import Options
from planner.errors import InputError
from planner_models.livevideo import check, columns
from planner_models.livevideo.roll import roll
from planner_models.livevideo.trees import moved_objects
from planner_models.livevideo.windows import requests, window, windows

FOLDER = Path(str(files("planner_data") / "scenarios" / "livevideo" / "sessions"))
QUICK = Options(time_limit_s=0.5, threads=1, gap=2e-3)


def sessions() -> pd.DataFrame:
    return pd.DataFrame(
        [(0.0, 90.0, "A", "v", 400.0), (10.0, 20.0, "A", "v", 400.0), (61.0, 10.0, "B", "v", 400.0)],
        columns=["start_s", "duration_s", "group", "channel", "bitrate_kbps"],
    )


def test_who_watches_in_each_window() -> None:
    assert windows(sessions(), 60.0) == 2
    first = requests(sessions(), index=0, window_s=60.0)
    assert first[["group", "clients", "arrival_s"]].to_numpy().tolist() == [["A", 2.0, 0.0]]
    second = requests(sessions(), index=1, window_s=60.0)
    assert second[["group", "clients", "arrival_s"]].to_numpy().tolist() == [["A", 1.0, 0.0], ["B", 1.0, 1.0]]
    new = requests(sessions(), index=1, window_s=60.0, only_new=True)
    assert new["group"].tolist() == ["B"]


def test_a_window_after_the_end() -> None:
    with pytest.raises(InputError, match="index is 99, the sessions last for 10 windows of 60 s"):
        window(path=FOLDER, index=99)


def test_a_limit_on_what_moves() -> None:
    first, second = window(path=FOLDER, index=3), window(path=FOLDER, index=4)
    before = columns.distribute(first, options=QUICK)
    for most in (0, 3):
        after = columns.distribute(second, options=QUICK, previous=before, most_moved=most)
        assert before.plan is not None
        assert after.plan is not None
        assert not len(check(second, after.plan))
        grown = moved_objects(before.plan, after.plan)
        assert (grown["gained"] > 0).sum() <= most


def test_a_run_that_stops_leaves_what_was_finished(tmp_path: Path) -> None:
    rows = roll(FOLDER, options=QUICK, out=tmp_path, window_s=200.0)
    first = next(rows)
    del rows  # the run is over
    assert sorted(path.name for path in tmp_path.iterdir()) == ["window-0000.json", "window-0000.parquet"]
    again = list(roll(FOLDER, options=QUICK, out=tmp_path, window_s=200.0))
    assert again[0] == first
    assert len(again) == 3
    assert all(row["violations"] == 0 for row in again)
