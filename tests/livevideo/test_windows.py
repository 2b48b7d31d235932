"""Sessions cut into windows, solved one after the other, and what moves between them."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import pandas as pd
import pytest

from planner import Options, rolling
from planner.errors import InputError
from planner.scenario import load
from planner_models.livevideo import check, columns
from planner_models.livevideo.trees import moved_objects
from planner_models.livevideo.windows import requests, series, window, windows
from tests.commands import planner

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


def test_every_window_in_turn() -> None:
    whole = series(path=FOLDER, window_s=200.0)
    assert len(whole) == 3
    assert [label for label, _ in whole] == ["000s", "200s", "400s"]
    for index, (_, one) in enumerate(whole):
        assert one.requests.equals(window(path=FOLDER, index=index, window_s=200.0).requests)
    halves = [label for label, _ in series(path=FOLDER, window_s=62.5)]
    assert halves[:3] == ["000s", "062.5s", "125s"]
    assert len(set(halves)) == len(halves)


def test_a_roll_that_stops_leaves_what_was_finished(tmp_path: Path) -> None:
    scenario = load("livevideo/sessions", changes={"problem.window_s": 200.0}, options=QUICK)
    begun = iter(rolling.start(scenario, designs=["vdn_steady"], out=tmp_path))
    next(begun)
    del begun  # the run is over
    kept = tmp_path / "vdn_steady" / "windows"
    assert [path.name for path in kept.iterdir()] == ["000s"]
    again = list(rolling.start(scenario, designs=["vdn_steady"], out=tmp_path))
    assert [window.kept for window in again] == [True, False, False]
    assert all(window.exit_code == 0 and not window.run["violations"] for window in again)
    assert again[1].run["metrics"]["moved_objects"] is not None


def test_a_trace_is_no_single_problem() -> None:
    done = planner("solve", "livevideo/sessions")
    assert done.code == 1
    assert "planner roll" in done.err
    assert len(done.err.splitlines()) == 1
