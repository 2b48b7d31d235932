"""Explanations of runs: their figures are those of solving again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from planner_models.circuitflows import measure
from planner_models.circuitflows.designs import operation
from planner_models.circuitflows.problem import generators
from tests.commands import planner

SMALL = """
system = "circuitflows"
[problem]
source = "generate"
preset = "strobe"
racks = 4
horizon_us = 20000.0
[designs.fixed]
shifts = [1, 2, 3]
queue_packets = 16
"""


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    path = tmp_path / "s.toml"
    path.write_text(SMALL)
    return path


@pytest.mark.slow
def test_gains_of_changes_are_those_of_solving_again(scenario: Path) -> None:
    result = planner("explain", scenario, "--json")
    assert result.code == 0, result.err
    explained = json.loads(result.out)["explanation"]
    rows = {row["change"]: row for row in explained["sections"][1]["rows"]}
    assert {"circuits, twice the rate", "nights, half as long", "queues, twice as long"} <= set(rows)
    problem = generators.strobe(racks=4, horizon_us=20_000.0)
    base = operation.run_fixed_schedule(problem, shifts=(1, 2, 3), queue_packets=16)
    more = operation.run_fixed_schedule(problem, shifts=(1, 2, 3), queue_packets=32)
    gained = [measure(problem, made.plan, None)["delivered_gb"] for made in (base, more)]
    assert gained[0] is not None
    assert gained[1] is not None
    assert rows["queues, twice as long"]["gain"] == pytest.approx(gained[1] - gained[0])
    assert rows["queues, twice as long"]["delivered_gb"] == gained[1]
    assert gained[1] > gained[0], "16 packets do not fill a circuit"
    assert rows["TDTCP in place of Reno"]["gain"] > rows["reTCP, 2 and 0.5"]["gain"] > 0


@pytest.mark.slow
def test_racks_and_flows_add_up(scenario: Path) -> None:
    explained = json.loads(planner("explain", scenario, "--json").out)["explanation"]
    problem = generators.strobe(racks=4, horizon_us=20_000.0)
    rows = explained["sections"][0]["rows"]
    assert sum(row["wanted"] for row in rows) == pytest.approx(problem.flows["bytes"].sum() / 1e6)
    assert all(0 <= row["left"] <= row["wanted"] for row in rows)
    assert sum(row["flows_unfinished"] for row in rows) <= len(problem.flows)
    assert "flows" in explained["sentences"][0]


@pytest.mark.slow
def test_a_previous_plan_is_compared_metric_by_metric(scenario: Path, tmp_path: Path) -> None:
    saved = planner(
        "solve", scenario, "--out", tmp_path / "before", "--set", "designs.fixed.queue_packets=64"
    )
    assert saved.code == 0, saved.err
    explained = json.loads(
        planner("explain", scenario, "--previous", tmp_path / "before" / "fixed" / "plan", "--json").out
    )["explanation"]
    rows = {row["figure"].split(" ")[0]: row for row in explained["sections"][2]["rows"]}
    assert rows["circuit_utilization"]["before"] > rows["circuit_utilization"]["now"]
    assert rows["delivered_gb"]["change"] == pytest.approx(
        rows["delivered_gb"]["now"] - rows["delivered_gb"]["before"]
    )
