"""The change from one plan to another: rows, metrics, steps, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import planner
from planner.errors import PlannerError
from planner.runs.files import write_plan
from tests.commands import planner as command
from tests.planner.scenarios.test_user_designs import PROBLEM, ROUTE, hops

TODAY = {"routes": [ROUTE | {"rate_mbps": 6.0}, ROUTE | {"path": ["s", "b", "t"], "rate_mbps": 6.0}]}


def test_rows_and_metrics_of_two_plans_are_compared() -> None:
    change = planner.diff(PROBLEM, TODAY, hops, steps=False)
    assert change.before.label == "before"
    assert change.after.label == "hops"
    frame = change.to_frame("flows")
    assert dict(frame["change"].value_counts()) == {"changed": 2, "gone": 2}
    assert change.metrics.loc["max_utilization"].tolist() == pytest.approx([1.2, 1.2])
    assert change.update is None
    assert change.verdict.startswith("flows: 2 gone, 2 changed (4 rows).")
    assert "before to hops" in str(change)
    assert "Changes in flows" in [table.title for table in change.page().parts[0].tables]


def test_the_same_plan_has_no_changes() -> None:
    run = planner.solve(PROBLEM, design="ecmp")
    assert planner.diff(PROBLEM, run, run.plan, steps=False).verdict == "The plans are the same."


@pytest.mark.slow
def test_steps_are_those_of_the_system_that_orders_changes() -> None:
    change = planner.diff(PROBLEM, TODAY, "optimum")
    assert change.update is not None
    assert change.update.system.name == "updates"
    assert change.steps is not None
    assert len(change.steps)
    assert "The change as steps of updates: " in change.verdict


@pytest.mark.parametrize(
    ("before", "after", "line"),
    [
        (
            "ecpm",
            "optimum",
            "before: ecpm is neither a folder or file with a plan nor a design of traffic",
        ),
        ("ecmp", 3, "plans.after: is of type int, must be a plan of traffic"),
        ("ecmp", {"routes": [ROUTE | {"rate_mbps": -1}]}, "plans.after: routes row 1: rate_mbps is -1"),
    ],
)
def test_bad_plans_are_one_clear_line(before: Any, after: Any, line: str) -> None:
    with pytest.raises(PlannerError) as caught:
        planner.diff(PROBLEM, before, after, steps=False)
    assert str(caught.value).startswith(line)


def test_the_command_compares_folders_and_designs(tmp_path: Path) -> None:
    PROBLEM.links.to_csv(tmp_path / "links.csv", index=False)
    PROBLEM.demands.to_csv(tmp_path / "demands.csv", index=False)
    (tmp_path / "s.toml").write_text('system = "traffic"\n[problem]\nsource = "tables"\npath = "."\n')
    write_plan(planner.check(PROBLEM, TODAY).plan, tmp_path / "now", "csv")
    result = command("diff", tmp_path / "s.toml", tmp_path / "now", "ecmp", "--no-steps", "--json")
    assert result.code == 0, result.err
    plain = json.loads(result.out)
    assert plain["before"] == "now"
    assert plain["after"] == "ecmp"
    assert "flows" in plain["changes"]
    assert command("diff", tmp_path / "s.toml", "now", "ecmp").code == 1
