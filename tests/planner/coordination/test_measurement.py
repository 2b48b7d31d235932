"""The value of coordination: shares from runs, bounds from proofs, designs worse than none."""

from __future__ import annotations

import dataclasses
import itertools
import json
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
import pytest

from planner.contract.degradation import Degradation
from planner.contract.design import Mechanism
from planner.contract.parameters import parameters_of
from planner.contract.studies import Coordination
from planner.contract.system import System
from planner.coordination import measurement
from planner.errors import InputError
from planner.formatting import amount
from planner.reports import charts, coordination_charts
from planner.scenarios.catalogue import find_system
from planner.scenarios.scenario import load
from tests.commands import planner

TRAFFIC = find_system("traffic")


def runs(**rows: dict[str, Any]) -> pd.DataFrame:
    base = {
        "mechanism": "none", "exit_code": 0, "status": "heuristic", "objective_metric": None, "bound": None,
        "omniscient": True, "message": None, "seconds": 0.5, "messages": 0.0, "signalling_bytes": 0.0,
    }  # fmt: skip
    return pd.DataFrame([{"label": label, **base, **inputs} for label, inputs in rows.items()])


def traffic(**study: Any) -> System:
    way = Coordination(scenario="traffic/coordination", **{"performance": "concurrent_flow", **study})
    return dataclasses.replace(TRAFFIC, studies=dataclasses.replace(TRAFFIC.studies, coordination=way))


def measured(frame: pd.DataFrame, **study: Any) -> measurement.Measurement:
    return measurement._measure_designs(traffic(**study), frame)


