"""Rolling a series through designs: what is kept, what goes on, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from planner.errors import InputError
from planner.runs import evaluation, rolling
from planner.scenarios.scenario import load
from tests.commands import planner

LINKS = "tail,head,capacity_mbps\ns,a,10\na,t,10\ns,b,5\nb,t,5\n"
STEPS = "step,source,target,rate_mbps\n8:00,s,t,3\n9:00,s,t,6\n../x,s,t,12\n10:00,s,t,9\n"
SCENARIO = """
system = "traffic"
[problem]
source = "matrices"
path = "steps.csv"
network = "net"
[designs.optimum]
[designs.ecmp]
"""


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    (tmp_path / "net").mkdir()
    (tmp_path / "net" / "links.csv").write_text(LINKS)
    (tmp_path / "steps.csv").write_text(STEPS)
    path = tmp_path / "s.toml"
    path.write_text(SCENARIO)
    return path


def metrics(folder: Path) -> pd.DataFrame:
    return pd.read_csv(folder / "windows.csv").drop(columns="seconds")


def test_each_window_is_measured_and_kept(scenario: Path, tmp_path: Path) -> None:
    result = planner("roll", scenario, "--out", tmp_path / "out", "--table-format", "csv")
    assert result.code == 0, result.err
    assert "saved 8 windows" in result.err
    assert "4 windows, mean and worst" in result.out
    optimum = metrics(tmp_path / "out" / "optimum")
    assert optimum["window"].tolist() == ["8:00", "9:00", "../x", "10:00"]
    assert optimum["max_utilization"].tolist() == pytest.approx([0.2, 0.4, 0.8, 0.6])
    assert metrics(tmp_path / "out" / "ecmp")["max_utilization"].max() == pytest.approx(1.2)
    plans = sorted(path.name for path in (tmp_path / "out" / "optimum" / "windows").iterdir())
    assert plans == ["%2E.%2Fx", "10:00", "8:00", "9:00"], "a step's name leaves the folder by no way"
    assert (tmp_path / "out" / "optimum" / "windows" / "8:00" / "plan" / "flows.csv").exists()


def test_a_roll_that_was_stopped_goes_on_and_ends_the_same(
    scenario: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    full = rolling.start_roll(load(scenario), out=tmp_path / "whole")
    expected = [window.row() for window in full]
    assert len(expected) == len(full) == 8

    started = iter(rolling.start_roll(load(scenario), out=tmp_path / "out"))
    for _ in range(3):
        next(started)
    del started
    # a kill may leave a window half written: it is no window yet
    half = tmp_path / "out" / "optimum" / "windows" / ".10:00.partial"
    half.mkdir()
    (half / "run.json").write_text("{")

    solved: list[Any] = []
    evaluate = evaluation.evaluate
    monkeypatch.setattr(
        rolling, "evaluate", lambda *inputs, **more: solved.append(inputs) or evaluate(*inputs, **more)
    )
    result = planner("roll", scenario, "--out", tmp_path / "out", "--json")
    assert result.code == 0, result.err
    assert len(solved) == 5
    assert "of which 3 existed before" in result.err
    for design in ("optimum", "ecmp"):
        again, before = metrics(tmp_path / "out" / design), metrics(tmp_path / "whole" / design)
        pd.testing.assert_frame_equal(again, before)
    assert [row["window"] for row in json.loads(result.out)["runs"]] == [row["window"] for row in expected]


def test_a_window_starts_from_the_last_plan_there_is(scenario: Path, tmp_path: Path) -> None:
    seen: list[Any] = []

    def spy(design: Any) -> Any:
        import dataclasses

        def decide(problem: Any, *, options: Any, previous: Any = None) -> Any:
            seen.append(None if previous is None else previous.plan)
            return design.run(problem, options=options)

        return dataclasses.replace(design, decide=decide)

    loaded = load(scenario)
    roll = rolling.start_roll(loaded, designs=["optimum"], out=tmp_path / "out")
    roll.entries[0].__dict__["design"] = spy(roll.entries[0].design)
    windows = iter(roll)
    next(windows), next(windows)
    assert seen[0] is None
    assert seen[1] is not None
    again = rolling.start_roll(load(scenario), designs=["optimum"], out=tmp_path / "out")
    again.entries[0].__dict__["design"] = spy(again.entries[0].design)
    seen.clear()
    assert [window.kept for window in again] == [True, True, False, False]
    assert len(seen) == 2
    assert seen[0].to_tables()["flows"]["rate_mbps"].sum() == pytest.approx(12.0), "the kept plan of 9:00"


def test_a_window_that_fails_is_told_and_the_rest_go_on(scenario: Path, tmp_path: Path) -> None:
    text = SCENARIO.replace("[designs.ecmp]", "").replace(
        "[designs.optimum]", '[solver]\nservice = "all"\n[designs.optimum]\nobjective = "cost"'
    )
    scenario.write_text(text)
    links = (
        LINKS.replace("capacity_mbps", "capacity_mbps,cost,weight")
        .replace("10\n", "10,1,1\n")
        .replace("5\n", "5,2,1\n")
    )
    (scenario.parent / "net" / "links.csv").write_text(links)
    (scenario.parent / "steps.csv").write_text(STEPS.replace("t,12", "t,99"))
    result = planner("roll", scenario, "--out", tmp_path / "out")
    assert result.code == 3
    assert "optimum, ../x:" in result.out
    table = metrics(tmp_path / "out" / "optimum")
    assert table["status"].tolist() == ["optimal", "optimal", "infeasible", "optimal"]
    again = planner("roll", scenario, "--out", tmp_path / "out")
    assert again.code == 3
    pd.testing.assert_frame_equal(metrics(tmp_path / "out" / "optimum"), table)


def test_what_cannot_be_rolled_is_one_line(scenario: Path, tmp_path: Path) -> None:
    result = planner("roll", "traffic/germany50", "--out", tmp_path / "out")
    assert result.code == 1
    assert result.err.startswith("traffic/germany50: problem.source gives one problem, but a roll needs")
    many = planner("compare", scenario)
    assert many.code == 1
    assert "planner roll" in many.err
    assert planner("roll", scenario, "--out", tmp_path / "out").code == 0
    other = planner("roll", scenario, "--out", tmp_path / "out", "--set", "problem.scale=0.5")
    assert other.code == 1
    assert "has the plans of another scenario" in other.err
    (tmp_path / "steps.csv").write_text(STEPS.replace("t,3", "t,4"))
    changed = planner("roll", scenario, "--out", tmp_path / "out")
    assert changed.code == 1
    assert "was computed from other data" in changed.err
    assert metrics(tmp_path / "out" / "optimum")["max_utilization"].iloc[0] == pytest.approx(0.2)


def test_what_always_applies_changes_every_problem_of_a_series(scenario: Path) -> None:
    loaded = load(scenario, changes={"problem.scale": 2.0})
    assert loaded.make_series is not None
    rates = [float(problem.rate_mbps.sum()) for _, problem in loaded.make_series()]
    assert rates == [6.0, 12.0, 24.0, 18.0]


@pytest.mark.parametrize("damage", ["run.json", "plan/flows.parquet"])
def test_a_damaged_window_is_said_and_computed_again(
    scenario: Path, tmp_path: Path, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    assert planner("roll", scenario, "--out", tmp_path / "out", "--designs", "optimum").code == 0
    before = metrics(tmp_path / "out" / "optimum")
    windows = sorted((tmp_path / "out" / "optimum" / "windows").iterdir())
    path = windows[1] / damage
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])  # as after a power cut
    result = planner("roll", scenario, "--out", tmp_path / "out", "--designs", "optimum")
    assert result.code == 0, result.err
    assert f"{windows[1].name}: is damaged and computed again" in caplog.text
    assert f"saved {len(windows)} windows" in result.err
    assert f"of which {len(windows) - 1} existed before" in result.err
    again = metrics(tmp_path / "out" / "optimum")
    columns = [name for name in before if name not in ("seconds", "gap")]
    pd.testing.assert_frame_equal(again[columns], before[columns])
    assert path.stat().st_size == pytest.approx(len(content), rel=0.2)


# --- events -------------------------------------------------------------------------------

EVENT = '["s<->a"]'


def test_an_event_is_the_same_change_by_hand_from_its_window_on(scenario: Path, tmp_path: Path) -> None:
    result = planner(
        *("roll", scenario, "--out", tmp_path / "out", "--designs", "optimum", "--table-format", "csv"),
        *("--at", f"9:00 problem.fail_links={EVENT}", "--at", "10:00 problem.fail_links=[]"),
    )
    assert result.code == 0, result.err
    failed = load(scenario, changes={"problem.fail_links": ["s<->a"]})
    for index, by_hand in enumerate((load(scenario), failed, failed, load(scenario))):
        assert by_hand.make_series is not None
        problem = dict(list(by_hand.make_series()))[["8:00", "9:00", "../x", "10:00"][index]]
        results = evaluation.evaluate(
            by_hand.system, problem, by_hand.entry("optimum"), options=by_hand.options
        )
        row = metrics(tmp_path / "out" / "optimum").iloc[index]
        for name in ("delivered_mbps", "shed_mbps", "max_utilization"):
            assert row[name] == pytest.approx(results.metrics[name]), (index, name)
    assert 'fail_links = ["s<->a"]' in (tmp_path / "out" / "scenario.toml").read_text().replace(
        "\n", ""
    ).replace('[    "s<->a",]', EVENT)
    again = planner("roll", scenario, "--out", tmp_path / "out", "--designs", "optimum")
    assert "has the plans of another scenario" in again.err, "the folder keeps what happened in it"
    assert again.code == 1


def test_events_in_a_scenario_and_in_python_are_the_same(scenario: Path, tmp_path: Path) -> None:
    inputs = {"9:00": {"problem.scale": 0.5}}
    in_python = rolling.roll(str(scenario), designs="ecmp", events=inputs)
    other = tmp_path / "events.toml"
    other.write_text(scenario.read_text() + '[events."9:00"]\nproblem.scale = 0.5\n')
    in_file = rolling.roll(str(other), designs="ecmp")
    drop = {"columns": "seconds"}
    pd.testing.assert_frame_equal(in_python.metrics.drop(**drop), in_file.metrics.drop(**drop))
    assert in_python.metrics["offered_mbps"].tolist() == [3, 3, 6, 4.5]
    series = load(scenario).make_series
    assert series is not None
    in_memory = rolling.roll(dict(list(series())), designs="ecmp", events=inputs)
    pd.testing.assert_frame_equal(in_memory.metrics.drop(**drop), in_file.metrics.drop(**drop))


@pytest.mark.parametrize(
    ("at", "line"),
    [
        ("9:0 problem.scale=2", "events.9:0: no such window; did you mean '9:00'?"),
        (
            "9:00 problem.sclae=2",
            "events.9:00.problem.sclae: no such parameter of a problem in a series; did",
        ),
        ("9:00 problem.scale=x", "events.9:00.problem.scale is 'x', must be"),
        ("9:00 problem.path=x", "events.9:00.problem.path: no such parameter"),
        ("9:00 designs.ecmp=2", "events.9:00.designs: an event changes [problem] only"),
        ("9:00", "--at 9:00: must be WINDOW KEY=VALUE, such as '9:00 problem.scale=2'"),
        ('9:00 problem.fail_links=["s<->q"]', "s<->q"),
    ],
)
def test_a_wrong_event_is_one_line(at: str, line: str, scenario: Path, tmp_path: Path) -> None:
    result = planner("roll", scenario, "--out", tmp_path / "out", "--at", at)
    assert result.code == 1
    assert line in result.err + result.out


def test_events_need_a_series(scenario: Path) -> None:
    with pytest.raises(
        InputError, match=r"events: problem\.source gives one problem; \[series\] windows = 24"
    ):
        rolling.roll("traffic/abilene", events={"1": {"problem.scale": 2}})


def test_one_problem_is_repeated_and_changes_by_events_only(tmp_path: Path) -> None:
    result = planner(
        *("roll", "traffic/abilene", "--out", tmp_path / "out", "--designs", "ecmp", "--windows", "3"),
        *("--at", "2 problem.scale=0.5"),
    )
    assert result.code == 0, result.err
    results = metrics(tmp_path / "out" / "ecmp")
    assert results["window"].tolist() == [1, 2, 3]
    offered = results["offered_mbps"]
    assert offered.tolist() == pytest.approx([offered[0], offered[0] / 2, offered[0] / 2])
    again = load(tmp_path / "out" / "scenario.toml")
    assert again.raw["series"] == {"windows": 3}
    assert again.make_problem().size() == load("traffic/abilene").make_problem().size()


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"series.windows": 0}, "series.windows is 0, must be a whole number from 1 to 100,000"),
        ({"series.windws": 2}, "series.windws: no such key; did you mean 'windows'?"),
        ({"series": 3}, "series must be a table: write [series]"),
    ],
)
def test_a_wrong_repetition_is_one_line(changes: dict[str, Any], line: str) -> None:
    with pytest.raises(InputError) as refused:
        load("traffic/abilene", changes=changes)
    assert refused.value.faults == (f"traffic/abilene: {line}",)


def test_a_series_is_not_repeated(scenario: Path) -> None:
    with pytest.raises(
        InputError, match=r"series\.windows: problem\.source gives consecutive problems already"
    ):
        load(scenario, changes={"series.windows": 2})


def test_a_metric_with_the_name_of_a_column_replaces_none() -> None:
    run = {"status": "optimal", "gap": 0.0, "seconds": 0.25, "violations": [], "metrics": {"seconds": 7.5}}
    row = rolling.Window(design="d", label="w", run=run, kept=False, exit_code=0).row()
    assert (row["seconds"], row["metric.seconds"]) == (0.25, 7.5)


def test_windows_that_the_data_name_by_times_have_them_in_the_table(tmp_path: Path) -> None:
    (tmp_path / "links.csv").write_text("tail,head,capacity_mbps\ns,t,4\n", encoding="utf-8")
    rows = ["time,source,target,rate_mbps"]
    rows += [f"2024-03-01 {hour}:00,s,t,{rate}" for hour, rate in ((11, 3), (10, 1), (13, 2))]
    (tmp_path / "demands.csv").write_text("\n".join(rows), encoding="utf-8")
    path = tmp_path / "s.toml"
    path.write_text(
        'system = "traffic"\n[problem]\nsource = "tables"\npath = "."\n'
        '[problem.tables.demands]\nfile = "demands.csv"\nwindow = "time"\n[designs.ecmp]\n',
        encoding="utf-8",
    )
    assert planner("roll", path, "--out", tmp_path / "out").code == 0
    table = pd.read_csv(tmp_path / "out" / "ecmp" / "windows.csv")
    assert table["window"].tolist() == [1, 2, 3]
    assert table["time"].tolist() == ["2024-03-01 10:00", "2024-03-01 11:00", "2024-03-01 13:00"]
    assert table["offered_mbps"].tolist() == [1, 3, 2]
