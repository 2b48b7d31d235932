"""Rounded rows keep every whole point that keeps the row."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner_models.capacity.designs.network_design.cutsets import round_row


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.sampled_from([1.0, 2.0, 3.0, 4.0, 6.0, 7.5]), min_size=1, max_size=3),
    st.floats(0.1, 20.0),
    st.lists(st.floats(0.0, 3.0), min_size=3, max_size=3),
)
def test_no_whole_point_is_cut_off(sizes: list[float], limit: float, point: list[float]) -> None:
    coefficients = np.array(sizes)
    row, rhs = round_row(coefficients, limit, np.array(point[: len(sizes)]))
    upper = [int(np.ceil(limit / size)) for size in sizes]
    for counts in itertools.product(*[range(n + 1) for n in upper]):
        if float(np.dot(counts, coefficients)) >= limit - 1e-9:
            assert float(np.dot(counts, row)) >= rhs - 1e-6


def test_sizes_that_divide_each_other_are_rounded_again() -> None:
    """1 x + 4 y >= 2.5 rounds to x + 4 y >= 3, and that by 4 to x / 3 + y >= 1."""
    row, rhs = round_row(np.array([1.0, 4.0]), 2.5, np.array([0.0, 0.75]))
    assert row / rhs == pytest.approx([1 / 3, 1.0])


def test_rows_keep_small_coefficients_beside_large_ones() -> None:
    """Solvers drop coefficients of 1e-9: scaled by its largest one, 2e5, this row would lose its first."""
    row, rhs = round_row(np.array([1e-6, 2e5]), 2e5 - 0.5, np.array([1e6, 1.0]))
    assert row.min() >= 1e-7
    for point in ([5e5, 1.0], [0.0, 1.0], [1e6, 1.0]):
        assert float(row @ np.array(point)) >= rhs * (1 - 1e-12)
