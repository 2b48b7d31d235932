"""Signalling during a run, counted by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from planner.contract.signalling import Signalling
from planner.runs.evaluation import evaluate
from planner.scenarios.scenario import Entry
from planner_models.circuitflows import SYSTEM, FlowsInTime
from planner_models.circuitflows.designs import operation
from planner_models.circuitflows.information import signalling
from planner_models.circuitflows.plan.metrics import replay
from planner_models.circuitflows.plan.plan import Operation
from planner_models.circuitflows.problem import generators


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
