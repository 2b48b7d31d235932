"""The shipped scenarios and a trace, from the command line."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.commands import planner

SCENARIOS = Path(__file__).parents[2] / "data" / "scenarios" / "circuits"


def compared(scenario: Path, *more: str) -> dict[str, dict[str, Any]]:
    done = planner("compare", scenario, "--json", *more)
    assert done.code == 0, done.err
    return {run["design"]: run for run in json.loads(done.out)["runs"]}


def test_eight_racks_have_a_proven_optimum_between_heuristics_and_bound() -> None:
    runs = compared(SCENARIOS / "exact_8.toml")
    assert runs["optimum"]["status"] == "optimal"
    for name in ("solstice", "eclipse"):
        assert 0.97 < runs[name]["objective"] / runs["optimum"]["objective"] < 0.99
    assert 1 < runs["eclipse"]["bound"] / runs["optimum"]["objective"] < 1.02


def test_told_schedulers_serve_most_of_the_skewed_workload() -> None:
    runs = compared(SCENARIOS / "skewed_64.toml")
    assert runs["eclipse"]["objective"] > 0.99 * runs["eclipse"]["bound"]
    for name, run in runs.items():
        told = name in ("solstice", "eclipse")
        assert (run["metrics"]["served_share"] > 0.97) == told, name


@pytest.mark.skipif("PLANNER_TRACES" not in os.environ, reason="PLANNER_TRACES names no folder of traces")
@pytest.mark.parametrize("minute", [0, 1])
def test_a_real_trace_is_scheduled_minute_by_minute(tmp_path: Path, minute: int) -> None:
    trace = Path(os.environ["PLANNER_TRACES"]) / "coflow" / "FB2010-1Hr-150-0.txt"
    scenario = tmp_path / "trace.toml"
    scenario.write_text(
        f'system = "circuits"\n[problem]\nsource = "coflow"\npath = "{trace}"\n'
        f"start_ms = {minute * 60_000}\n[designs.solstice]\n[designs.packet_only]\n"
    )
    runs = compared(scenario)
    for run in runs.values():
        assert run["metrics"]["served_share"] == pytest.approx(1.0)
    assert runs["solstice"]["objective"] < 0.2 * runs["packet_only"]["objective"]
