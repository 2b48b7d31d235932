"""What coordination is worth: shares from runs, bounds from proofs, and where a mechanism loses."""

from __future__ import annotations

import dataclasses
import itertools
import json
from pathlib import Path
from typing import Any
from unittest import mock

import pandas as pd
import pytest

from planner import charts, coordination, coordination_charts
from planner.catalogue import find_system
from planner.errors import InputError
from planner.parameters import parameters_of
from planner.report import amount
from planner.scenario import load
from planner.system import Blur, Coordination, Mechanism, System
from tests.commands import planner

TRAFFIC = find_system("traffic")


def runs(**rows: dict[str, Any]) -> pd.DataFrame:
    base = {
        "mechanism": "none", "exit_code": 0, "status": "feasible", "objective_metric": None, "bound": None,
        "omniscient": True, "message": None, "seconds": 0.5, "messages": 0.0, "exchanged_bytes": 0.0,
    }  # fmt: skip
    return pd.DataFrame([{"label": label, **base, **given} for label, given in rows.items()])


def traffic(**asked: Any) -> System:
    way = Coordination(scenario="traffic/coordination", **{"performance": "concurrent_flow", **asked})
    return dataclasses.replace(TRAFFIC, coordination=way, metrics=TRAFFIC.metrics[:-2])


def measured(frame: pd.DataFrame, **asked: Any) -> coordination.Measured:
    return coordination._ordered(traffic(**asked), frame)


def test_shares_go_from_the_first_design_to_the_tightest_bound_in_truth() -> None:
    found = measured(
        runs(
            alone={"concurrent_flow": 1.0},
            worse={"concurrent_flow": 0.9, "mechanism": "reaction"},
            half={"concurrent_flow": 1.5},
            best={"concurrent_flow": 2.0, "objective_metric": "concurrent_flow", "bound": 2.0},
            loose={"concurrent_flow": 1.9, "objective_metric": "concurrent_flow", "bound": 2.5},
            blind={
                "concurrent_flow": 1.9,
                "objective_metric": "concurrent_flow",
                "bound": 1.9,
                "omniscient": False,
            },
            other={"concurrent_flow": 1.9, "objective_metric": "cost", "bound": 0.1},
        )
    )
    assert found.bound == 2.0
    assert found.frame["share"].tolist() == pytest.approx([0.0, -0.1, 0.5, 1.0, 0.9, 0.9, 0.9])
    assert any("worse (reaction) is worse than no coordination" in text for text in found.sentences())
    assert any("best (none) goes 100.0%" in text for text in found.sentences())


def test_less_is_better_where_the_metric_says_so() -> None:
    found = measured(
        runs(
            alone={"max_utilization": 1.2},
            best={"max_utilization": 0.8, "objective_metric": "max_utilization", "bound": 0.7},
        ),
        performance="max_utilization",
    )
    assert found.frame["share"].tolist() == pytest.approx([0.0, 0.8])


def test_without_a_bound_there_is_no_share_and_what_failed_is_told() -> None:
    found = measured(
        runs(
            alone={"concurrent_flow": 1.0},
            broken={"concurrent_flow": None, "exit_code": 3, "status": "infeasible", "message": "too much"},
        )
    )
    assert found.bound is None
    assert found.frame["share"].tolist() == [None]
    assert found.sentences() == ["traffic: broken is not known: too much"]


def test_times_are_seconds_whatever_the_metric_is_in() -> None:
    found = measured(
        runs(alone={"concurrent_flow": 1.0, "mean_latency_ms": 250.0}), responsiveness="mean_latency_ms"
    )
    assert found.frame["answers_in_s"].tolist() == [0.25]


def test_a_first_design_without_a_plan_leaves_no_share() -> None:
    """Shares are of the way from the first design, and nobody takes its place."""
    found = measured(
        runs(
            alone={"concurrent_flow": None, "exit_code": 4, "status": "undecided", "message": "too slow"},
            next={"concurrent_flow": 1.5},
            best={"concurrent_flow": 2.0, "objective_metric": "concurrent_flow", "bound": 2.0},
        )
    )
    assert found.frame["share"].tolist() == [None, None]
    assert found.sentences() == ["traffic: alone is not known: too slow"]


def test_a_bound_counts_only_where_its_design_knew_everything_as_a_store_tells_it() -> None:
    found = measured(
        runs(
            alone={"concurrent_flow": 1.0},
            blind={
                "concurrent_flow": 1.4,
                "objective_metric": "concurrent_flow",
                "bound": 1.5,
                "omniscient": "false",
            },
            best={
                "concurrent_flow": 2.0,
                "objective_metric": "concurrent_flow",
                "bound": 2.0,
                "omniscient": "true",
            },
        )
    )
    assert found.bound == 2.0


