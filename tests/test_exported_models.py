"""Exported models of every system say their objective, and its value is the metric that the file names."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import highspy
import pandas as pd
import pytest

import planner
from planner.contract.design import Design
from planner.contract.proof import Status
from planner.contract.system import System
from planner.errors import InputError
from planner.options import Options
from planner_models import circuits, coflows, rotors, topology, traffic, updates

NAMES = (
    *("analytics", "brokering", "capacity", "circuits", "coflows", "contracts", "fairshare", "livevideo"),
    *("multicast", "rotors", "topology", "traffic", "updates"),
)
LONG = ("capacity", "coflows", "contracts")
"""Systems whose models take seconds to solve."""
METRIC = re.compile(
    r"^[\\*] metric: (?P<metric>\w+) = (?:(?P<scale>[-+.e\d]+) \* )?objective value"
    r"(?: (?P<sign>[-+]) (?P<offset>[.e\d]+))?(?:, (?P<unit>.+))?$"
)


def optimum_of(path: Path) -> float:
    """Return the optimum of a file, as HiGHS reads it."""
    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    highs.setOptionValue("mip_rel_gap", 1e-8)
    assert highs.readModel(str(path)) == highspy.HighsStatus.kOk
    highs.run()
    assert highs.getModelStatus() == highspy.HighsModelStatus.kOptimal
    return float(highs.getInfo().objective_function_value)


def stated(path: Path) -> tuple[str, str, float | None]:
    """Return the objective, the metric ("" for none) and its value by the file's own text."""
    lines = path.read_text().splitlines()
    head = [line for line in lines[:12] if line[:1] in "\\*"]
    assert any(line[2:].startswith("objective: m") for line in head), head
    result = next((match for line in head if (match := METRIC.match(line))), None)
    about = " ".join(line[2:] for line in head)
    if result is None:
        return about, "", None
    value = optimum_of(path) * float(result["scale"] or 1.0)
    return about, result["metric"], value + float((result["sign"] or "+") + (result["offset"] or "0"))


def export(system: System, problem: object, design: Design, folder: Path) -> list[Path]:
    """Return the files of a design's model, LP and MPS."""
    paths = [folder / f"{design.name}.{suffix}" for suffix in ("lp", "mps")]
    for path in paths:
        planner.export(problem, path, design=design.name)
    return paths


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.slow if name in LONG else ()) for name in NAMES],
)
def test_the_stated_metric_is_that_of_the_plan(name: str, tmp_path: Path) -> None:
    system: System = importlib.import_module(f"planner_models.{name}").SYSTEM
    problem = system.problem.sample()
    designs = [design for design in system.designs if design.model is not None]
    assert designs
    for design in designs:
        try:
            files = export(system, problem, design, tmp_path)
        except InputError:  # too large, or more switches than the model is for
            continue
        (about, metric, value), other = (stated(path) for path in files)
        assert other[:2] == (about, metric)
        if value is None:
            continue
        assert metric in {item.name for item in system.plan.metrics}
        assert other[2] == pytest.approx(value, rel=1e-5)
        decision = design.run(problem, options=Options(time_limit_s=20.0))
        if decision.proof.status is Status.OPTIMAL:  # of all plans, or of those that the model is of
            figures = system.plan.measure(problem, decision.plan, None)
            assert value == pytest.approx(figures[metric], rel=1e-4), (design.name, about)


@pytest.mark.parametrize("window_us", [2_000.0, None])
def test_circuits_are_scaled_as_stated(tmp_path: Path, window_us: float | None) -> None:
    problem = circuits.Circuits.from_matrix(
        [[0, 90e6, 40e6], [10e6, 0, 70e6], [80e6, 20e6, 0]],
        packet_mbps=1_000.0,
        night_us=100.0,
        window_us=window_us,
    )
    design = circuits.SYSTEM.design("optimum")
    figures = circuits.measure(problem, design.run(problem).plan, None)
    for path in export(circuits.SYSTEM, problem, design, tmp_path):
        _, metric, value = stated(path)
        assert metric == ("served_mbps" if window_us else "done_us")
        assert value == pytest.approx(figures[metric], rel=1e-5)


def test_schedules_of_rotors_are_scaled_as_stated(tmp_path: Path) -> None:
    """Two matchings share the week, so that no single one that stays is better: the model has the optimum."""
    problem = rotors.RotorNetwork(
        racks=pd.DataFrame({"rack": ["a", "b", "c"], "circuit_mbps": 100.0}),
        switches=pd.DataFrame({"count": [1.0], "day_us": [90.0], "night_us": [10.0], "week_us": [1_000.0]}),
        demands=pd.DataFrame(
            {
                "source_rack": list("abcacb"),
                "target_rack": list("bcacba"),
                "rate_mbps": [50.0] * 3 + [40.0] * 3,
            }
        ),
    )
    for name, upper in (("scheduled", 270.0), ("two_hop", None)):
        design = rotors.SYSTEM.design(name)
        proof = design.run(problem).proof
        assert upper is None or proof.objective == pytest.approx(upper)
        for path in export(rotors.SYSTEM, problem, design, tmp_path):
            _, metric, value = stated(path)
            assert metric == "delivered_mbps"
            assert value == pytest.approx(proof.objective, rel=1e-5)


