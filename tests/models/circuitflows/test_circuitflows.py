"""The shipped scenarios of flows in time, shortened, from the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from planner.runs.shipped_verdicts import load_shipped
from planner.scenarios.scenario import load
from planner_models.circuitflows import published as targets
from planner_models.circuitflows.designs import block_placement, execution
from planner_models.circuitflows.plan.metrics import Replay, measure_run
from planner_models.circuitflows.plan.plan import settings_table
from planner_models.circuitflows.problem import generators
from tests.commands import planner


def compare(name: str, *more: str) -> dict[str, dict[str, Any]]:
    result = planner("compare", f"circuitflows/{name}", "--json", *more)
    assert result.code == 0, result.err
    return {run["design"]: run["metrics"] for run in json.loads(result.out)["runs"]}


@pytest.mark.parametrize("name", ["table_2_2", "one_ring", "strobe", "dfsio"])
def test_shipped_scenarios_are_valid(name: str) -> None:
    scenario = load(f"circuitflows/{name}")
    assert scenario.system.name == "circuitflows"
    assert len(scenario.designs) >= 3


def test_table_2_2_has_eleven_columns() -> None:
    assert len(load("circuitflows/table_2_2").designs) == 11


@pytest.mark.slow
def test_the_order_of_table_2_2_for_big_flows_shows_in_a_twentieth_of_its_time() -> None:
    designs = "voq,adu,adu_resize,packet_10,packet_40,packet_80"
    runs = compare("table_2_2", "--designs", designs, "--set", "problem.horizon_us=100000")
    carried = {name: run["delivered_gb"] for name, run in runs.items()}
    assert carried["packet_10"] < carried["voq"] < carried["adu"] < carried["adu_resize"]
    assert carried["adu_resize"] < carried["packet_40"] <= carried["packet_80"] * 1.02


@pytest.mark.exhaustive
def test_a_full_run_gives_the_values_that_ship() -> None:
    """One of Table 2.2's eleven columns, over the whole four seconds.

    Not the tail of small flows: whether one in a hundred waits for a timeout changes with rounding.
    """
    problem = generators.etalon()
    plan, network = execution.run(
        problem,
        placement=block_placement.place_randomly(problem, seed=0),
        week=None,
        settings=settings_table(queue_packets=128, packet_mbps=40_000.0),
    )
    figures = measure_run(problem, plan, Replay.of(network))
    shipped = {row.id: row.ours for row in load_shipped()["circuitflows/table_2_2"].reproduction.rows}
    for row in ("median_small", "median_big", "p99_big"):
        assert figures[targets.ROWS[row]] == pytest.approx(shipped[f"circ_t22_{row}_pkt40"], rel=0.15)


@pytest.mark.slow
def test_more_information_delivers_more_and_lengthens_the_tail() -> None:
    """Table 2.2's lesson: transparency ends big flows sooner, and the last small ones later."""
    runs = compare("coordination")
    delivered = [run["delivered_gb"] for run in runs.values()]
    assert list(runs) == [
        "packet_only",
        "strobe",
        "queues",
        "queues_resize",
        "data_units",
        "data_units_resize",
        "data_units_retcp",
    ]
    assert delivered == sorted(delivered)
    assert max(run["share_of_bound"] for run in runs.values()) <= 1
    assert runs["data_units_retcp"]["small_p99_ms"] > 2 * runs["packet_only"]["small_p99_ms"]
    assert runs["strobe"]["messages"] == 0 < runs["queues"]["messages"] < runs["data_units"]["messages"]


@pytest.mark.slow
def test_files_are_written_faster_to_the_next_rack_than_to_random_ones() -> None:
    small = ("--set", "problem.file_mb=10", "--set", "problem.block_mb=3.2")
    runs = compare("dfsio", "--designs", "hdfs_random,rehdfs,placement_optimum", *small)
    assert runs["rehdfs"]["big_median_ms"] < 0.5 * runs["hdfs_random"]["big_median_ms"]
    assert runs["rehdfs"]["done_ms"] < 0.5 * runs["hdfs_random"]["done_ms"]
    pairs = {name: run["pairs_per_rack"] for name, run in runs.items()}
    assert pairs["rehdfs"] == 1
    assert pairs["placement_optimum"] == 2  # the scenario spreads blocks over two racks
    assert pairs["hdfs_random"] > 4


def test_a_saved_plan_passes_the_check(tmp_path: Path) -> None:
    short = ("--set", "problem.horizon_us=10000")
    result = planner("solve", "circuitflows/one_ring", "--design", "adu", "--out", tmp_path, *short)
    assert result.code == 0, result.err
    plan = tmp_path / "adu" / "plan"
    days = pd.read_parquet(plan / "configurations.parquet")
    assert set(days["source_rack"]) == {f"r{i}" for i in range(8)}
    again = planner("check", tmp_path / "scenario.toml", "--plan", plan)
    assert again.code == 0, again.err


def test_impossible_shifts_are_refused_in_one_line() -> None:
    result = planner(
        "solve", "circuitflows/strobe", "--design", "static_16", "--set", "designs.static_16.shifts=[9]"
    )
    assert result.code == 1
    assert "shifts: 9, must be from 1 to 7" in result.err
    assert "Traceback" not in result.err