def test_shares_go_from_the_first_design_to_the_tightest_bound_in_truth() -> None:
    result = measured(
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
    assert result.bound == 2.0
    assert result.frame["share"].tolist() == pytest.approx([0.0, -0.1, 0.5, 1.0, 0.9, 0.9, 0.9])
    assert any("worse (reaction) is worse than no coordination" in text for text in result.sentences())
    assert any(
        "best (none) achieves 100.0% of the possible gain in concurrent flow over alone" in text
        for text in result.sentences()
    )


def test_bounds_of_some_plans_count_only_where_all_designs_make_such_plans() -> None:
    best = {"concurrent_flow": 2.0, "objective_metric": "concurrent_flow", "bound": 2.0}
    frame = runs(
        alone={"concurrent_flow": 1.0, "bound_scope": None},
        best={**best, "bound_scope": "the given paths"},
        other={**best, "bound": 1.5, "bound_scope": "one path"},
    )
    assert measured(frame).bound is None
    assert measured(frame, bound_scope="the given paths").bound == 2.0


def test_less_is_better_where_the_metric_says_so() -> None:
    result = measured(
        runs(
            alone={"max_utilization": 1.2},
            best={"max_utilization": 0.8, "objective_metric": "max_utilization", "bound": 0.7},
        ),
        performance="max_utilization",
    )
    assert result.frame["share"].tolist() == pytest.approx([0.0, 0.8])


def test_without_a_bound_there_is_no_share_and_failures_are_listed() -> None:
    result = measured(
        runs(
            alone={"concurrent_flow": 1.0},
            broken={"concurrent_flow": None, "exit_code": 3, "status": "infeasible", "message": "too much"},
        )
    )
    assert result.bound is None
    assert result.frame["share"].tolist() == [None]
    assert result.sentences() == [
        "traffic: no bound on concurrent flow is proven, so shares of a gain are unknown",
        "traffic: broken has no result: too much",
    ]


def test_times_are_seconds_whatever_the_metric_is_in() -> None:
    result = measured(
        runs(alone={"concurrent_flow": 1.0, "mean_latency_ms": 250.0}), responsiveness="mean_latency_ms"
    )
    assert result.frame["answers_in_s"].tolist() == [0.25]


def test_a_first_design_without_a_plan_leaves_no_share() -> None:
    """Shares are relative to the first design; no other design replaces it."""
    result = measured(
        runs(
            alone={"concurrent_flow": None, "exit_code": 4, "status": "undecided", "message": "too slow"},
            next={"concurrent_flow": 1.5},
            best={"concurrent_flow": 2.0, "objective_metric": "concurrent_flow", "bound": 2.0},
        )
    )
    assert result.frame["share"].tolist() == [None, None]
    assert result.sentences() == ["traffic: alone has no result: too slow"]


def test_a_bound_counts_only_where_its_design_had_all_information() -> None:
    result = measured(
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
    assert result.bound == 2.0


def test_a_design_that_only_bounds_gives_the_bound_and_no_failure() -> None:
    proof = {"objective_metric": "concurrent_flow", "bound": 2.0, "status": "bound only", "exit_code": 0}
    result = measured(runs(alone={"concurrent_flow": 1.0}, bound={"concurrent_flow": None, **proof}))
    assert (result.bound, result.failed, list(result.frame["design"])) == (2.0, {}, ["alone"])


def test_a_plan_without_the_metric_has_no_result() -> None:
    result = measured(runs(alone={"concurrent_flow": 1.0}, odd={"concurrent_flow": None}))
    assert result.failed == {"odd": "its plan has no concurrent flow"}


# --- draws --------------------------------------------------------------------------------


DRAW_KEYS = ("problem.seed", "problem.size")


def drawn_runs(**performance: list[float | None]) -> pd.DataFrame:
    """Runs of designs in draws: on the first instance with seeds 1 and 2, on another with seed 1."""
    axes = [{"problem.seed": 1.0}, {"problem.seed": 2.0}, {"problem.seed": 1.0, "problem.size": 5.0}]
    frames = [
        runs(
            **{
                label: {
                    "concurrent_flow": values[index],
                    **({"exit_code": 4, "message": "too slow"} if values[index] is None else {}),
                    **({"objective_metric": "concurrent_flow", "bound": 2.0} if label == "best" else {}),
                }
                for label, values in performance.items()
            }
        ).assign(**draw)
        for index, draw in enumerate(axes)
    ]
    return pd.concat(frames, ignore_index=True)


def test_a_share_is_the_median_of_draws_each_on_its_own_scale() -> None:
    drawn = drawn_runs(alone=[1.0, 0.0, 1.5], local=[1.2, 1.0, 1.6], best=[2.0, 1.8, 2.0])
    result = measurement._measure_designs(traffic(), all_runs(PLAIN, drawn), DRAW_KEYS)
    rows = result.frame.set_index("design")
    assert rows["share"].tolist() == pytest.approx([0.0, 0.2, 1.0])
    assert rows.loc["local", ["share_low", "share_high"]].tolist() == pytest.approx([0.2, 0.5])
    assert rows["draws"].tolist() == [3, 3, 3]
    assert rows["performance"].tolist() == [1.0, 1.2, 2.0], "of the scenario itself"
    assert result.sentences()[0] == (
        "traffic: best (transparency) achieves 100.0% (90% to 100% in 3 draws) of the possible gain in "
        "concurrent flow over alone"
    )


def test_a_draw_without_a_plan_is_listed_and_not_counted() -> None:
    drawn = drawn_runs(alone=[1.0, 1.0, 1.0], local=[1.2, None, 1.4], best=[2.0, 2.0, 2.0])
    result = measurement._measure_designs(traffic(), all_runs(PLAIN, drawn), DRAW_KEYS)
    assert result.frame.set_index("design").loc["local", "draws"] == 2
    assert result.failed == {"local (seed 2.0)": "too slow"}


def test_curves_have_the_draws_of_each_value() -> None:
    drawn = drawn_runs(alone=[1.0, 0.0, 1.5], local=[1.2, 1.0, 1.6], best=[2.0, 2.0, 2.0])
    key = "designs.best.information.noise"
    noisy = drawn[drawn["label"] == "best"].assign(
        **{key: 0.5, "concurrent_flow": [1.5, 1.2, 1.7], "omniscient": False}
    )
    exact = degraded_runs("best", {0: [2.0], 0.5: [1.3], 1: [1.2]})
    study = traffic(degradations=(NOISE,))
    result = measurement._measure_curves(study, all_runs(PLAIN, drawn, exact, noisy), DRAW_KEYS)
    rows = result.frame.set_index(["design", "value"])
    figures = ["share", "share_low", "share_high", "draws"]
    assert rows.loc[("best", 0.5), figures].tolist() == pytest.approx([0.5, 0.4, 0.6, 3])
    assert rows.loc[("best", 0.0), figures].tolist() == pytest.approx([1.0, 1.0, 1.0, 3])
    assert rows.loc[("local", 0.5), figures].tolist() == pytest.approx([0.2, 0.2, 0.5, 3])
    assert rows.loc[("best", 0.5), "performance"] == 1.3


@pytest.mark.parametrize("name", measurement.measurable_systems())
def test_every_study_has_three_instances_that_draw_other_problems(name: str) -> None:
    system, scenario = measurement._load_scenarios([name], None)[0]
    assert system.studies.coordination is not None
    assert len(system.studies.coordination.instances) >= 2
    grids = list(measurement._plain_grids(system, scenario, 10))
    points = [point for grid in grids[1:] for point in grid.points]
    problems = {point.request.problem_key for point in points}
    assert len(points) == 30 * len(scenario.designs)
    assert len(problems) == 30


# --- curves -------------------------------------------------------------------------------

NOISE = Degradation(kind="noise", parameter="noise", values=(0, 0.5, 1), seeds=3)
AGE = Degradation(kind="age", parameter="age_s", values=(0, 60, 3600), unit="s")


def curved(frame: pd.DataFrame, *degradations: Degradation, **study: Any) -> measurement.Curves:
    return measurement._measure_curves(traffic(degradations=degradations, **study), frame)


def degraded_runs(
    label: str, values: dict[float, list[float | None]], parameter: str = "noise"
) -> pd.DataFrame:
    """Runs of a design at values of a parameter, one for each seed; None has no plan."""
    result = {
        f"{value} {seed}": {
            "label": label,
            f"designs.{label}.information.{parameter}": value,
            "concurrent_flow": performance,
            "omniscient": value == 0,
            **(
                {}
                if performance is not None
                else {"exit_code": 4, "status": "undecided", "message": "too slow"}
            ),
        }
        for value, performances in values.items()
        for seed, performance in enumerate(performances)
    }
    return runs(**result)


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


def test_a_curve_is_the_median_over_seeds_and_constant_for_a_design_without_the_parameter() -> None:
    noisy = degraded_runs("best", {0: [2.0], 0.5: [1.3, 1.9, 1.4], 1: [0.5, 0.7, 0.9]})
    result = curved(all_runs(PLAIN, noisy), NOISE)
    rows = result.frame.set_index(["design", "value"])
    assert rows.loc["best", "performance"].tolist() == [2.0, 1.4, 0.7]
    assert rows.loc["best", "share"].tolist() == pytest.approx([1.0, 0.4, -0.3])
    assert rows.loc[("best", 0.5), ["least", "most", "seeds", "has_parameter"]].tolist() == [
        1.3,
        1.9,
        3,
        True,
    ]
    assert rows.loc[("best", 0.5), ["share_low", "share_high"]].tolist() == pytest.approx([0.3, 0.9])
    assert rows.loc[("best", 0.5), "draws"] == 3
    assert rows.loc["local", "performance"].tolist() == [1.2] * 3
    assert set(rows.loc["local", "has_parameter"]) == {False}
    assert result.measured.frame["share"].tolist() == pytest.approx([0.0, 0.2, 1.0])
    assert not result.failed
    assert result.sentences() == [
        (
            "traffic: best (transparency) is better than alone and all others with less information up to "
            "noise 0.5; at noise 1, local is as good or better; at noise 1 it achieves -30% (-50% to -10% in "
            "3 draws) of the possible gain"
        ),
        "traffic: noise has no effect on local",
    ]


def test_a_design_with_less_information_may_overtake_before_the_first_does() -> None:
    aging = degraded_runs("best", {0: [2.0], 60: [1.1], 3600: [0.9]}, "age_s")
    sentences = curved(all_runs(PLAIN, aging), AGE).sentences()
    assert sentences[0] == (
        "traffic: best (transparency) is better than alone up to age 1 min; at age 1 h, alone is as good or "
        "better; better than all others with less information only with exact information; at age 1 min, "
        "local is as good or better"
    )


def test_less_is_better_in_curves_too() -> None:
    plain = PLAIN.drop(columns="concurrent_flow").assign(max_utilization=[1.0, 0.9, 0.5], bound=None)
    noisy = degraded_runs("best", {0: [0.5], 0.5: [0.8], 1: [0.85]}).rename(
        columns={"concurrent_flow": "max_utilization"}
    )
    result = curved(all_runs(plain, noisy), NOISE, performance="max_utilization")
    assert set(result.frame["share"]) == {None}, "without a bound"
    assert result.sentences()[0].endswith("all others with less information at every noise tried, up to 1")


def test_failed_runs_are_listed_and_not_counted() -> None:
    noisy = degraded_runs("best", {0: [2.0], 0.5: [1.8, None, 1.6], 1: [None, None, None]})
    result = curved(all_runs(PLAIN, noisy), NOISE)
    rows = result.frame[result.frame["design"] == "best"]
    assert rows["seeds"].tolist() == [1, 2, 0]
    assert rows["performance"].tolist() == [2.0, pytest.approx(1.7), None]
    assert rows["share"].iloc[2] is None
    assert result.failed == {"best at noise 0.5": "too slow", "best at noise 1": "too slow"}
    assert result.sentences()[-1] == "traffic: best at noise 1 has no result: too slow"
    assert "with less information at every noise tried, up to 0.5" in result.sentences()[0]


def test_one_kind_of_degradation_is_applied_at_a_time() -> None:
    """No product of degradations: a design has a run for each value of each, and its seeds."""
    system, scenario = measurement._load_scenarios(["traffic"], None)[0]
    way = dataclasses.replace(system.studies.coordination, degradations=(NOISE, AGE))
    system = dataclasses.replace(system, studies=dataclasses.replace(system.studies, coordination=way))
    points = [point for grid in measurement._grids(system, scenario) for point in grid.points]
    digests = {point.digest(None) for point in points}
    labels = [entry.label for entry in scenario.designs]
    noisy, aging = 3, 2  # localflow has a parameter for noise, but none for age
    assert labels == ["ecmp", "localflow", "weights", "optimum"]
    assert len(digests) == len(labels) + noisy * 2 * 3 + aging * 2
    assert all(len(point.values) <= 2 for point in points)


def test_curves_draw_in_a_panel_for_each_system() -> None:
    noisy = degraded_runs("best", {0: [2.0], 0.5: [1.3, 1.9, 1.4], 1: [-3.5, -3.7, -3.9]})
    result = curved(all_runs(PLAIN, noisy), NOISE)
    figure = charts.curves(result.frame, "noise")
    assert [len(trace.x) for trace in figure.data] == [3, 3, 3]
    assert {note.text for note in figure.layout.annotations} >= {"alone", "local", "best −470%"}
    best = figure.data[2]
    assert min(best.y) == 100 * charts.MIN_SHARE, "values far below are drawn at the edge"
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
    assert lowest == 100 * charts.MIN_SHARE


def test_the_number_of_a_design_stands_behind_the_range_of_its_draws() -> None:
    frame = measured(PLAIN).frame
    share = frame["share"].astype(float)
    figure = charts.coordination(frame.assign(share_low=share - 0.2, share_high=share + 0.1))
    (numbers,) = [trace for trace in figure.data if trace.text is not None]
    ends = 100 * np.maximum(share + 0.1, 0.0)
    assert (np.asarray(numbers.x, float) >= ends[share.notna()].to_numpy() - 1e-9).all()


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (0.0, "s", "0 s"),
        (60, "s", "1 min"),
        (5400, "s", "1.5 h"),
        (500, "us", "500 us"),
        (50_000, "us", "50 ms"),
        (2e6, "bytes", "2 MB"),
        (1e6, "Mbit/s", "1 Tbit/s"),
        (1900.0, "Mbit/s", "1.9 Gbit/s"),
        (3.0, "clients", "3 clients"),
        (0.25, "", "0.25"),
    ],
)
def test_values_are_written_in_convenient_units(value: float, unit: str, text: str) -> None:
    assert amount(value, unit) == text