def test_a_plan_without_the_metric_is_told() -> None:
    found = measured(runs(alone={"concurrent_flow": 1.0}, odd={"concurrent_flow": None}))
    assert found.failed == {"odd": "its plan has no concurrent_flow"}


# --- curves -------------------------------------------------------------------------------

NOISE = Blur(kind="noise", parameter="noise", values=(0, 0.5, 1), seeds=3)
AGE = Blur(kind="age", parameter="age_s", values=(0, 60, 3600), unit="s")


def curved(frame: pd.DataFrame, *blurs: Blur, **asked: Any) -> coordination.Curves:
    return coordination._curved(traffic(blurs=blurs, **asked), frame)


def told(label: str, values: dict[float, list[float | None]], parameter: str = "noise") -> pd.DataFrame:
    """Runs of a design at values of a parameter, one for each seed; None has no plan."""
    found = {
        f"{value} {seed}": {
            "label": label,
            f"designs.{label}.sees.{parameter}": value,
            "concurrent_flow": worth,
            "omniscient": value == 0,
            **({} if worth is not None else {"exit_code": 4, "status": "undecided", "message": "too slow"}),
        }
        for value, its in values.items()
        for seed, worth in enumerate(its)
    }
    return runs(**found)


def all_runs(*frames: pd.DataFrame) -> pd.DataFrame:
    return pd.concat(frames, ignore_index=True)


PLAIN = runs(
    alone={"concurrent_flow": 1.0},
    local={"concurrent_flow": 1.2, "mechanism": "reaction"},
    best={
        "concurrent_flow": 2.0,
        "mechanism": "transparency",
        "objective_metric": "concurrent_flow",
        "bound": 2.0,
    },
)


def test_a_curve_is_the_median_over_seeds_and_a_flat_line_where_nothing_is_told() -> None:
    noisy = told("best", {0: [2.0], 0.5: [1.3, 1.9, 1.4], 1: [0.5, 0.7, 0.9]})
    found = curved(all_runs(PLAIN, noisy), NOISE)
    rows = found.frame.set_index(["design", "value"])
    assert rows.loc["best", "performance"].tolist() == [2.0, 1.4, 0.7]
    assert rows.loc["best", "share"].tolist() == pytest.approx([1.0, 0.4, -0.3])
    assert rows.loc[("best", 0.5), ["least", "most", "seeds", "told"]].tolist() == [1.3, 1.9, 3, True]
    assert rows.loc["local", "performance"].tolist() == [1.2] * 3
    assert set(rows.loc["local", "told"]) == {False}
    assert found.measured.frame["share"].tolist() == pytest.approx([0.0, 0.2, 1.0])
    assert not found.failed
    assert found.sentences() == [
        (
            "traffic: best (transparency) is better than alone and all others that know less to noise 0.5, "
            "but at 1 local is no worse"
        ),
        "traffic: noise changes nothing for local",
    ]


def test_who_knows_less_may_overtake_before_the_first_does() -> None:
    aging = told("best", {0: [2.0], 60: [1.1], 3600: [0.9]}, "age_s")
    sentences = curved(all_runs(PLAIN, aging), AGE).sentences()
    assert sentences[0] == (
        "traffic: best (transparency) is better than alone to age 1 min, but at 1 h alone is no worse; "
        "better than all others that know less when told the truth, but at age 1 min local is no worse"
    )


def test_less_is_better_in_curves_too() -> None:
    plain = PLAIN.drop(columns="concurrent_flow").assign(max_utilization=[1.0, 0.9, 0.5], bound=None)
    noisy = told("best", {0: [0.5], 0.5: [0.8], 1: [0.85]}).rename(
        columns={"concurrent_flow": "max_utilization"}
    )
    found = curved(all_runs(plain, noisy), NOISE, performance="max_utilization")
    assert set(found.frame["share"]) == {None}, "without a bound"
    assert found.sentences()[0].endswith("all others that know less at every noise tried, to 1")


def test_runs_that_failed_are_told_and_count_for_nothing() -> None:
    noisy = told("best", {0: [2.0], 0.5: [1.8, None, 1.6], 1: [None, None, None]})
    found = curved(all_runs(PLAIN, noisy), NOISE)
    rows = found.frame[found.frame["design"] == "best"]
    assert rows["seeds"].tolist() == [1, 2, 0]
    assert rows["performance"].tolist() == [2.0, pytest.approx(1.7), None]
    assert rows["share"].iloc[2] is None
    assert found.failed == {"best at noise 0.5": "too slow", "best at noise 1": "too slow"}
    assert found.sentences()[-1] == "traffic: best at noise 1 is not known: too slow"
    assert "know less at every noise tried, to 0.5" in found.sentences()[0]


