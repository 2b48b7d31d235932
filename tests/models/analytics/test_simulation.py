"""The simulation against the plan as measured, the queues replayed, and its reaction to lost bandwidth."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from planner.contract.simulation import SimulationResult
from planner.options import Options
from planner_models.analytics import SYSTEM, Analytics, measure
from planner_models.analytics.information import observe_bandwidth
from planner_models.analytics.plan.answers import find_loads, replay_queues
from planner_models.analytics.problem.generated_queries import latency_histogram
from planner_models.analytics.problem.generators import diurnal, small
from planner_models.analytics.simulation import Applied, QueueExecution, simulate_sites, vary
from tests.models.analytics.problems import make

EXACT = {"bandwidth_variation": 0.0, "volume_variation": 0.0}


def simulate(problem: Analytics, design: str, **parameters: Any) -> SimulationResult:
    return simulate_sites(
        problem,
        design=SYSTEM.design(design),
        information=parameters.pop("information", {}),
        decision_parameters={},
        options=Options(threads=1),
        **parameters,
    )


@pytest.mark.parametrize("design", ["adaptive_policy", "local_values", "static_policy"])
def test_a_plan_that_is_replayed_without_variation_is_as_decided(design: str) -> None:
    problem = diurnal(sites=5, pops=2, queries=4, hours=0.5, seed=2)
    plan = SYSTEM.design(design).run(problem).plan
    assert plan is not None
    simulation = simulate(problem, design, decides="once", **EXACT)
    assert simulation.metrics == pytest.approx(measure(problem, plan, None))
    assert simulation.rounds["outcome"].tolist() == ["applied"]


def test_queues_in_time_are_those_of_a_replay() -> None:
    problem = diurnal(sites=5, pops=2, queries=4, hours=0.5, bandwidth=0.3, seed=2)
    shape = (len(problem.site_names), len(problem.query_names))
    execution = QueueExecution(problem, problem, np.zeros(shape, dtype=np.int64))
    for time_s in (10.0, 250.0, 700.0, 1_800.0):
        execution.advance(time_s)
    assert (execution.chosen == 0).all()
    backlog = replay_queues(problem, find_loads(problem, execution.chosen)).backlog
    assert execution.record()["queues"]["backlog_gb"].to_numpy() == pytest.approx(backlog / 1e9)
    assert backlog[-1] > 0


def test_levels_are_in_force_from_the_next_interval_on() -> None:
    problem = make(sites=1, intervals=3)
    execution = QueueExecution(problem, problem, np.full((1, 1), 2))
    decision = SYSTEM.designs[0].run(problem)
    execution.advance(70.0)
    execution.apply(Applied(np.zeros((1, 1), dtype=np.int64), decision))
    execution.advance(180.0)
    assert execution.chosen[:, 0, 0].tolist() == [2, 2, 0]


def test_a_controller_measures_the_last_interval_and_what_waits() -> None:
    problem = make(sites=1, intervals=3, uplink_mbps=1e-4)  # 750 bytes a minute, of 1,600
    execution = QueueExecution(problem, problem, np.zeros((1, 1), dtype=np.int64))
    execution.advance(60.0)
    measured = execution.observe()
    assert measured.interval_numbers.tolist() == [1.0]
    assert measured.capacity_bytes[0, 0] == pytest.approx(375.0)  # half of it is for what waits
    assert measured.capacity_bytes[0, 1] == problem.capacity_bytes[0, 1]


def test_variation_has_mean_one_and_keeps_cells_within_records() -> None:
    problem = diurnal(sites=30, pops=3, queries=2, hours=6.0, seed=2)
    varied = vary(problem, bandwidth_variation=0.3, volume_variation=0.2, rng=np.random.default_rng(1))
    factor = varied.capacity_mbps / problem.capacity_mbps
    assert factor.mean() == pytest.approx(1.0, abs=0.1)
    assert np.log(factor).std() == pytest.approx(0.3, abs=0.05)
    assert (varied.cells <= varied.records * (1 + 1e-9)).all()


@pytest.mark.slow
def test_answers_stay_fresh_within_seconds_as_bandwidth_halves() -> None:
    """Adaptation each second keeps delays within seconds; without it, data falls ever further behind."""
    problem = latency_histogram(
        sites=4, pops=1, hours=1 / 60, interval_minutes=1 / 60, bandwidth=1.0, variation=0.0
    )
    problem = replace(problem, queries=problem.queries.assign(deadline_s=10.0))
    capacity = problem.capacity_mbps.copy()
    capacity[30:] /= 2
    problem = problem.with_capacity(capacity)
    adaptive = simulate(problem, "adaptive_policy", **EXACT)
    fixed = simulate(problem, "backhaul_all", **EXACT)
    late = adaptive.tables["intervals"]["freshness_s"]
    assert late.max() < 5
    assert adaptive.metrics["late_loss"] == 0
    assert (fixed.metrics["freshness_p99_s"] or 0) > 10


@pytest.mark.slow
@pytest.mark.parametrize("design", [design.name for design in SYSTEM.designs])
def test_no_design_in_time_has_more_value_than_is_offered(design: str) -> None:
    has_errors = SYSTEM.design(design).observe is observe_bandwidth
    information = {"noise": 0.2, "seed": 1} if has_errors else {}
    simulation = simulate(small(), design, bandwidth_variation=0.4, link_s=30.0, information=information)
    assert 0 <= (simulation.metrics["value"] or 0) <= (simulation.metrics["offered_value"] or 0)
    assert len(simulation.tables["intervals"]) == 3
