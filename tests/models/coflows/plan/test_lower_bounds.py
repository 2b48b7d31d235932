"""Lower bounds against plain twins of what they count."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner_models.coflows.plan.lower_bounds import alone_ms, mean_busy_times, mean_completion_bound_ms
from tests.models.coflows.instances import problem_of


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(1, 10), st.integers(1, 5)), min_size=1, max_size=6))
def test_mean_busy_times_are_those_of_a_machine_in_small_steps(jobs: list[tuple[int, int, int]]) -> None:
    jobs = sorted(jobs)
    arrival, time, weight = (np.array(column, dtype=float) for column in zip(*jobs, strict=True))
    remaining, when = time.copy(), np.zeros(len(jobs))
    for step in range(200):  # all times are whole
        there = np.flatnonzero((arrival <= step) & (remaining > 0))
        if len(there):
            item = there[np.lexsort((there, -(weight / time)[there]))][0]
            remaining[item] -= 1
            when[item] += step + 0.5
    result = mean_busy_times(np.array([0, len(jobs)]), arrival, time, weight)
    assert result == pytest.approx(when / time)


def test_a_coflow_alone_needs_its_busiest_port_with_setups() -> None:
    flows = [("one", "a", "b", 10.0), ("one", "a", "c", 10.0), ("one", "a", "d", 10.0)]
    problem = problem_of({"one": 0.0}, flows)
    assert alone_ms(problem, "circuits").tolist() == [50.0]  # the first circuit may be up before
    assert alone_ms(problem, "packets").tolist() == [30.0]
    assert alone_ms(problem, "all").tolist() == [15.0]
    two = problem.with_switch(circuit_switches=2)
    assert alone_ms(two, "circuits").tolist() == [20.0]
    only = problem_of({"one": 0.0}, flows, packet_mbps=0.0)
    assert alone_ms(only).tolist() == [50.0]


def test_equal_weights_change_no_bound_and_a_larger_one_counts_more() -> None:
    flows = [("one", "a", "b", 10.0), ("two", "a", "b", 30.0)]
    plain = mean_completion_bound_ms(problem_of({"one": 0.0, "two": 0.0}, flows), "packets")
    equal = problem_of({"one": 0.0, "two": 0.0}, flows, weight=[4.0, 4.0])
    assert mean_completion_bound_ms(equal, "packets") == pytest.approx(plain)
    heavy = problem_of({"one": 0.0, "two": 0.0}, flows, weight=[1.0, 9.0])
    # the long one first, for 9/30 is more than 1/10: (1 * 40 + 9 * 30) / 10
    assert mean_completion_bound_ms(heavy, "packets") == pytest.approx(31.0)