def test_one_thing_gets_worse_at_a_time() -> None:
    """No product of blurs: a design has a run for each value of each, and its seeds."""
    system, scenario = coordination._asked(["traffic"], None)[0]
    system = dataclasses.replace(
        system, coordination=dataclasses.replace(system.coordination, blurs=(NOISE, AGE))
    )
    points = [point for grid in coordination._grids(system, scenario) for point in grid.points]
    digests = {point.digest(None) for point in points}
    labels = [entry.label for entry in scenario.designs]
    noisy, aging = 3, 2  # localflow measures with noise, but is told nothing that could be old
    assert labels == ["ecmp", "localflow", "weights", "optimum"]
    assert len(digests) == len(labels) + noisy * 2 * 3 + aging * 2
    assert all(len(point.values) <= 2 for point in points)


def test_curves_draw_in_a_panel_for_each_system() -> None:
    noisy = told("best", {0: [2.0], 0.5: [1.3, 1.9, 1.4], 1: [-3.5, -3.7, -3.9]})
    found = curved(all_runs(PLAIN, noisy), NOISE)
    figure = charts.curves(found.frame, "noise")
    assert [len(trace.x) for trace in figure.data] == [3, 3, 3]
    assert {note.text for note in figure.layout.annotations} >= {"alone", "local", "best −470%"}
    best = figure.data[2]
    assert min(best.y) == 100 * charts.LEAST_SHARE, "what is far below stands at the edge"
    assert best.marker.symbol[2] == "triangle-down"


def test_the_chart_across_systems_has_a_row_for_each_design() -> None:
    frame = measured(PLAIN).frame
    frame = pd.concat([frame, frame.assign(system="other", share=[0.0, -7.5, 1.0])])
    figure = charts.coordination(frame)
    assert list(figure.layout.yaxis.ticktext) == ["alone", "local", "best"] * 2
    assert len(set(figure.layout.yaxis.tickvals)) == 6
    texts = [text for trace in figure.data if trace.text is not None for text in trace.text]
    assert "−750%" in texts
    lowest = min(x for trace in figure.data for x in trace.x if x is not None)
    assert lowest == 100 * charts.LEAST_SHARE


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (0.0, "s", "0 s"),
        (60, "s", "1 min"),
        (5400, "s", "1.5 h"),
        (500, "us", "500 us"),
        (50_000, "us", "50 ms"),
        (2e6, "bytes", "2 MB"),
        (1e6, "Mbit/s", "1,000,000 Mbit/s"),
        (0.25, "", "0.25"),
    ],
)
def test_values_are_said_as_people_would(value: float, unit: str, text: str) -> None:
    assert amount(value, unit) == text


def test_names_of_lines_keep_apart() -> None:
    places = coordination_charts._apart([0.0, 0.1, 0.2, 9.8, 9.9, 10.0], 1.0, 0.0, 10.0)
    assert all(high - low >= 1.0 - 1e-9 for low, high in itertools.pairwise(places))
    assert min(places) >= 0.0
    assert max(places) <= 10.0


def test_what_ships_is_what_the_systems_name() -> None:
    designs, curves = coordination.shipped()
    assert [*coordination.COLUMNS, "version"] == list(designs)
    assert [*coordination.CURVE_COLUMNS, "version"] == list(curves)
    for name, rows in designs.groupby("system"):
        asked = find_system(str(name)).coordination
        assert asked is not None
        assert list(rows["design"]) == [entry.label for entry in load(asked.scenario).designs]
        assert rows["share"].iloc[0] in (0.0, None)
        assert (rows["share"].dropna().astype(float) <= 1 + 1e-6).all()
        for blur in asked.blurs:
            its = curves[(curves["system"] == name) & (curves["parameter"] == blur.parameter)]
            assert tuple(dict.fromkeys(its["value"])) == blur.values
            assert set(its["kind"]) == {blur.kind}


