"""Explanations against cold solves of every change, and the command that prints them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from planner.cli import application
from planner.contract.studies import Decided, Explanation
from planner.contract.system import Studies
from planner.errors import InputError
from planner.options import Options
from planner.runs import evaluation
from planner.runs import what_if as command
from planner.scenarios.scenario import Entry, load
from planner_models.traffic import SYSTEM
from planner_models.traffic.designs import ecmp, what_if
from planner_models.traffic.designs.optimum import optimum
from planner_models.traffic.plan import reoptimization
from planner_models.traffic.problem import generators
from planner_models.traffic.problem.problem import Traffic
from tests.models.traffic.plan.test_deployment import network, networks, rows_of


def explain(problem: Traffic, design: str = "optimum", /, **given_: Any) -> Explanation:
    parameters = given_.pop("parameters", {})
    entry = Entry(label=design, design=SYSTEM.design(design), parameters=parameters)
    made = evaluation.evaluate(SYSTEM, problem, entry)
    assert made.decision is not None
    decided = Decided(
        design=entry.design,
        parameters=parameters,
        decision=made.decision,
        metrics=made.metrics,
        baseline=ecmp.route(problem).plan,
        baseline_name="equal-cost multipath",
    )
    return what_if.explain(problem, decided, **given_)


def frames(explanation: Explanation) -> list[pd.DataFrame]:
    """Return the tables: changes with the columns line, objective and loss, gains of shares as shares."""
    limits, upgrades, losses, metrics, loads, _ = (
        section.frame.assign(
            **{
                name: section.frame[name].astype(float) / 100
                for name, unit in section.units.items()
                if unit == "points"
            }
        )
        for section in explanation.sections
    )
    names = {"change": "line", **dict.fromkeys((m.name for m in SYSTEM.plan.metrics), "objective")}
    upgrades, losses = upgrades.rename(columns=names), losses.rename(columns=names)
    if len(losses):
        losses["loss"] = -losses["gain"].astype(float)
    return [limits, upgrades, losses, metrics, loads]


def cold(problem: Traffic, objective: str, capacity: np.ndarray) -> float | None:
    """Return the objective on a changed network, from a cold start, by another backend."""
    links = problem.links.assign(capacity_mbps=capacity)[capacity > 0].reset_index(drop=True)
    try:
        other = replace(problem, links=links)
    except InputError:
        return 0.0 if objective == "concurrent" else None
    if other.unreachable.any():  # strict: a change that leaves a demand no path serves not all
        return 0.0 if objective == "concurrent" else None
    options = Options(backend="ortools:glop", service="all" if objective == "cost" else "best")
    return optimum.route(other, objective=cast(Any, objective), options=options).proof.objective


def line_of(name: str) -> tuple[frozenset[str], str]:
    ends, _, number = name.partition("#")
    return frozenset(ends.replace("<->", "->").split("->")), number or "1"  # the first of parallel links


def change_line(problem: Traffic, line: str, factor: float) -> np.ndarray:
    is_line = [line_of(label) == line_of(line) for label in problem.link_labels]
    assert any(is_line)
    return np.where(is_line, problem.capacity_mbps * factor, problem.capacity_mbps)


OBJECTIVES = ["concurrent", "utilization", "total", "cost"]


@pytest.mark.slow
@settings(max_examples=8, deadline=None)
@given(networks(), st.sampled_from(OBJECTIVES), st.sampled_from([0.3, 1.0]))
def test_every_change_agrees_with_a_cold_solve(problem: Traffic, objective: str, upgrade: float) -> None:
    problem = replace(problem, links=problem.links.assign(cost=1.0 + np.arange(len(problem.links)) % 3))
    if objective == "cost":  # so that everything fits
        factor = optimum.route(problem, objective="concurrent").proof.objective
        assert factor is not None
        problem = problem.scale_demands(0.9 * factor)
    explanation = explain(problem, parameters={"objective": objective}, candidates=10_000, upgrade=upgrade)
    limits, upgrades, losses, _, _ = frames(explanation)
    if objective == "total" and optimum.route(problem).proof.objective >= 1:
        objective = "concurrent"  # all is delivered: changes are compared by how much more would be
    value = optimum.route(problem, objective=cast(Any, objective)).proof.objective
    assert value is not None
    sign = 1 if objective in ("concurrent", "total") else -1
    scale = max(abs(value), 1e-3)

    lines = sorted(set(problem.link_labels))
    true_gain = {
        line_of(line): sign
        * (cast(float, cold(problem, objective, change_line(problem, line, 1 + upgrade))) - value)
        for line in lines
    }
    for row in rows_of(upgrades):
        assert row.gain == pytest.approx(true_gain[line_of(row.line)], abs=1e-5 * scale)
        assert row.gain <= row.gain_at_most + 1e-6 * scale
    best = max(true_gain.values())
    assert "proven" in explanation.sentences[1]
    assert "not proven" not in explanation.sentences[1]
    if best > 1e-5 * scale:
        assert true_gain[line_of(upgrades["line"].iloc[0])] == pytest.approx(best, abs=1e-5 * scale)
    else:
        assert "no single line gains anything" in explanation.sentences[1]

    for row in rows_of(losses):
        after = cold(problem, objective, change_line(problem, row.line, 0.0))
        if after is None:
            assert pd.isna(row.objective)
        else:
            assert row.objective == pytest.approx(after, abs=1e-5 * scale)
            assert row.loss == pytest.approx(sign * (value - after), abs=1e-5 * scale)
    tried = {line_of(line) for line in losses["line"]}
    for line in lines:  # lines without load are left out, since their loss costs nothing
        if line_of(line) not in tried:
            after = cold(problem, objective, change_line(problem, line, 0.0))
            assert after == pytest.approx(value, abs=1e-5 * scale)

    # a price is the slope of the objective in the capacity of that one link
    for row in rows_of(limits.head(3)):
        little = np.where(np.array(problem.link_labels) == row.link, 1e-4, 0.0)
        more = cold(problem, objective, problem.capacity_mbps + little)
        less = cold(problem, objective, problem.capacity_mbps - little)
        assert more is not None
        slopes = [(more - value) / 1e-4, (value - less) / 1e-4 if less is not None else np.inf * sign]
        assert min(slopes) - 1e-3 * scale <= row.shadow_price <= max(slopes) + 1e-3 * scale


def bottleneck() -> Traffic:
    """Return a network where a and b send 2 to z: a over a line of 1, b over its own line of 8."""
    links = [
        ("a", "z", 1.0),
        ("z", "a", 1.0),
        ("b", "z", 8.0),
        ("z", "b", 8.0),
        ("a", "b", 1.0),
        ("b", "a", 1.0),
    ]
    return network(links, [("a", "z", 2.0), ("b", "z", 2.0)])


def test_a_bottleneck_by_hand() -> None:
    """Traffic of a, 2 x lambda, leaves over a->z and a->b, of 1 each: lambda is 1, both prices are 1/2."""
    limits, upgrades, losses, metrics, loads = frames(explain(bottleneck()))
    assert set(limits["link"]) == {"a->z", "a->b"}
    assert limits["shadow_price"].tolist() == pytest.approx([0.5, 0.5])
    assert limits["elasticity"].tolist() == pytest.approx([0.5, 0.5])
    # the first gains 1/2, and no other line can gain more: one solve proves it best
    assert upgrades["objective"].tolist() == pytest.approx([1.5])
    assert upgrades["gain_at_most"].tolist() == pytest.approx([0.5])
    assert losses.set_index("line")["objective"].to_dict() == pytest.approx(
        {"a<->b": 0.5, "a<->z": 0.5, "b<->z": 0.25}
    )
    assert metrics.set_index("metric").loc["Concurrent flow", "before"] == pytest.approx(0.5)
    assert metrics.set_index("metric").loc["Concurrent flow", "now"] == pytest.approx(1.0)
    change = loads.set_index("link")["change_mbps"].to_dict()
    assert change == pytest.approx({"a->z": -1.0, "a->b": 1.0, "b->z": 1.0})


def test_sentences_about_one_way_lines() -> None:
    explanation = explain(bottleneck(), both_ways=False, upgrade=0.5, candidates=2)
    assert "\n".join(explanation.sentences) == (
        "Concurrent flow is 1 x demand: 2 links of 6 with a shadow price, a->z, a->b\n"
        "50% more capacity gains most on a->z: concurrent flow 1 -> 1.25 x demand, 25.0% better "
        "(proven best of all 6 lines)\n"
        "the loss of a->z hurts most: concurrent flow 1 -> 0.5 x demand (worst of 2 of 3 lines tried, not "
        "proven)\n"
        "against equal-cost multipath, 40.0% of the load is on links that its traffic did not use before, "
        "3 of 6 links change in load\n"
        "2 links are at 80% or more, a->z the most"
    )


def test_links_reach_a_threshold_as_demands_grow() -> None:
    """At 1.25 times the load the link of 100 has 80%; 10% a year make that in ln 1.25 / ln 1.1 years."""
    problem = network([("a", "b", 100.0), ("b", "c", 40.0)], [("a", "b", 64.0), ("b", "c", 20.0)])
    explanation = explain(problem, "ecmp", threshold=0.8, growth_per_year=0.1)
    growth = explanation.sections[-1].frame
    assert growth["link"].tolist() == ["a->b", "b->c"]
    assert growth["growth"].tolist() == pytest.approx([1.25, 1.6])
    for row in growth.to_dict("records"):
        assert row["utilization"] * 1.1 ** row["years"] == pytest.approx(0.8)
    assert explanation.sentences[-1] == (
        "a->b is the first to reach 80%, with 1.25 times the traffic, in 2.341 years"
    )
    assert "years" not in explain(problem, "ecmp").sections[-1].frame


def test_a_lost_bridge_disconnects_demands() -> None:
    links = [("a", "b", 5.0), ("b", "a", 5.0), ("b", "c", 5.0), ("c", "b", 5.0), ("a", "c", 1.0)]
    links += [("c", "d", 9.0), ("d", "c", 9.0)]
    demands = [("a", "b", 1.0), ("a", "d", 1.0), ("d", "b", 1.0)]
    # without a link back from c to a, the line b<->c alone leads from d to b
    for extra, others in (([("c", "a", 1.0)], {}), ([], {"b<->c": 1})):
        problem = network(links + extra, demands)
        _, _, losses, _, _ = frames(explain(problem))
        first = losses.iloc[0]
        assert first["line"] == "c<->d"
        assert (first["demands_cut_off"], first["cut_off_mbps"], first["objective"]) == (2, 2.0, 0.0)
        cut = losses.iloc[1:].set_index("line")["demands_cut_off"]
        assert cut[cut > 0].to_dict() == others
        explanation = explain(problem, parameters={"objective": "utilization"})
        assert "no plan serves all demands, 2 demands cut off" in explanation.sentences[2]


def test_parallel_links_are_lines_of_their_own() -> None:
    problem = network([("a", "b", 2.0), ("a", "b", 1.0), ("b", "a", 1.0)], [("a", "b", 1.0)])
    _, upgrades, losses, _, _ = frames(explain(problem))
    assert upgrades.set_index("line")["objective"].to_dict() == pytest.approx({"a<->b#1": 5.0})
    assert losses.set_index("line")["objective"].to_dict() == pytest.approx({"a<->b#1": 1.0, "a->b#2": 2.0})


@pytest.mark.parametrize("design", ["ecmp", "shortest_path"])
def test_a_design_without_a_linear_program_runs_again(design: str) -> None:
    limits, upgrades, losses, metrics, _ = frames(explain(bottleneck(), design))
    assert limits["link"].tolist() == ["a->z"]
    assert "shadow_price" not in limits
    assert upgrades.iloc[0]["line"] == "a<->z"
    assert upgrades.iloc[0]["objective"] == pytest.approx(4.0)  # both demands of 2 fit
    assert losses.set_index("line")["objective"].to_dict() == pytest.approx({"a<->z": 3.0, "b<->z": 1.0})
    before = metrics.set_index("metric")
    assert before.loc["Concurrent flow", "before"] == pytest.approx(0.5)
    assert before.loc["Concurrent flow", "now"] == pytest.approx(0.5)


def test_runs_again_by_other_backends_agree() -> None:
    entry = Entry(label="optimum", design=SYSTEM.design("optimum"))
    options = Options(backend="ortools:glop")
    problem = bottleneck()
    made = evaluation.evaluate(SYSTEM, problem, entry, options=options)
    assert made.decision is not None
    decided = Decided(
        design=entry.design,
        parameters={},
        decision=made.decision,
        metrics=made.metrics,
        baseline=ecmp.route(problem).plan,
    )
    again = frames(what_if.explain(problem, decided, options=options))
    warm = frames(explain(problem))
    for item, other in ((again[1], warm[1]), (again[2], warm[2])):
        one_by, other_by = (frame.set_index("line")["objective"] for frame in (item, other))
        assert one_by.loc[list(other_by.index)].tolist() == pytest.approx(other_by.tolist())


def test_a_design_with_its_own_method_verifies_itself() -> None:
    """Column generation solves again, the linear program only prices; the results are the same."""
    warm = explain(bottleneck(), upgrade=0.5)
    explanation = explain(bottleneck(), upgrade=0.5, parameters={"method": "columns"})
    assert "optimum, run again, shadow prices from highs" in explanation.sections[1].note
    for item, other in zip(frames(explanation)[1:3], frames(warm)[1:3], strict=True):
        one_by, other_by = (frame.set_index("line")["objective"] for frame in (item, other))
        assert one_by.loc[list(other_by.index)].tolist() == pytest.approx(other_by.tolist(), rel=1e-5)
    assert "proven best of all 3 lines" in explanation.sentences[1]
    assert set(explanation.sections[0].frame["link"]) == {"a->z", "a->b"}


def test_given_paths_stay_the_same() -> None:
    explanation = explain(bottleneck(), parameters={"objective": "concurrent", "paths": 1})
    _, _, losses, _, _ = frames(explanation)
    assert losses.set_index("line")["objective"].to_dict() == pytest.approx({"a<->z": 0.0, "b<->z": 0.0})


@pytest.mark.parametrize(
    ("solves", "words"), [(2, "best of 1 of 15 lines, not proven"), (1, "0 of 15 lines")]
)
def test_a_solver_out_of_time_ends_the_search(monkeypatch: Any, solves: int, words: str) -> None:
    """The first solve is that of the plan; the sentence counts the changes solved in time."""
    problem = generators.abilene(peak_utilization=1.2)
    solve = reoptimization.ProgramSession._solve
    remaining = [solves]

    def slow(self: Any) -> float | None:
        if not remaining[0]:
            raise reoptimization.OutOfTime("out of time")
        remaining[0] -= 1
        return solve(self)

    monkeypatch.setattr(reoptimization.ProgramSession, "_solve", slow)
    explanation = explain(problem)
    assert words in explanation.sentences[1]


def test_the_design_runs_again_where_the_session_does_not_start(monkeypatch: Any) -> None:
    def never(self: Any) -> float | None:
        raise reoptimization.OutOfTime("out of time")

    monkeypatch.setattr(reoptimization.ProgramSession, "_solve", never)
    explanation = explain(bottleneck())
    assert "optimum, run again" in explanation.sections[1].note
    assert "shadow_price" not in explanation.sections[0].frame


def test_without_candidates_nothing_is_solved() -> None:
    explanation = explain(bottleneck(), candidates=0)
    _, upgrades, losses, _, _ = frames(explanation)
    assert upgrades.empty
    assert losses.empty
    assert "0 of 3 lines" in explanation.sentences[1]
    assert explanation.sentences[2] == "no line's loss was tried"


def test_demands_of_rate_zero() -> None:
    problem = bottleneck().scale_demands(0.0)
    explanation = explain(problem, parameters={"objective": "utilization"})
    assert explanation.sentences[0] == "Max utilization is 0%: no link limits it"
    assert explanation.sentences[2] == "no line has a load, so no loss matters"


def test_shares_are_compared_in_percent() -> None:
    explanation = explain(bottleneck(), parameters={"objective": "utilization"}, candidates=1)
    assert explanation.sentences[0].startswith("Max utilization is 100%: ")
    upgrades, against, loads = explanation.sections[1], explanation.sections[3], explanation.sections[4]
    assert upgrades.units["gain"] == "points"
    (gain,) = upgrades.frame["gain"]
    assert gain == pytest.approx(100 - 100 * upgrades.frame["max_utilization"].iloc[0])
    rows = against.frame.set_index("metric")
    assert rows.loc["Max utilization", "unit"] == rows.loc["Delivered share", "unit"] == "%"
    assert rows.loc["Max utilization", "before"] == pytest.approx(200)
    assert rows.loc["Max utilization", "now"] == pytest.approx(100)
    assert {"before_utilization", "now_utilization"} <= set(loads.frame)  # shown in percent by their names


def test_the_best_upgrade_of_abilene() -> None:
    """Two solves prove it best; compared with solves of all 15 lines."""
    problem = generators.abilene(peak_utilization=1.2)
    _, upgrades, _, _, _ = frames(explain(problem, parameters={"objective": "concurrent"}))
    assert len(upgrades) == 2
    value = optimum.route(problem, objective="concurrent").proof.objective
    assert value is not None
    gains = {}
    for line in dict.fromkeys(map(line_of, problem.link_labels)):
        name = "<->".join(sorted(line[0])) + (f"#{line[1]}" if line[1] else "")
        links = problem.links.assign(capacity_mbps=change_line(problem, name, 2.0))
        changed = replace(problem, links=links)
        objective = optimum.route(changed, objective="concurrent").proof.objective
        assert objective is not None
        gains[line] = objective - value
    assert upgrades["gain"].iloc[0] == pytest.approx(max(gains.values()), abs=1e-6)


# --- the engine and the command -----------------------------------------------------------


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    for name, frame in bottleneck().to_tables().items():
        frame.to_csv(tmp_path / f"{name}.csv", index=False)
    path = tmp_path / "scenario.toml"
    path.write_text('system = "traffic"\n[problem]\nsource = "tables"\npath = "."\n[designs.optimum]\n')
    return path


def invoke(*arguments: str) -> Any:
    return CliRunner().invoke(application.app, ["explain", *arguments])


def test_command(scenario: Path) -> None:
    result = invoke(str(scenario))
    assert result.exit_code == 0, result.output
    assert "links that limit the plan" in result.stdout
    assert "100% more capacity gains most on a<->" in result.stdout


def test_command_as_json(scenario: Path) -> None:
    result = invoke(str(scenario), "--json", "--with", "candidates=1", "--with", "upgrade=0.5")
    assert result.exit_code == 0, result.output
    document = json.loads(result.stdout)
    assert document["runs"][0]["objective"] == pytest.approx(4.0)
    explanation = document["explanation"]
    assert len(explanation["sentences"]) == 5
    upgrades = explanation["sections"][1]
    assert upgrades["title"] == "upgrades by 50%, solved again"
    assert upgrades["units"]["gain"] == "x demand"
    assert len(upgrades["rows"]) == 1
    assert upgrades["rows"][0]["gain"] == pytest.approx(0.25)


def test_command_compares_to_a_plan_or_a_design(scenario: Path, tmp_path: Path) -> None:
    solved = CliRunner().invoke(application.app, ["solve", str(scenario), "--out", str(tmp_path / "out")])
    assert solved.exit_code == 0, solved.output
    same = invoke(str(scenario), "--previous", str(tmp_path / "out" / "optimum" / "plan"))
    assert "against the previous plan, 0.0% of the load" in same.stdout
    other = invoke(str(scenario), "--previous", "shortest_path")
    assert "against the previous plan, 40.0% of the load" in other.stdout


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (
            ["--previous", "ecpm"],
            1,
            "ecpm: is neither a folder with a plan nor a design of traffic; did you mean 'ecmp'?",
        ),
        (["--previous", "."], 1, "has no table of a plan"),
        (
            ["--with", "candidate=1"],
            1,
            "no parameter of the explanations of traffic; did you mean 'candidates'?",
        ),
        (["--with", "upgrade=0"], 1, "explain.upgrade is 0, must be greater than 0"),
        (["--with", "upgrade"], 1, "--with upgrade: must be KEY=VALUE"),
        (["--design", "optimun"], 1, "no such design of traffic; did you mean 'optimum'?"),
    ],
)
def test_errors_of_the_command(
    scenario: Path, arguments: list[str], code: int, message: str, monkeypatch: Any, tmp_path: Path
) -> None:
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    result = invoke(str(scenario), *arguments)
    assert isinstance(result.exception, InputError)
    assert result.exception.exit_code == code
    assert message in str(result.exception)


def test_without_a_plan_there_is_no_explanation(scenario: Path) -> None:
    scarce = [str(scenario), "--set", "designs.optimum.objective=cost", "--set", "problem.scale=10"]
    result = invoke(*scarce)
    assert result.exit_code == 1  # links without a cost
    links = pd.read_csv(scenario.parent / "links.csv").assign(cost=1.0)
    links.to_csv(scenario.parent / "links.csv", index=False)
    assert invoke(*scarce).exit_code == 0  # what does not fit is shed
    strict = [*scarce, "--set", "solver.service=all"]
    result = invoke(*strict)
    assert result.exit_code == 3
    assert "infeasible" in result.stdout
    assert json.loads(invoke(*strict, "--json").stdout)["explanation"] is None


def test_an_overloaded_plan_is_explained_by_delivered_traffic() -> None:
    explanation = explain(bottleneck().scale_demands(2))
    assert explanation.sentences[0].startswith("Delivered is 6 Mbit/s: ")
    assert "100% more capacity gains most on a<->" in explanation.sentences[1]
    assert explanation.sections[1].frame["gain"].iloc[0] == pytest.approx(1.0)


def test_a_system_without_explanations(scenario: Path) -> None:
    mute = replace(load(scenario), system=replace(SYSTEM, studies=Studies()))
    with pytest.raises(InputError, match="traffic: plans of this system cannot be explained"):
        command.explain(mute)