def test_labels_of_lines_do_not_overlap() -> None:
    positions = coordination_charts._spread_labels([0.0, 0.1, 0.2, 9.8, 9.9, 10.0], 1.0, 0.0, 10.0)
    assert all(high - low >= 1.0 - 1e-9 for low, high in itertools.pairwise(positions))
    assert min(positions) >= 0.0
    assert max(positions) <= 10.0


def test_released_measurements_match_the_declarations_of_the_systems() -> None:
    designs, curves = measurement.load_release()
    assert [*measurement.COLUMNS, "version"] == list(designs)
    assert [*measurement.CURVE_COLUMNS, "version"] == list(curves)
    for name, rows in designs.groupby("system"):
        study = find_system(str(name)).studies.coordination
        assert study is not None
        assert list(rows["design"]) == [entry.label for entry in load(study.scenario).designs]
        assert rows["share"].iloc[0] in (0.0, None)
        assert (rows["share"].dropna().astype(float) <= 1 + 1e-6).all()
        assert (rows["share_high"].dropna().astype(float) <= 1 + 1e-6).all()
        of_system = curves[curves["system"] == name]
        for degradation in study.degradations if len(of_system) else ():
            its = of_system[of_system["parameter"] == degradation.parameter]
            assert tuple(dict.fromkeys(its["value"])) == degradation.values
            assert set(its["kind"]) == {degradation.kind}


