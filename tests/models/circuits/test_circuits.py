"""The shipped scenarios and a trace, from the command line."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from planner_models.circuits import SYSTEM
from tests.commands import planner

SCENARIOS = Path(__file__).parents[3] / "data" / "scenarios" / "circuits"


def compare(scenario: Path, *more: str) -> dict[str, dict[str, Any]]:
    result = planner("compare", scenario, "--json", *more)
    assert result.code == 0, result.err
    return {run["design"]: run for run in json.loads(result.out)["runs"]}


@pytest.mark.slow
def test_eight_racks_have_a_proven_optimum_between_heuristics_and_bound() -> None:
    runs = compare(SCENARIOS / "exact_8.toml")
    assert runs["optimum"]["status"] == "optimal"
    for name in ("solstice", "eclipse"):
        assert 0.97 < runs[name]["objective"] / runs["optimum"]["objective"] < 0.99
    assert 1 < runs["eclipse"]["bound"] / runs["optimum"]["objective"] < 1.02


@pytest.mark.slow
def test_schedulers_with_reports_of_hosts_serve_most_of_the_skewed_workload() -> None:
    runs = compare(SCENARIOS / "skewed_64.toml", "--set", "designs.search.steps=5000")
    assert runs["eclipse"]["objective"] > 0.99 * runs["eclipse"]["bound"]
    assert runs["search"]["objective"] > 0.994 * runs["eclipse"]["bound"]
    for name, run in runs.items():
        told = name in ("search", "solstice", "solstice_units", "eclipse")
        assert (run["metrics"]["served_share"] > 0.97) == told, name


def test_every_scenario_has_a_plan_for_each_design() -> None:
    for name in ("hotspots", "shuffle", "writes"):
        for design, run in compare(SCENARIOS / f"{name}.toml").items():
            assert run["metrics"]["served_share"] is not None, (name, design)
            assert not run["violations"], (name, design)


def test_writes_to_the_next_rack_end_sooner_than_to_random_racks() -> None:
    """All to all against a ring: the same bits, and a schedule of one day instead of many."""
    drawn = compare(SCENARIOS / "writes.toml")
    ring = compare(SCENARIOS / "writes.toml", "--set", "problem.placement=next")
    for design in ("solstice", "eclipse"):
        assert ring[design]["metrics"]["configurations"] == 1
        assert drawn[design]["metrics"]["configurations"] >= 7
        assert ring[design]["metrics"]["done_us"] < drawn[design]["metrics"]["done_us"]


@pytest.mark.slow
def test_more_information_serves_more_and_takes_more_signalling() -> None:
    runs = compare(SCENARIOS / "coordination.toml", "--set", "designs.optimum.steps=200")
    order = ["packet_only", "strobe", "solstice_queues", "solstice_units"]
    served = [runs[name]["metrics"]["served_share"] for name in order]
    assert served == sorted(served)
    assert served[-1] > 1.5 * served[-2] > 2 * served[-3]
    told = [runs[name]["metrics"]["signalling_bytes"] for name in order]
    assert told == sorted(told)
    assert told[1] == 0 < told[2]
    assert runs["optimum"]["bound"] >= max(run["metrics"]["served_mbps"] for run in runs.values())
    assert runs["optimum"]["objective_metric"] == SYSTEM.studies.coordination.performance  # type: ignore[union-attr]


def test_a_shuffle_gains_from_another_circuit_switch() -> None:
    before = compare(SCENARIOS / "shuffle.toml")
    after = compare(SCENARIOS / "shuffle.toml", "--set", "problem.circuit_switches=2")
    for design in ("solstice", "eclipse"):
        assert before[design]["metrics"]["served_share"] < 0.95
        assert after[design]["metrics"]["served_share"] == pytest.approx(1.0)


def test_a_small_trace_rolls_window_by_window(tmp_path: Path) -> None:
    """Demand served by each design, coflows' completion and port maps, from the command line."""
    (tmp_path / "trace.txt").write_text("4 3\n1 0 2 0 1 1 2:4.0\n2 50 1 3 2 1:9.0 0:1.0\n3 150 1 0 1 1:7\n")
    scenario = tmp_path / "trace.toml"
    scenario.write_text(
        'system = "circuits"\n[problem]\nsource = "coflow_windows"\npath = "trace.txt"\n'
        "length_ms = 100\n[designs.solstice]\n[designs.packet_only]\n"
    )
    out = tmp_path / "out"
    result = planner("roll", scenario, "--out", out, "--table-format", "csv")
    assert result.code == 0, result.err
    windows = pd.read_csv(out / "solstice" / "windows.csv")
    assert (windows["served_share"] > 0.999).all()
    assert (windows["coflow_mean_us"] > 0).all()
    slow = pd.read_csv(out / "packet_only" / "windows.csv")
    assert (slow["coflow_mean_us"] > windows["coflow_mean_us"]).all()
    ports = sorted(out.glob("solstice/windows/*/plan/ports.csv"))
    assert len(ports) == 2
    assert {"switch", "start_us", "end_us", "input_port", "output_port"} == set(pd.read_csv(ports[0]))


@pytest.mark.slow
@pytest.mark.skipif("PLANNER_TRACES" not in os.environ, reason="PLANNER_TRACES names no folder of traces")
def test_the_last_minutes_of_a_real_trace(tmp_path: Path) -> None:
    """Facebook's coflows, minute by minute: all is served, sooner than without circuits."""
    trace = Path(os.environ["PLANNER_TRACES"]) / "coflow" / "FB2010-1Hr-150-0.txt"
    scenario = tmp_path / "trace.toml"
    scenario.write_text(
        f'system = "circuits"\n[problem]\nsource = "coflow_windows"\npath = "{trace}"\n'
        "start_ms = 3480000\n[designs.solstice]\n[designs.eclipse]\n[designs.packet_only]\n"
    )
    result = planner("roll", scenario, "--out", tmp_path / "out", "--table-format", "csv")
    assert result.code == 0, result.err
    names = ("solstice", "eclipse", "packet_only")
    runs = {name: pd.read_csv(tmp_path / "out" / name / "windows.csv") for name in names}
    for run in runs.values():
        assert len(run) == 3
        assert (run["served_share"].dropna() > 0.999999).all()
    for name in ("solstice", "eclipse"):
        assert runs[name]["done_us"].sum() < 0.3 * runs["packet_only"]["done_us"].sum()
        assert runs[name]["coflow_mean_us"].sum() < 0.5 * runs["packet_only"]["coflow_mean_us"].sum()
        assert list((tmp_path / "out" / name).glob("windows/*/plan/ports.csv"))
