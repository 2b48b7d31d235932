"""Sessions cut into windows, solved one after the other, and changes between them."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import pandas as pd
import pytest

from planner import Options
from planner.contract.notes import observe_notes
from planner.errors import InputError
from planner.runs import rolling
from planner.scenarios.scenario import load
from planner_models.livevideo import check
from planner_models.livevideo.designs.decomposition import decomposition
from planner_models.livevideo.plan.plan import moved_objects
from planner_models.livevideo.problem.series import count_windows, read_window, read_windows, window_requests
from tests.commands import planner

FOLDER = Path(str(files("planner_data") / "scenarios" / "livevideo" / "sessions"))
QUICK = Options(time_limit_s=0.5, threads=1, gap=2e-3)


def sessions() -> pd.DataFrame:
    return pd.DataFrame(
        [(0.0, 90.0, "A", "v", 400.0), (10.0, 20.0, "A", "v", 400.0), (61.0, 10.0, "B", "v", 400.0)],
        columns=["start_s", "duration_s", "group", "channel", "bitrate_kbps"],
    )


def test_each_window_has_the_sessions_in_it() -> None:
    assert count_windows(sessions(), 60.0) == 2
    first = window_requests(sessions(), index=0, window_s=60.0)
    assert first[["group", "clients", "arrival_s"]].to_numpy().tolist() == [["A", 2.0, 0.0]]
    second = window_requests(sessions(), index=1, window_s=60.0)
    assert second[["group", "clients", "arrival_s"]].to_numpy().tolist() == [["A", 1.0, 0.0], ["B", 1.0, 1.0]]
    new = window_requests(sessions(), index=1, window_s=60.0, only_new=True)
    assert new["group"].tolist() == ["B"]


def test_a_window_after_the_end() -> None:
    with pytest.raises(InputError, match="index is 99, the sessions last for 10 windows of 60 s"):
        read_window(path=FOLDER, index=99)


@pytest.mark.slow
def test_most_moved_limits_the_changed_trees() -> None:
    first, second = read_window(path=FOLDER, index=3), read_window(path=FOLDER, index=4)
    before = decomposition.distribute(first, options=QUICK)
    for upper in (0, 3):
        after = decomposition.distribute(second, options=QUICK, previous=before, most_moved=upper)
        assert before.plan is not None
        assert after.plan is not None
        assert not len(check(second, after.plan))
        grown = moved_objects(before.plan, after.plan)
        assert (grown["gained"] > 0).sum() <= upper


def test_windows_come_in_order() -> None:
    windows = read_windows(path=FOLDER, window_s=200.0)
    assert len(windows) == 3
    assert [label for label, _ in windows] == ["000s", "200s", "400s"]
    for index, (_, item) in enumerate(windows):
        assert item.requests.equals(read_window(path=FOLDER, index=index, window_s=200.0).requests)
    halves = [label for label, _ in read_windows(path=FOLDER, window_s=62.5)]
    assert halves[:3] == ["000s", "062.5s", "125s"]
    assert len(set(halves)) == len(halves)


@pytest.mark.slow
def test_an_interrupted_roll_keeps_finished_windows(tmp_path: Path) -> None:
    scenario = load("livevideo/sessions", changes={"problem.window_s": 200.0}, options=QUICK)
    begun = iter(rolling.start_roll(scenario, designs=["vdn_steady"], out=tmp_path))
    next(begun)
    del begun  # the run is over
    selected = tmp_path / "vdn_steady" / "windows"
    assert [path.name for path in selected.iterdir()] == ["000s"]
    again = list(rolling.start_roll(scenario, designs=["vdn_steady"], out=tmp_path))
    assert [read_window.kept for read_window in again] == [True, False, False]
    assert all(read_window.exit_code == 0 and not read_window.run["violations"] for read_window in again)
    assert again[1].run["metrics"]["moved_objects"] is not None


def test_a_trace_cannot_be_solved_as_one_problem() -> None:
    result = planner("solve", "livevideo/sessions")
    assert result.code == 1
    design, error = result.err.splitlines()
    assert design == "design: vdn; --design names another: vdn_steady"
    assert error.endswith("run them with: planner roll; or choose one, such as --set series.window=1")


@pytest.mark.parametrize(
    ("starts", "only_new", "said"),
    [
        ([0, 60, 120], False, None),
        ([0, 60, 120], True, None),
        ([180, 240, 480], False, "5 of 9 windows have no session (0 to 180 s, 360 to 480 s)"),
        (
            [180, 240, 480],
            True,
            "6 of 9 windows have no session that starts in it (0 to 180 s, 300 to 480 s)",
        ),
        ([1_700_000_040], False, "28,333,334 of 28,333,335 windows have no session (0 to 1,700,000,040 s)"),
    ],
)
def test_windows_without_a_session_are_named(
    starts: list[float], only_new: bool, said: str | None, tmp_path: Path
) -> None:
    for file in FOLDER.iterdir():
        if file.suffix == ".csv":
            (tmp_path / file.name).write_bytes(file.read_bytes())
    rows = pd.read_csv(tmp_path / "sessions.csv").iloc[: len(starts)]
    duration = [90.0 if start == 240 else 60.0 for start in starts]
    rows.assign(start_s=starts, duration_s=duration).to_csv(tmp_path / "sessions.csv", index=False)
    notes: list[str] = []
    with observe_notes(notes.append):
        read_windows(path=tmp_path, window_s=60.0, only_new=only_new)
    result = [note for note in notes if note.startswith("warning: ")]
    assert len(result) == (said is not None)
    assert all(note.startswith(f"warning: sessions.csv: {said}") for note in result)
