"""Age, noise and granularity: neutral values change nothing, and the distributions are those documented."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.contract.degradation import add_noise, average_within, drift, round_up

VALUES = np.array([1.0, 2.0, 8.0, 0.0])


def test_neutral_degradation_returns_the_same_array() -> None:
    rng = np.random.default_rng(0)
    assert add_noise(VALUES, 0.0, None) is VALUES
    assert drift(VALUES, age=0.0, memory=1.0, spread=0.5, rng=rng) is VALUES
    assert drift(VALUES, age=9.0, memory=1.0, spread=0.0, rng=rng) is VALUES
    assert round_up(VALUES, 0.0) is VALUES


def test_noise_is_lognormal_with_median_one() -> None:
    measured = add_noise(np.ones(20_000), 0.5, np.random.default_rng(1))
    assert np.median(measured) == pytest.approx(1.0, rel=0.02)
    assert np.std(np.log(measured)) == pytest.approx(0.5, rel=0.02)


@pytest.mark.parametrize(("age", "memory"), [(1.0, 10.0), (10.0, 10.0), (1000.0, 10.0)])
def test_drift_has_the_variance_of_an_ornstein_uhlenbeck_process(age: float, memory: float) -> None:
    moved = drift(np.ones(20_000), age=age, memory=memory, spread=0.3, rng=np.random.default_rng(2))
    expected = 0.3 * math.sqrt(2 * (1 - math.exp(-age / memory)))
    assert np.std(np.log(moved)) == pytest.approx(expected, rel=0.03)


def test_amounts_are_rounded_up_to_whole_steps() -> None:
    assert round_up(np.array([0.0, 0.1, 5.0, 5.1]), 5.0).tolist() == [0.0, 5.0, 5.0, 10.0]


@given(
    st.lists(
        st.tuples(st.floats(0, 100), st.integers(0, 3), st.sampled_from((0.0, 0.5, 1.0, 4.0))),
        min_size=1,
        max_size=12,
    )
)
def test_averages_within_blocks_match_a_plain_loop(rows: list[tuple[float, int, float]]) -> None:
    values = np.array([row[0] for row in rows])
    block = np.unique([row[1] for row in rows], return_inverse=True)[1]
    weights = np.array([row[2] for row in rows])
    result = average_within(values, block, weights)
    for index in range(len(rows)):
        alike = [k for k in range(len(rows)) if block[k] == block[index]]
        total = sum(weights[k] for k in alike)
        plain = (
            sum(values[k] * weights[k] for k in alike) / total
            if total > 0
            else sum(values[k] for k in alike) / len(alike)
        )
        assert result[index] == pytest.approx(plain)
