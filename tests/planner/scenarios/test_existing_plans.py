"""Plans made elsewhere: beside designs, as the plan before, checked, in every form."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import planner
from planner.errors import InputError, PlannerError, PlanRejected
from planner.runs.files import write_plan
from planner.scenarios.scenario import load
from tests.commands import planner as command
from tests.planner.scenarios.test_user_designs import PROBLEM, ROUTE, hops

TODAY = {"routes": [ROUTE | {"rate_mbps": 6.0}, ROUTE | {"path": ["s", "b", "t"], "rate_mbps": 6.0}]}


def test_an_existing_plan_stands_beside_designs() -> None:
    result = planner.compare(PROBLEM, designs=["optimum", hops], plans={"today": TODAY})
    assert result.metrics.index.tolist() == ["today", "optimum", "hops"]
    assert result["today"].status == "no search"
    assert result["today"].metrics["max_utilization"] == pytest.approx(1.2)
    assert result["today"].proof.gap is None
    assert "today" in result.verdict


@pytest.mark.parametrize("form", ["csv", "parquet", "xlsx", "folder", "run", "object"])
def test_an_existing_plan_has_any_form(form: str, tmp_path: Path) -> None:
    frame = planner.check(PROBLEM, TODAY).plan.to_tables()["routes"]
    plan = planner.check(PROBLEM, {"routes": frame}).plan
    forms: dict[str, Any] = {"object": plan}
    (tmp_path / "run").mkdir()
    write_plan(plan, tmp_path / "run" / "plan")
    write_plan(plan, tmp_path / "folder", "csv")
    frame.to_csv(tmp_path / "plan.csv", index=False)
    frame.to_parquet(tmp_path / "plan.parquet", index=False)
    frame.to_excel(tmp_path / "plan.xlsx", sheet_name="routes", index=False)
    given = forms.get(form) or tmp_path / (form if form in ("folder", "run") else f"plan.{form}")
    result = planner.compare(PROBLEM, designs=["ecmp"], plans={"today": given})
    assert result["today"].metrics["max_utilization"] == pytest.approx(1.2)
    assert planner.check(PROBLEM, given).metrics["max_utilization"] == pytest.approx(1.2)


@pytest.mark.parametrize(
    ("plans", "kind", "line"),
    [
        ({"ecmp": TODAY}, InputError, "traffic: plans.ecmp: a design has this name; name the plan otherwise"),
        ({"a/b": TODAY}, InputError, 'traffic: plans: label "a/b" must be a plain name'),
        ({"today": 3}, InputError, "plans.today: is of type int, must be a plan of traffic"),
        ({"today": {"routes": [ROUTE | {"rate_mbps": -3}]}}, InputError,
         "plans.today: routes row 1: rate_mbps is -3"),
        ({"today": {"routes": [ROUTE | {"source": "x"}]}}, PlanRejected,
         "plans.today: routes row 1: x->t is no demand of the problem"),
        ({"today": "nowhere"}, InputError, "plans.today: nowhere: no such file or folder"),
        ({"today": "."}, InputError, "plans.today: .: has no table of a plan; traffic has flows"),
    ],
)  # fmt: skip
def test_a_bad_plan_is_one_clear_line(
    plans: Any, kind: type[PlannerError], line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(kind) as caught:
        planner.compare(PROBLEM, designs=["ecmp"], plans=plans)
    assert str(caught.value).startswith(line)


def test_a_plan_before_starts_a_design_and_counts_its_changes() -> None:
    moved = planner.solve(PROBLEM, design="optimum", previous=TODAY)
    assert moved.metrics["max_utilization"] == pytest.approx(0.8)
    forms: list[Any] = [TODAY, planner.check(PROBLEM, TODAY).plan, planner.solve(PROBLEM, design="ecmp")]
    for previous in [*forms, forms[-1].decision, "ecmp"]:
        run = planner.compare(PROBLEM, designs=["optimum"], previous=previous)
        changed = {name for name, value in run["optimum"].metrics.items() if value is not None}
        alone = planner.solve(PROBLEM, design="optimum").metrics
        assert changed > {name for name, value in alone.items() if value is not None}


@pytest.mark.parametrize(
    ("previous", "line"),
    [
        (3, "previous: is of type int, must be a plan of traffic"),
        ("optmum", "optmum: is neither a folder with a plan nor a design of traffic; did you mean 'optimum'"),
        ({}, "previous: has no table of a plan"),
        (
            {"routes": [ROUTE | {"path": ["s", "t"]}]},
            "previous: routes row 1: s->t is no link of the network",
        ),
    ],
)
def test_a_bad_plan_before_is_one_clear_line(previous: Any, line: str) -> None:
    with pytest.raises(PlannerError) as caught:
        planner.solve(PROBLEM, design="optimum", previous=previous)
    assert str(caught.value).startswith(line)


def test_a_plan_before_of_another_system_is_refused() -> None:
    other = planner.solve(planner.generate("circuits"), design="solstice")
    with pytest.raises(PlanRejected, match=r"previous: is a plan of circuits, not of traffic"):
        planner.solve(PROBLEM, previous=other)


# --- on the command line, and in files -----------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    PROBLEM.links.to_csv(tmp_path / "links.csv", index=False)
    PROBLEM.demands.to_csv(tmp_path / "demands.csv", index=False)
    (tmp_path / "scenario.toml").write_text(
        'system = "traffic"\n[problem]\nsource = "tables"\npath = "."\n[designs.ecmp]\n'
    )
    write_plan(planner.check(PROBLEM, TODAY).plan, tmp_path / "now", "csv")
    return tmp_path


def test_a_plan_is_named_on_the_command_line_and_saved_with_the_scenario(folder: Path) -> None:
    scenario, out = folder / "scenario.toml", folder / "out"
    result = command("compare", scenario, "--plan", f"today={folder / 'now'}", "--out", out, "--json")
    assert result.code == 0, result.err
    assert [run["design"] for run in json.loads(result.out)["runs"]] == ["today", "ecmp"]
    again = planner.compare(out / "scenario.toml")
    assert again["today"].metrics["max_utilization"] == pytest.approx(1.2)
    assert load(out / "scenario.toml").raw["plans"] == {"today": "plans/today"}
    text = command("solve", scenario, "--design", "optimum", "--previous", folder / "now")
    assert text.code == 0, text.err


def test_a_scenario_names_plans_by_path(folder: Path) -> None:
    scenario = folder / "scenario.toml"
    scenario.write_text(scenario.read_text() + '[plans]\ntoday = "now"\n')
    assert planner.compare(scenario)["today"].plan is not None
    assert 'today = "../now"' in load(scenario).to_toml(folder / "elsewhere")
    assert planner.explain(scenario, design="today").explanation
    scenario.write_text(scenario.read_text().replace('"now"', "3"))
    with pytest.raises(InputError, match=r"plans\.today is 3, must be the name of a file"):
        planner.compare(scenario)


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("--plan", "now"), "--plan now: must be NAME=PLAN, such as today=FOLDER"),
        (("--plan", "a=x", "--plan", "a=y"), "--plan a=y: a plan of this name is given already"),
        (("--plan", "a=x"), "plans.a: x: no such file or folder"),
    ],
)
def test_bad_options_are_one_line(folder: Path, words: tuple[str, ...], line: str) -> None:
    result = command("compare", folder / "scenario.toml", *words)
    assert result.code == 1
    assert result.err.strip().splitlines()[-1] == line


def test_an_unknown_column_order_does_not_matter() -> None:
    frame = pd.DataFrame(TODAY["routes"])[["rate_mbps", "path", "target", "source"]]
    assert planner.check(PROBLEM, frame).metrics["max_utilization"] == pytest.approx(1.2)
