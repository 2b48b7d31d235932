"""Observations in old, noisy or coarse reports, and the runs under them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from planner.contract import control_loop
from planner.runs.evaluation import evaluate
from planner.scenarios.scenario import Entry
from planner_models.circuitflows import SYSTEM, FlowsInTime
from planner_models.circuitflows.designs import block_placement, execution, operation
from planner_models.circuitflows.designs.execution import Observation
from planner_models.circuitflows.information import observe
from planner_models.circuitflows.plan import plan as plans
from planner_models.circuitflows.plan.plan import settings_table
from planner_models.circuitflows.problem import generators

WEEKLY = ("queues", "data_units")
FIXED = {"fixed", "packet_only", "resize_tuned"}


@pytest.fixture(scope="module")
def small() -> FlowsInTime:
    """Four racks for fifteen weeks of 2 ms."""
    return generators.mixed(racks=4, rings=1, hosts=4, horizon_us=30_000.0, seed=3)


def watched(problem: FlowsInTime) -> list[Observation]:
    """Return the observations of a scheduler that plans the same week on all of them."""
    seen: list[Observation] = []
    days = operation.ring_days(problem, (1,))

    def watch(now: Observation) -> Any:
        seen.append(now)
        return days

    execution.run(
        problem,
        placement=block_placement.place_randomly(problem, seed=0),
        week=watch,
        settings=settings_table(queue_packets=16),
    )
    return seen


def run_design(problem: FlowsInTime, name: str, **how: Any) -> Any:
    return evaluate(SYSTEM, problem, Entry(label=name, design=SYSTEM.design(name), information=how))


def same(item: Observation, other: Observation) -> bool:
    return bool(
        (item.queued_bits == other.queued_bits).all() and (item.pending_bits == other.pending_bits).all()
    )


def test_an_exact_observation_is_the_problem_itself(small: FlowsInTime) -> None:
    assert observe.observe_reports(small, seed=5) is small
    assert run_design(small, "data_units").omniscient


def test_designs_that_schedule_on_reports_can_have_degraded_ones() -> None:
    degradations = {degradation.parameter for degradation in SYSTEM.studies.coordination.degradations}  # type: ignore[union-attr]
    assert degradations == {"age_us", "noise", "granularity_bytes"}
    assert {
        design.name for design in SYSTEM.designs if design.observe is not observe.observe_reports
    } == FIXED


def test_degraded_reports_change_nothing_else(small: FlowsInTime) -> None:
    observed = observe.observe_reports(small, age_us=100.0, noise=0.5, granularity_bytes=9_000.0, seed=2)
    for name, frame in small.to_tables().items():
        pd.testing.assert_frame_equal(frame, observed.to_tables()[name])
    assert run_design(small, "fixed").metrics == evaluate(
        SYSTEM, observed, Entry(label="fixed", design=SYSTEM.design("fixed"))
    ).metrics  # fmt: skip


@pytest.mark.parametrize("weeks", [1, 2, 5])
def test_reports_that_take_weeks_are_those_of_weeks_ago(small: FlowsInTime, weeks: int) -> None:
    now, late = watched(small), watched(observe.observe_reports(small, age_us=weeks * 2_000.0))
    assert len(now) == len(late) == 15
    for week in range(15):
        if week < weeks:
            assert not late[week].queued_bits.any()
            assert not late[week].pending_bits.any()
        else:
            assert same(late[week], now[week - weeks])


def test_reports_within_a_week_are_of_that_time(small: FlowsInTime) -> None:
    """About half a week late: the state in the middle of the last week, at no instant of an event."""
    late = watched(observe.observe_reports(small, age_us=1_000.037))
    middles: list[Observation] = []
    days = operation.ring_days(small, (1,))
    data = execution.Datacenter(
        small, plans.build_idle_network(
            small, target=small.target, queue_packets=16, largest=16,
            hosts=plans.HostSettings(), packet_mbps=None,
        ), None,
    )  # fmt: skip
    for week in range(15):  # times as the loop makes them, of whole nanoseconds
        data.advance(week * 2_000_000 / control_loop.TICKS_PER_S)
        data.apply(days)
        data.advance((week * 2_000_000 + 999_963) / control_loop.TICKS_PER_S)
        middles.append(data.observe())
    assert not late[0].pending_bits.any()
    for week in range(1, 15):
        assert same(late[week], middles[week - 1])


def test_noise_and_granularity_apply_to_the_amounts(small: FlowsInTime) -> None:
    exact = watched(small)
    noisy = watched(observe.observe_reports(small, noise=0.5, seed=1))
    ratios = []
    for item, other in zip(exact, noisy, strict=True):
        there = item.pending_bits > 0
        assert ((other.pending_bits > 0) == there).all()
        ratios += np.log(other.pending_bits[there] / item.pending_bits[there]).tolist()
    assert np.std(ratios) == pytest.approx(0.5, rel=0.2)
    assert np.median(ratios) == pytest.approx(0.0, abs=0.2)
    coarse = watched(observe.observe_reports(small, granularity_bytes=1e5))
    for item, other in zip(exact, coarse, strict=True):
        steps = other.pending_bits / 8e5
        np.testing.assert_allclose(steps, np.round(steps))
        assert (other.pending_bits >= item.pending_bits).all()
        assert (other.pending_bits < item.pending_bits + 8e5).all()
        assert ((other.queued_bits > 0) == (item.queued_bits > 0)).all()


@pytest.mark.parametrize("how", [{"age_us": 3_000.0}, {"noise": 1.0}, {"granularity_bytes": 1e6}], ids=str)
@pytest.mark.parametrize("name", WEEKLY)
def test_plans_on_bad_reports_are_operations_in_truth(
    small: FlowsInTime, name: str, how: dict[str, float]
) -> None:
    """The engine replays the plan, and refuses it where it delivers anything else than in the run."""
    run = run_design(small, name, **how, seed=1)
    assert not run.omniscient
    assert not len(run.violations)
    assert run.metrics["delivered_gb"] == run.decision.proof.objective
    again = run_design(small, name, **how, seed=1)
    pd.testing.assert_frame_equal(run.plan.configurations, again.plan.configurations)


def test_another_seed_gives_another_noise(small: FlowsInTime) -> None:
    first, second = (
        run_design(small, "data_units", noise=1.0, seed=seed).plan.configurations for seed in (1, 2)
    )
    assert not first.equals(second)


def test_nothing_is_observed_before_the_first_report(small: FlowsInTime) -> None:
    late = run_design(small, "data_units", age_us=10_000.0)
    assert late.plan.configurations["start_us"].min() == 10_020.0
    never = run_design(small, "data_units", age_us=40_000.0)
    assert never.plan.configurations.empty


@pytest.mark.slow
def test_steps_larger_than_big_flows_hide_which_are_big() -> None:
    """Every pair then looks as if it needed a circuit: a scheduler is no better than on queues."""
    problem = generators.mixed(rings=1, horizon_us=30_000.0, seed=3)
    exact = run_design(problem, "data_units").metrics
    coarse = run_design(problem, "data_units", granularity_bytes=2e7).metrics
    queues = run_design(problem, "queues").metrics
    assert coarse["configurations"] > 1.5 * exact["configurations"]
    assert coarse["delivered_gb"] < 0.8 * exact["delivered_gb"]
    assert coarse["delivered_gb"] == pytest.approx(queues["delivered_gb"], rel=0.15)


def test_the_horizon_of_a_problem_changes_and_its_reports_stay(small: FlowsInTime) -> None:
    late = observe.observe_reports(small, age_us=5.0)
    assert replace(late, network=late.network.assign(horizon_us=4_000.0)).reports.age_us == 5.0
