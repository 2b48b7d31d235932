"""Signalling during a run, counted by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from planner.contract import control_loop
from planner.contract.signalling import Signalling
from planner.runs.evaluation import evaluate
from planner.scenarios.scenario import Entry
from planner_models.circuitflows import SYSTEM, FlowsInTime
from planner_models.circuitflows import information as signalling
from planner_models.circuitflows.designs import block_placement, execution, operation
from planner_models.circuitflows.designs.execution import Observation
from planner_models.circuitflows.plan import plan as plans
from planner_models.circuitflows.plan.metrics import replay
from planner_models.circuitflows.plan.plan import Operation, settings_table
from planner_models.circuitflows.problem import generators

WEEKLY = ("queues", "data_units")
FIXED = {"fixed", "packet_only", "resize_tuned"}


@pytest.fixture(scope="module")
def small() -> FlowsInTime:
    """Four racks for five weeks of 2 ms."""
    return generators.mixed(racks=4, rings=1, hosts=4, horizon_us=10_000.0, seed=3)


def fixed(problem: FlowsInTime, **parameters: Any) -> Operation:
    plan = operation.run_fixed_schedule(problem, **parameters).plan
    assert plan is not None
    return plan


# five weeks of four racks that report three others each
REPORTS = Signalling(messages=5 * 4, bytes=5 * 4 * 3 * (4 + 8))


def test_queues_are_reported_and_both_switches_get_each_week(small: FlowsInTime) -> None:
    """Two rings a week: two lengths, eight circuits with two ends each, twice."""
    plan = fixed(small, shifts=(1, 2))
    said = 2 * 5 * (2 * 8 + 8 * 2 * 4)
    expected = Signalling(messages=REPORTS.messages + 2 * 5, bytes=REPORTS.bytes + said)
    assert signalling.count_queue_reports(small, plan) == expected


def test_racks_that_resize_queues_get_their_circuits(small: FlowsInTime) -> None:
    """A message for each rack and week, and for each circuit whereto, from when and how long."""
    plain, resized = fixed(small, shifts=(1, 2)), fixed(small, shifts=(1, 2), large_packets=64, early_us=0.0)
    before, after = (
        signalling.count_queue_reports(small, plain),
        signalling.count_queue_reports(small, resized),
    )
    assert after.messages - before.messages == 5 * 4
    assert after.bytes - before.bytes == 5 * 8 * (4 + 8 + 8)


def test_a_week_without_days_is_not_signalled(small: FlowsInTime) -> None:
    plan = fixed(small)
    first = plan.configurations[plan.configurations["day"] == 1]
    item = replace(plan, configurations=first)
    assert signalling.count_queue_reports(small, item).messages == REPORTS.messages + 2
    none = replace(plan, configurations=first.iloc[:0])
    assert signalling.count_queue_reports(small, none) == REPORTS


def test_a_week_begun_late_counts_once(small: FlowsInTime) -> None:
    """Weeks that computing delays begin within the week and may end in the next one."""
    plan = operation.run_on_queue_lengths(small, computing_us=500.0).plan
    assert plan is not None
    starts = plan.configurations["start_us"] - 20.0 - 500.0
    weeks = len(np.unique(np.floor(starts / 2_000.0)))
    assert signalling.count_queue_reports(small, plan).messages == REPORTS.messages + 2 * weeks


def test_flows_are_reported_when_handed_over_and_closed(small: FlowsInTime) -> None:
    plan = fixed(small)
    told, queues = (
        signalling.count_application_reports(small, plan),
        signalling.count_queue_reports(small, plan),
    )
    ended = int((~np.isnan(replay(small, plan).taken_us)).sum())
    assert 0 < ended < len(small.flows)
    assert told.messages - queues.messages == len(small.flows) + ended
    assert told.bytes - queues.bytes == 16 * len(small.flows) + 8 * ended


def test_flows_that_wait_for_others_are_reported_only_once_they_start() -> None:
    writes = generators.dfsio(racks=3, writers=1, file_mb=40.0, block_mb=10.0, horizon_us=10_000.0)
    plan = fixed(writes)
    taken = replay(writes, plan).taken_us
    ended = int((~np.isnan(taken)).sum())
    assert 0 < ended < len(writes.flows)
    hosts = (
        signalling.count_application_reports(writes, plan).messages
        - signalling.count_queue_reports(writes, plan).messages
    )
    # of each of three writers' four blocks, those that ended and the one after
    assert ended < hosts - ended <= ended + 3


@pytest.mark.parametrize("name", [design.name for design in SYSTEM.designs if design.name != "resize_tuned"])
def test_every_design_declares_its_signalling(small: FlowsInTime, name: str) -> None:
    run = evaluate(SYSTEM, small, Entry(label=name, design=SYSTEM.design(name)))
    alone = name in ("fixed", "packet_only")
    assert (run.metrics["messages"] == 0) == (run.metrics["signalling_bytes"] == 0) == alone


@pytest.fixture(scope="module")
def small_of_observe() -> FlowsInTime:
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


def test_an_exact_observation_is_the_problem_itself(small_of_observe: FlowsInTime) -> None:
    assert signalling.observe_reports(small_of_observe, seed=5) is small_of_observe
    assert run_design(small_of_observe, "data_units").omniscient


def test_designs_that_schedule_on_reports_can_have_degraded_ones() -> None:
    degradations = {degradation.parameter for degradation in SYSTEM.studies.coordination.degradations}  # type: ignore[union-attr]
    assert degradations == {"age_us", "noise", "granularity_bytes"}
    assert {
        design.name for design in SYSTEM.designs if design.observe is not signalling.observe_reports
    } == FIXED


def test_degraded_reports_change_nothing_else(small_of_observe: FlowsInTime) -> None:
    observed = signalling.observe_reports(
        small_of_observe, age_us=100.0, noise=0.5, granularity_bytes=9_000.0, seed=2
    )
    for name, frame in small_of_observe.to_tables().items():
        pd.testing.assert_frame_equal(frame, observed.to_tables()[name])
    assert run_design(small_of_observe, "fixed").metrics == evaluate(
        SYSTEM, observed, Entry(label="fixed", design=SYSTEM.design("fixed"))
    ).metrics  # fmt: skip


@pytest.mark.parametrize("weeks", [1, 2, 5])
def test_reports_that_take_weeks_are_those_of_weeks_ago(small_of_observe: FlowsInTime, weeks: int) -> None:
    now, late = (
        watched(small_of_observe),
        watched(signalling.observe_reports(small_of_observe, age_us=weeks * 2_000.0)),
    )
    assert len(now) == len(late) == 15
    for week in range(15):
        if week < weeks:
            assert not late[week].queued_bits.any()
            assert not late[week].pending_bits.any()
        else:
            assert same(late[week], now[week - weeks])


def test_reports_within_a_week_are_of_that_time(small_of_observe: FlowsInTime) -> None:
    """About half a week late: the state in the middle of the last week, at no instant of an event."""
    late = watched(signalling.observe_reports(small_of_observe, age_us=1_000.037))
    middles: list[Observation] = []
    days = operation.ring_days(small_of_observe, (1,))
    data = execution.Datacenter(
        small_of_observe, plans.build_idle_network(
            small_of_observe, target=small_of_observe.target, queue_packets=16, largest=16,
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


def test_noise_and_granularity_apply_to_the_amounts(small_of_observe: FlowsInTime) -> None:
    exact = watched(small_of_observe)
    noisy = watched(signalling.observe_reports(small_of_observe, noise=0.5, seed=1))
    ratios = []
    for item, other in zip(exact, noisy, strict=True):
        there = item.pending_bits > 0
        assert ((other.pending_bits > 0) == there).all()
        ratios += np.log(other.pending_bits[there] / item.pending_bits[there]).tolist()
    assert np.std(ratios) == pytest.approx(0.5, rel=0.2)
    assert np.median(ratios) == pytest.approx(0.0, abs=0.2)
    coarse = watched(signalling.observe_reports(small_of_observe, granularity_bytes=1e5))
    for item, other in zip(exact, coarse, strict=True):
        steps = other.pending_bits / 8e5
        np.testing.assert_allclose(steps, np.round(steps))
        assert (other.pending_bits >= item.pending_bits).all()
        assert (other.pending_bits < item.pending_bits + 8e5).all()
        assert ((other.queued_bits > 0) == (item.queued_bits > 0)).all()


@pytest.mark.parametrize("how", [{"age_us": 3_000.0}, {"noise": 1.0}, {"granularity_bytes": 1e6}], ids=str)
@pytest.mark.parametrize("name", WEEKLY)
def test_plans_on_bad_reports_are_operations_in_truth(
    small_of_observe: FlowsInTime, name: str, how: dict[str, float]
) -> None:
    """The engine replays the plan, and refuses it where it delivers anything else than in the run."""
    run = run_design(small_of_observe, name, **how, seed=1)
    assert not run.omniscient
    assert not len(run.violations)
    assert run.metrics["delivered_gb"] == run.decision.proof.objective
    again = run_design(small_of_observe, name, **how, seed=1)
    pd.testing.assert_frame_equal(run.plan.configurations, again.plan.configurations)


def test_another_seed_gives_another_noise(small_of_observe: FlowsInTime) -> None:
    first, second = (
        run_design(small_of_observe, "data_units", noise=1.0, seed=seed).plan.configurations
        for seed in (1, 2)
    )
    assert not first.equals(second)


def test_nothing_is_observed_before_the_first_report(small_of_observe: FlowsInTime) -> None:
    late = run_design(small_of_observe, "data_units", age_us=10_000.0)
    assert late.plan.configurations["start_us"].min() == 10_020.0
    never = run_design(small_of_observe, "data_units", age_us=40_000.0)
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


def test_the_horizon_of_a_problem_changes_and_its_reports_stay(small_of_observe: FlowsInTime) -> None:
    late = signalling.observe_reports(small_of_observe, age_us=5.0)
    assert replace(late, network=late.network.assign(horizon_us=4_000.0)).reports.age_us == 5.0
