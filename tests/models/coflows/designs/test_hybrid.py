"""Circuits and the packet switch together."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

from planner_models.coflows import CoflowsInTime
from planner_models.coflows.designs import hybrid, sebf, sunflow
from planner_models.coflows.plan.check import check
from planner_models.coflows.plan.completion import replay
from planner_models.coflows.plan.lower_bounds import mean_completion_bound_ms
from planner_models.coflows.problem.generators import mapreduce
from tests.models.coflows.instances import problem_of, problems


@pytest.mark.slow
@settings(max_examples=10, deadline=None)
@given(problems())
def test_both_parts_carry_all_within_limits_and_beat_no_bound(problem: CoflowsInTime) -> None:
    decision = hybrid.schedule(problem)
    assert decision.plan is not None
    assert not len(check(problem, decision.plan))
    completion = replay(problem, decision.plan)
    assert completion.circuit_bits + completion.packet_bits == pytest.approx(problem.bits, rel=1e-6)
    bound = mean_completion_bound_ms(problem)
    assert bound is not None
    assert bound <= completion.coflow_ms.mean() * (1 + 1e-6)


def test_one_flow_is_divided_so_that_both_parts_end_together() -> None:
    """100 ms on a link, a set-up of 10 ms: 55 ms of packets, and 45 ms of a circuit from 10 ms on."""
    problem = problem_of({"one": 0.0}, [("one", "a", "b", 100.0)])
    plan = hybrid.schedule(problem).plan
    assert plan is not None
    assert hybrid.divide(problem, 8) == pytest.approx([0.55])
    assert replay(problem, plan).coflow_ms == pytest.approx([55.0])
    assert plan.circuits[["start_ms", "end_ms"]].to_numpy()[0] == pytest.approx([10.0, 55.0])


def test_small_flows_go_by_packets_and_without_links_all_go_by_circuits() -> None:
    flows = [("one", "a", "b", 100.0), ("one", "a", "c", 2.0), ("one", "d", "b", 2.0)]
    share = hybrid.divide(problem_of({"one": 0.0}, flows), 8)
    assert share[1:].tolist() == [1.0, 1.0]
    assert 0 < share[0] < 1
    alone = problem_of({"one": 0.0}, flows, packet_mbps=0.0)
    assert not hybrid.divide(alone, 8).any()
    plans = [design(alone).plan for design in (hybrid.schedule, sunflow.schedule)]
    assert plans[0].circuits.equals(plans[1].circuits)


@pytest.mark.parametrize("packet_mbps", [100.0, 1_000.0])
def test_two_switches_are_faster_than_either(packet_mbps: float) -> None:
    problem = mapreduce(racks=8, coflows=20, seed=1, packet_mbps=packet_mbps)
    both, *single = (
        design(problem).proof.objective for design in (hybrid.schedule, sunflow.schedule, sebf.schedule)
    )
    assert both is not None
    assert both < np.min(single)
