"""What coordination is worth: shares from runs, bounds from proofs, and where a mechanism loses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from planner import coordination
from planner.catalogue import find_system
from planner.errors import InputError
from planner.system import Coordination
from tests.commands import planner

TRAFFIC = find_system("traffic")


def runs(**rows: dict[str, Any]) -> pd.DataFrame:
    base = {
        "mechanism": "none", "exit_code": 0, "status": "feasible", "objective_metric": None, "bound": None,
        "omniscient": True, "message": None, "seconds": 0.5, "messages": 0.0, "exchanged_bytes": 0.0,
    }  # fmt: skip
    return pd.DataFrame([{"label": label, **base, **given} for label, given in rows.items()])


def measured(frame: pd.DataFrame, **asked: Any) -> coordination.Measured:
    import dataclasses

    way = Coordination(scenario="traffic/coordination", **{"performance": "concurrent_flow", **asked})
    return coordination._ordered(
        dataclasses.replace(TRAFFIC, coordination=way, metrics=TRAFFIC.metrics[:-2]), frame
    )


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
    assert any("best (none) goes 100%" in text for text in found.sentences())


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
    assert found.sentences() == ["traffic: broken has no plan: too much"]


def test_times_are_seconds_whatever_the_metric_is_in() -> None:
    found = measured(
        runs(alone={"concurrent_flow": 1.0, "mean_latency_ms": 250.0}), responsiveness="mean_latency_ms"
    )
    assert found.frame["answers_in_s"].tolist() == [0.25]


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
