"""Programs of small coefficients have the right optimum, plan and dual values."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from planner import backends
from planner.backends.linear_program import Columns, LinearProgram, Rows
from planner.backends.row_scaling import find_factors, find_unit_factor, scale_amounts, scale_rows
from planner.contract.proof import Status
from planner.options import Options


def knapsack(unit: float, *, is_integer: bool) -> LinearProgram:
    """Return the program of items of 3, 4 and 5 units with values 4, 5 and 7, of which 8 units fit."""
    return LinearProgram.build(
        sense="max",
        cost=np.array([4.0, 5.0, 7.0]),
        rows=[Rows("weight", sp.csr_array(unit * np.array([[3.0, 4.0, 5.0]])), upper=8.0 * unit)],
        columns=[Columns("item", 3)],
        upper=1.0,
        integer=np.full(3, is_integer) if is_integer else None,
    )


@pytest.mark.parametrize("unit", [1e-12, 1e-9, 1e-6, 1.0])
def test_a_knapsack_of_small_items_holds_what_fits(unit: float) -> None:
    """Items of 3 and 5 units fill it: 11; all three, 16, would exceed it by half."""
    solution = backends.solve(knapsack(unit, is_integer=True), Options(threads=1))
    assert solution.status is Status.OPTIMAL
    assert solution.objective == pytest.approx(11.0)
    assert solution.x is not None
    assert solution.x.round().tolist() == [1.0, 0.0, 1.0]


@pytest.mark.parametrize("unit", [1e-12, 1e-9, 1e-6, 1.0])
def test_dual_values_are_of_the_program_that_was_given(unit: float) -> None:
    """Relaxed, the item of 4 units is not bought: 3 and 5 fill it, and a unit is worth 1.25 to 4 / 3."""
    model = knapsack(unit, is_integer=False)
    solution = backends.solve(model, Options(threads=1))
    assert solution.objective == pytest.approx(11.0)
    assert solution.row_duals is not None
    assert 1.25 - 1e-9 <= solution.row_duals[0] * unit <= 4 / 3 + 1e-9
    assert solution.reduced_costs == pytest.approx(model.cost - model.matrix.T @ solution.row_duals)


def test_rows_of_usual_magnitude_stay() -> None:
    assert find_factors(knapsack(1.0, is_integer=True)) is None
    small = knapsack(1e-6, is_integer=True)
    factors = find_factors(small)
    assert factors is not None
    scaled = scale_rows(small, factors)
    assert 1 <= scaled.matrix.max() < 2
    assert (scaled.matrix.toarray() / factors[:, None] == small.matrix.toarray()).all()
    assert scaled.row_upper / factors == small.row_upper


def diet(unit: float) -> LinearProgram:
    """Return min 2x + 3y with x + y >= 4 and x <= 3 units: 9 units, by 3 of x and 1 of y; and half a unit."""
    return LinearProgram.build(
        cost=np.array([2.0, 3.0]),
        rows=[Rows("need", sp.csr_array([[1.0, 1.0]]), lower=4.0 * unit)],
        columns=[Columns("food", 2)],
        upper=np.array([3.0 * unit, np.inf]),
        offset=0.5 * unit,
    )


@pytest.mark.parametrize("unit", [1e-12, 1e-9, 1e-6, 1e-3, 1.0, 1e6])
def test_a_program_of_small_amounts_is_solved_to_the_same_relative_precision(unit: float) -> None:
    solution = backends.solve(diet(unit), Options(threads=1))
    assert solution.status is Status.OPTIMAL
    assert solution.x is not None
    assert solution.x / unit == pytest.approx([3.0, 1.0], rel=1e-9)
    assert solution.objective == pytest.approx(9.5 * unit, rel=1e-9)
    assert solution.bound == pytest.approx(9.5 * unit, rel=1e-9)
    assert solution.row_duals == pytest.approx([3.0])
    assert solution.reduced_costs == pytest.approx([-1.0, 0.0])


def test_amounts_of_usual_magnitude_stay() -> None:
    assert find_unit_factor(diet(1.0)) == 1.0
    assert find_unit_factor(diet(1e-3)) == 1.0
    assert find_unit_factor(knapsack(1e-6, is_integer=True)) == 1.0
    factor = find_unit_factor(diet(1e-6))
    scaled = scale_amounts(diet(1e-6), factor)
    assert 1 <= scaled.row_lower[0] < 2
    assert scaled.row_lower[0] / factor == diet(1e-6).row_lower[0]
    assert scaled.upper[1] == np.inf
