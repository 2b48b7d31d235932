"""Completion times of coflows: by hand, and against time in small steps."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from planner_models.circuits import Circuits, Schedule, measure
from planner_models.circuits.designs import eclipse
from planner_models.circuits.plan import metrics
from planner_models.circuits.plan.check import derive_carried
from planner_models.circuits.problem import generators


def with_coflows(problem: Circuits, names: list[str], shares: list[float]) -> Circuits:
    """Every demand is made of the same coflows, each with its share."""
    demands = problem.demands
    parts = [
        demands.assign(coflow=name, bits=demands["bits"] * share)
        for name, share in zip(names, shares, strict=True)
    ]
    return replace(problem, coflows=pd.concat(parts, ignore_index=True))


def test_two_coflows_of_one_pair_by_hand() -> None:
    """A day from 10 to 60 us at 10 bits/us, and packets 200 bits in 200 us from the start."""
    bits = np.array([[0.0, 700.0], [0.0, 0.0]])
    problem = Circuits.from_matrix(bits, circuit_mbps=10.0, packet_mbps=1.0, night_us=10.0, window_us=300.0)
    problem = with_coflows(problem, ["first", "second"], [0.5, 0.5])
    plan = Schedule(
        configurations=pd.DataFrame(
            {
                "day": [1],
                "start_us": [10.0],
                "duration_us": [50.0],
                "source_rack": ["r0"],
                "target_rack": ["r1"],
            }
        ),
        packet=pd.DataFrame({"source_rack": ["r0"], "target_rack": ["r1"], "bits": [200.0]}),
    )
    ends = metrics.completion_times_us(problem, plan)
    # 350 bits: 10 by packets until 10 us, then 11 bits/us
    assert ends["first"] == pytest.approx(10 + 340 / 11)
    assert ends["second"] == pytest.approx(200)  # 500 by the circuit until 60 us, the last packet at 200
    measured = measure(problem, plan, None)
    assert measured["coflow_mean_us"] == pytest.approx((10 + 340 / 11 + 200) / 2)


def test_a_coflow_that_is_not_served_has_no_end() -> None:
    problem = with_coflows(generators.rings(racks=4, load=2.0), ["a", "b"], [0.1, 0.9])
    plan = eclipse.schedule(problem).plan
    assert plan is not None
    ends = metrics.completion_times_us(problem, plan)
    assert np.isfinite(ends["a"])
    assert np.isnan(ends["b"])
    assert measure(problem, plan, None)["coflow_mean_us"] is None


@pytest.mark.parametrize("seed", range(3))
def test_completions_are_those_of_time_in_small_steps(seed: int) -> None:
    problem = generators.skewed(racks=5, large=1, small=2, window_us=400.0, seed=seed, bounded=False)
    problem = with_coflows(problem, ["a", "b", "c"], [0.2, 0.3, 0.5])
    plan = eclipse.schedule(problem).plan
    assert plan is not None
    carried = derive_carried(problem, plan)
    busiest = np.maximum(carried.packet_bits.sum(axis=0), carried.packet_bits.sum(axis=1))
    packets_us = float((busiest / problem.packet_mbps).max())
    last = max(packets_us, float(carried.end_us.max()))
    step, served, used = 0.5, np.zeros_like(problem.bits), np.zeros_like(problem.bits)
    ends = dict.fromkeys("abc", 0.0)
    passed = dict(zip("abc", np.cumsum([0.2, 0.3, 0.5]), strict=True))
    for now in np.arange(0.0, last, step):
        for day in plan.configurations.itertuples():
            if day.start_us <= now < day.start_us + day.duration_us:
                i, j = (int(problem.places.get_loc(rack)) for rack in (day.source_rack, day.target_rack))
                used[i, j] = min(carried.circuit_bits[i, j], used[i, j] + step * problem.circuit_mbps[i, j])
        served = used + carried.packet_bits * min(1.0, (now + step) / packets_us)
        for name, share in passed.items():
            if (served < share * problem.bits * (1 - 1e-6)).any():
                ends[name] = now + step
    result = metrics.completion_times_us(problem, plan)
    for name, end in ends.items():
        assert result[name] == pytest.approx(end, abs=1.5)