@pytest.mark.parametrize("name", measurement.measurable_systems())
def test_every_system_declares_degradations_of_its_information(name: str) -> None:
    study = find_system(name).studies.coordination
    assert study is not None
    scenario = load(study.scenario)
    information = {entry.label: parameters_of(entry.design.observe) for entry in scenario.designs}
    first, *others = information
    kinds = [degradation.kind for degradation in study.degradations]
    assert kinds == [kind for kind in ("age", "noise", "granularity") if kind in kinds]
    assert len(kinds) >= 2
    for degradation in study.degradations:
        assert degradation.values[0] == 0
        assert list(degradation.values) == sorted(set(degradation.values))
        assert degradation.about
        users = [label for label in others if degradation.parameter in information[label]]
        assert users, f"no design has the parameter {degradation.parameter}"
        for label in users:
            assert degradation.seeds == 1 or "seed" in information[label]
        if scenario.designs[0].design.mechanism is Mechanism.NONE:
            assert degradation.parameter not in information[first]


def test_an_interrupted_measurement_says_how_to_continue(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopped = mock.Mock(interrupted=True)
    monkeypatch.setattr(measurement, "run_grid", mock.Mock(return_value=stopped))
    with pytest.raises(measurement.Stopped, match="the same command goes on"):
        measurement.measure(["traffic"], out=tmp_path / "store")
    with pytest.raises(measurement.Stopped, match=r"interrupted before the end$"):
        measurement.curves(["traffic"])


def test_the_command_prints_curves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    noisy = degraded_runs("best", {0: [2.0], 0.5: [1.3, None, 1.4], 1: [0.5, 0.7, 0.9]})
    result = curved(all_runs(PLAIN, noisy), NOISE)
    monkeypatch.setattr(measurement, "curves", mock.Mock(return_value=[result]))
    evaluation = planner("recipes", "--curves", "--html", tmp_path / "r.html")
    assert evaluation.code == 0, evaluation.err
    assert "share of gain by noise" in evaluation.out
    assert "local is as good or better" in evaluation.out
    assert "best at noise 0.5 has no result: too slow" in evaluation.out
    page = (tmp_path / "r.html").read_text()
    assert "Performance with worse information: noise" in page
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
    inputs = {"out": store, "changes": {"traffic": SMALL}, "workers": 1}
    (result,) = measurement.curves(["traffic"], **inputs)
    seen: list[tuple[int, int, int]] = []
    (again,) = measurement.measure(["traffic"], **inputs, advance=lambda *now: seen.append(now))
    assert seen == [(4, 0, 4)], "all runs were stored"
    pd.testing.assert_frame_equal(again.frame, result.measured.frame)
    assert not result.failed
    assert (result.frame["share"].astype(float) <= 1 + 1e-6).all()
    for kind in ("age", "noise", "granularity"):
        rows = result.frame[result.frame["kind"] == kind]
        best = rows.loc[rows["design"] == "optimum", "share"].astype(float)
        assert best.iloc[0] == pytest.approx(1.0)
        assert best.iloc[-1] < best.iloc[0] - 0.05
        assert set(rows.loc[rows["design"] == "ecmp", "share"]) == {0.0}


@pytest.mark.slow
@pytest.mark.parametrize("name", measurement.measurable_systems())
def test_every_system_has_the_metrics_of_its_coordination_study(name: str) -> None:
    system = find_system(name)
    assert system.studies.coordination is not None
    names = {metric.name for metric in system.metrics}
    study = system.studies.coordination
    assert {study.performance, "messages", "signalling_bytes"} <= names
    assert {study.cost, study.responsiveness} - {None} <= names


@pytest.mark.slow
def test_the_command_measures_and_stores_its_runs(tmp_path: Path) -> None:
    inputs = ("recipes", "--measure", "--system", "traffic", "--workers", "1", "--out", tmp_path / "store")
    result = planner(*inputs, "--json")
    assert result.code == 0, result.err
    rows = {row["design"]: row for row in json.loads(result.out)}
    assert rows["ecmp"]["share"] == 0.0
    assert rows["optimum"]["share"] == pytest.approx(1.0, abs=1e-6)
    assert rows["localflow"]["messages"] == 0
    assert rows["optimum"]["bytes"] > 0
    again = planner(*inputs, "--html", tmp_path / "r.html")
    assert again.code == 0, again.err
    assert "worse than no coordination" in again.out, "LocalFlow is made for symmetric networks"
    assert (tmp_path / "r.html").exists()


def test_an_unknown_system_is_an_input_error() -> None:
    with pytest.raises(InputError, match="did you mean 'traffic'"):
        measurement.measure(["trafic"])