@pytest.mark.parametrize("name", coordination.measurable())
def test_every_system_says_how_good_what_is_told_must_be(name: str) -> None:
    asked = find_system(name).coordination
    assert asked is not None
    scenario = load(asked.scenario)
    sees = {entry.label: parameters_of(entry.design.sees) for entry in scenario.designs}
    first, *others = sees
    assert [blur.kind for blur in asked.blurs] == ["age", "noise", "grain"]
    for blur in asked.blurs:
        assert blur.values[0] == 0
        assert list(blur.values) == sorted(set(blur.values))
        assert blur.about
        users = [label for label in others if blur.parameter in sees[label]]
        assert users, f"nobody is told what gets worse with {blur.parameter}"
        for label in users:
            assert blur.seeds == 1 or "seed" in sees[label]
        if scenario.designs[0].design.mechanism is Mechanism.NONE:
            assert blur.parameter not in sees[first]


def test_an_interrupted_measure_says_how_it_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stopped = mock.Mock(interrupted=True)
    monkeypatch.setattr(coordination, "run_grid", mock.Mock(return_value=stopped))
    with pytest.raises(coordination.Stopped, match="the same command goes on"):
        coordination.measure(["traffic"], out=tmp_path / "store")
    with pytest.raises(coordination.Stopped, match=r"stopped before the end$"):
        coordination.curves(["traffic"])


def test_the_command_tells_curves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    noisy = told("best", {0: [2.0], 0.5: [1.3, None, 1.4], 1: [0.5, 0.7, 0.9]})
    found = curved(all_runs(PLAIN, noisy), NOISE)
    monkeypatch.setattr(coordination, "curves", mock.Mock(return_value=[found]))
    done = planner("recipes", "--curves", "--html", tmp_path / "r.html")
    assert done.code == 0, done.err
    assert "share of the way by noise" in done.out
    assert "but at 1 local is no worse" in done.out
    assert "best at noise 0.5 is not known: too slow" in done.out
    page = (tmp_path / "r.html").read_text()
    assert "How good must shared information be: noise" in page
    assert "too slow" in page
    plain = json.loads(planner("recipes", "--measure", "--curves", "--json").out)
    assert list(plain) == ["designs", "curves", "sentences"]
    assert [row["seeds"] for row in plain["curves"] if row["design"] == "best"] == [1, 2, 3]


SMALL = {
    "problem.name": "sndlib/abilene",
    "designs.weights.evaluations": 100,
    "designs.localflow.delta": 0.1,
}


@pytest.mark.slow
def test_curves_of_a_small_problem_share_their_runs_with_the_measure(tmp_path: Path) -> None:
    store = tmp_path / "store"
    given = {"out": store, "changes": {"traffic": SMALL}, "workers": 1}
    (found,) = coordination.curves(["traffic"], **given)
    seen: list[tuple[int, int, int]] = []
    (again,) = coordination.measure(["traffic"], **given, advance=lambda *now: seen.append(now))
    assert seen == [(4, 0, 4)], "everything was there"
    pd.testing.assert_frame_equal(again.frame, found.measured.frame)
    assert not found.failed
    assert (found.frame["share"].astype(float) <= 1 + 1e-6).all()
    for kind in ("age", "noise", "grain"):
        rows = found.frame[found.frame["kind"] == kind]
        best = rows.loc[rows["design"] == "optimum", "share"].astype(float)
        assert best.iloc[0] == pytest.approx(1.0)
        assert best.iloc[-1] < best.iloc[0] - 0.05
        assert set(rows.loc[rows["design"] == "ecmp", "share"]) == {0.0}


@pytest.mark.slow
@pytest.mark.parametrize("name", coordination.measurable())
def test_every_system_says_what_its_designs_exchange(name: str) -> None:
    system = find_system(name)
    assert system.coordination is not None
    names = {metric.name for metric in system.metrics}
    asked = system.coordination
    assert {asked.performance, "messages", "exchanged_bytes"} <= names
    assert {asked.cost, asked.responsiveness} - {None} <= names


@pytest.mark.slow
def test_the_command_measures_and_keeps(tmp_path: Path) -> None:
    given = ("recipes", "--measure", "--system", "traffic", "--workers", "1", "--out", tmp_path / "store")
    done = planner(*given, "--json")
    assert done.code == 0, done.err
    rows = {row["design"]: row for row in json.loads(done.out)}
    assert rows["ecmp"]["share"] == 0.0
    assert rows["optimum"]["share"] == pytest.approx(1.0, abs=1e-6)
    assert rows["localflow"]["messages"] == 0
    assert rows["optimum"]["bytes"] > 0
    again = planner(*given, "--html", tmp_path / "r.html")
    assert again.code == 0, again.err
    assert "worse than no coordination" in again.out, "LocalFlow is made for symmetric networks"
    assert (tmp_path / "r.html").exists()


def test_a_system_that_is_none_is_one_line() -> None:
    with pytest.raises(InputError, match="did you mean 'traffic'"):
        coordination.measure(["trafic"])
