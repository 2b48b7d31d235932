"""Series of windows: days, measured windows, and their bills."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from planner.contract.notes import observe_notes
from planner.errors import InputError
from planner.runs import rolling
from planner.scenarios.scenario import load
from planner_models.brokering import Assignment
from planner_models.brokering.plan import billing
from planner_models.brokering.problem import series as windows
from tests.models.brokering.markets import market as make


def test_a_day_has_fewer_clients_at_night() -> None:
    problem = make([("Lyon", 1000.0, 1000)], [("a", "x", "Lyon", 6000.0, 0.1)])
    totals = [
        share.size()["clients"]
        for share in (item for _, item in windows.Day(problem=problem, windows=24, swing=0.5))
    ]
    assert max(totals) == pytest.approx(1000, rel=0.01)
    assert min(totals) == pytest.approx(500, rel=0.01)
    assert next(iter(windows.Day(problem=problem, windows=3, swing=0.0)))[1].size()["clients"] == 1000


DAY = """
system = "brokering"
[problem]
source = "{source}"
{more}
windows = 4
[designs.marketplace]
[designs.learning_bidders]
step = 0.2
[solver]
gap = 0.01
"""


@pytest.mark.slow
def test_a_day_is_rolled_billed_and_goes_on_where_it_stopped(tmp_path: Path) -> None:
    toml = tmp_path / "day.toml"
    toml.write_text(DAY.format(source="day", more="clients = 400\nplaces = 30"))
    scenario = load(toml)
    series = [problem for _, problem in windows.day(windows=4, clients=400, places=30)]
    result = list(rolling.start_roll(scenario, out=tmp_path / "out"))
    assert [window.label for window in result[:4]] == ["00h00", "06h00", "12h00", "18h00"]
    assert not any(window.exit_code for window in result)
    plans = [
        Assignment(
            assignments=pd.read_parquet(
                tmp_path / f"out/marketplace/windows/{w.label}/plan/assignments.parquet"
            )
        )
        for w in result[:4]
    ]
    told = result[3].run["metrics"]
    for rule, name in (("bits", "bits"), ("95th percentile", "95th")):
        bill = billing.bill(series, plans, rule=rule)  # type: ignore[arg-type]
        # prices that are derived follow each window's clients; windows before are at the last one's
        assert told[f"billed_by_{name}_per_hour"] == pytest.approx(bill["amount"].sum() / 4, rel=0.05)
    assert told["billed_by_95th_per_hour"] > told["billed_by_bits_per_hour"]
    again = list(rolling.start_roll(scenario, out=tmp_path / "out"))
    assert all(window.kept for window in again)
    assert [window.run["metrics"] for window in again] == [window.run["metrics"] for window in result]


def test_a_day_of_your_own_tables_and_measured_windows(tmp_path: Path) -> None:
    problem = make([("Lyon", 1000.0, 100)], [("a", "x", "Lyon", 200.0, 0.1)])
    for folder in ("day", "measured/monday", "measured/tuesday"):
        (tmp_path / folder).mkdir(parents=True)
        for name, frame in problem.to_tables().items():
            frame.to_csv(tmp_path / folder / f"{name}.csv", index=False)
    toml = tmp_path / "mine.toml"
    toml.write_text(DAY.format(source="day_of_tables", more='path = "day"\nswing = 0.8'))
    make_series = load(toml).make_series
    assert make_series is not None
    totals = {label: item.size()["clients"] for label, item in make_series()}
    assert len(totals) == 4
    assert 20 <= min(totals.values()) < max(totals.values()) <= 100
    toml.write_text(DAY.format(source="windows", more='path = "measured"').replace("windows = 4\n", ""))
    make_series = load(toml).make_series
    assert make_series is not None
    assert [label for label, _ in make_series()] == ["monday", "tuesday"]
    with pytest.raises(InputError, match="has no folders with the tables of a window"):
        windows.windows_of_tables(path=tmp_path / "day")


def test_what_a_roll_wrote_beside_the_windows_is_no_window(tmp_path: Path) -> None:
    for name in ["monday", "tuesday"]:
        (tmp_path / name).mkdir()
    (tmp_path / "out" / "marketplace").mkdir(parents=True)
    (tmp_path / "out" / "scenario.toml").write_text('system = "brokering"\n')
    assert [folder.name for folder in windows.windows_of_tables(path=tmp_path).folders] == [
        "monday",
        "tuesday",
    ]
    with pytest.raises(InputError, match="has no folders"):
        windows.windows_of_tables(path=tmp_path / "absent")


def test_folders_of_windows_come_in_order_and_missing_ones_are_named(tmp_path: Path) -> None:
    for name in ("hour 10", "hour 2", "hour 9", "hour 8"):
        (tmp_path / name).mkdir()
    notes: list[str] = []
    with observe_notes(notes.append):
        result = windows.windows_of_tables(path=tmp_path)
    assert [folder.name for folder in result.folders] == ["hour 2", "hour 8", "hour 9", "hour 10"]
    (note,) = notes
    assert note.startswith(f"warning: {tmp_path.name}: 5 windows are missing (3, 4, 5 and 2 more): the 4")