def test_the_mean_completion_time_is_exported(tmp_path: Path) -> None:
    """One flow of 10 ms that arrives at 5 ms, after a set-up of 2 ms before: 10 ms."""
    problem = coflows.CoflowsInTime(
        racks=pd.DataFrame({"rack": ["a", "b"], "circuit_mbps": 1_000.0, "packet_mbps": 0.0}),
        coflows=pd.DataFrame({"coflow": ["c"], "arrival_ms": [5.0]}),
        flows=pd.DataFrame({"coflow": ["c"], "source_rack": ["a"], "target_rack": ["b"], "bytes": [1.25e6]}),
        switch=pd.DataFrame({"setup_ms": [2.0]}),
    )
    for path in export(coflows.SYSTEM, problem, coflows.SYSTEM.design("optimum"), tmp_path):
        assert stated(path)[1:] == ("mean_completion_ms", pytest.approx(10.0))


def test_a_model_of_circuits_alone_says_so_and_has_their_optimum(tmp_path: Path) -> None:
    """Two flows of 10 ms into one rack, one after the other with a set-up of 2 ms each: 12 and 24 ms."""
    problem = coflows.CoflowsInTime(
        racks=pd.DataFrame({"rack": ["a", "b", "c"], "circuit_mbps": 1_000.0, "packet_mbps": 900.0}),
        coflows=pd.DataFrame({"coflow": ["c", "d"], "arrival_ms": [2.0, 2.0]}),
        flows=pd.DataFrame(
            {
                "coflow": ["c", "d"],
                "source_rack": ["a", "b"],
                "target_rack": ["c", "c"],
                "bytes": [1.25e6] * 2,
            }
        ),
        switch=pd.DataFrame({"setup_ms": [2.0]}),
    )
    for path in export(coflows.SYSTEM, problem, coflows.SYSTEM.design("optimum"), tmp_path):
        about, metric, value = stated(path)
        assert metric == "mean_completion_ms"
        assert value == pytest.approx((10.0 + 22.0) / 2)  # the first set-up is over when the flows arrive
        text = re.sub(r"\s+", " ", about)
        assert "over circuits alone" in text
        assert "plans that use the packet switch may complete them sooner" in text


SCARCE = {
    "brokering": {"capacity_scale": 0.2},
    "contracts": {"scale": 50.0},
    "analytics": {"scale": 30.0},
    "fairshare": {"scale": 50.0},
    "topology": {"scale": 20.0},
}
"""Adjustments of a sample problem by which capacity is short."""


@pytest.mark.parametrize("name", SCARCE)
def test_the_stated_metric_is_that_of_the_plan_where_capacity_is_short(name: str, tmp_path: Path) -> None:
    system: System = importlib.import_module(f"planner_models.{name}").SYSTEM
    problem = system.problem.adjust(system.problem.sample(), **SCARCE[name])
    design = system.default_design
    decision = design.run(problem, options=Options(time_limit_s=20.0))
    assert decision.proof.status is Status.OPTIMAL
    figures = system.plan.measure(problem, decision.plan, None)
    for path in export(system, problem, design, tmp_path):
        _, metric, value = stated(path)
        assert value == pytest.approx(figures[metric], rel=1e-5)


def test_the_demand_scale_is_exported(tmp_path: Path) -> None:
    problem = topology.SYSTEM.problem.sample()
    design = topology.SYSTEM.design("optimum")
    scale = design.run(problem).proof.objective
    for path in export(topology.SYSTEM, problem, design, tmp_path):
        assert stated(path)[1:] == ("demand_scale", pytest.approx(scale, rel=1e-5))


def test_a_weighted_objective_names_no_metric(tmp_path: Path) -> None:
    """Delivered traffic less a part of the utilization, excess of tables, and overload are no metric."""
    for system, name, words in (
        (traffic.SYSTEM, "optimum", "less 0.5 times the largest link utilization"),
        (updates.SYSTEM, "batches", "the largest excess of any table in 3 batches"),
        (updates.SYSTEM, "congestion_free", "the largest overload of any link in 2 moves"),
    ):
        for path in export(system, system.problem.sample(), system.design(name), tmp_path):
            about, metric, _ = stated(path)
            assert not metric
            assert words in re.sub(r"\s+", " ", about)
