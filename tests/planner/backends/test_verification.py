"""The independent check: right answers pass, wrong ones are refused."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from planner.backends import highs
from planner.backends.linear_program import LinearProgram, Rows
from planner.backends.verification import OPTIMALITY_GAP, judge, verify
from planner.contract.proof import Status, relative_gap
from planner.options import Options

INF = np.inf


def diet(sense: str = "min") -> LinearProgram:
    """min 2x + 3y, x + y >= 4, x <= 3: x = 3, y = 1, objective 9; or its mirror image."""
    sign = 1.0 if sense == "min" else -1.0
    return LinearProgram.build(
        sense="min" if sense == "min" else "max",
        cost=[2.0 * sign, 3.0 * sign],
        rows=[Rows("need", sp.csr_array([[1.0, 1.0]]), lower=4.0)],
        upper=[3.0, INF],
    )


@pytest.mark.parametrize(("sense", "sign"), [("min", 1.0), ("max", -1.0)])
def test_right_values_prove_the_optimum(sense: str, sign: float) -> None:
    verified = verify(diet(sense), np.array([3.0, 1.0]), np.array([3.0 * sign]))
    assert verified.primal == 0.0
    assert verified.bound == pytest.approx(9.0 * sign)
    assert verified.proves(9.0 * sign, gap=None)


@pytest.mark.parametrize("sense", ["min", "max"])
@pytest.mark.parametrize("wrong", [0.0, 2.0, 3.1, 30.0, -3.0, 1e9])
def test_wrong_duals_prove_less_and_never_more(sense: str, wrong: float) -> None:
    sign = 1.0 if sense == "min" else -1.0
    verified = verify(diet(sense), np.array([3.0, 1.0]), np.array([wrong * sign]))
    assert not verified.proves(9.0 * sign, gap=None)
    if verified.bound is not None:
        assert sign * verified.bound <= 9.0 + 1e-9


@pytest.mark.parametrize("junk", [np.nan, INF])
def test_values_that_are_not_finite_prove_nothing(junk: float) -> None:
    assert verify(diet(), np.array([3.0, 1.0]), np.array([junk])).bound is None
    assert not verify(diet(), np.array([junk, 1.0]), np.array([3.0])).feasible


def test_a_point_that_violates_a_row_is_not_feasible() -> None:
    verified = verify(diet(), np.array([3.0, 0.9]), np.array([3.0]))
    assert verified.primal == pytest.approx(0.025)  # of 4
    assert not verified.feasible
    assert not verified.proves(8.7, gap=0.1)


@pytest.mark.parametrize("unit", [1e-9, 1e-6, 1.0, 1e6])
def test_a_violation_is_relative_to_the_amounts_of_the_program(unit: float) -> None:
    """min 2x + 3y, x + y >= 4 units, x <= 3 units: y may miss a millionth, and not a hundredth."""
    model = LinearProgram.build(
        cost=[2.0, 3.0],
        rows=[Rows("need", sp.csr_array([[1.0, 1.0]]), lower=4.0 * unit)],
        upper=[3.0 * unit, INF],
    )
    right, duals = np.array([3.0, 1.0]) * unit, np.array([3.0])
    assert verify(model, right, duals).feasible
    assert verify(model, right * (1 - 5e-7), duals).feasible
    wrong = verify(model, np.array([3.0, 0.96]) * unit, duals)
    assert wrong.primal == pytest.approx(0.01)
    assert not wrong.feasible
    assert not verify(model, np.array([3.03, 1.0]) * unit, duals).feasible
    assert not verify(model, np.array([3.0, -0.04]) * unit, duals).feasible


@pytest.mark.parametrize("unit", [1e-9, 1e-6, 1.0])
def test_a_gap_of_a_small_objective_is_no_rounding(unit: float) -> None:
    """min x, x >= 1 unit: a plan of 1.001 units is not proven optimal, whatever the unit."""
    model = LinearProgram.build(cost=[1.0], rows=[Rows("need", sp.csr_array([[1.0]]), lower=unit)])
    duals = np.array([1.0])
    near = judge(model, claimed=Status.OPTIMAL, backend="test", x=np.array([1.001 * unit]), row_duals=duals)
    assert near.status is Status.FEASIBLE
    assert near.bound == pytest.approx(unit)
    best = judge(model, claimed=Status.OPTIMAL, backend="test", x=np.array([unit]), row_duals=duals)
    assert best.status is Status.OPTIMAL


def test_a_free_variable_forgives_rounding_only() -> None:
    """min x, x = y + z with y, z free and x >= 1: the multiplier must be 0 but for rounding."""
    model = LinearProgram.build(
        cost=[1.0, 0.0, 0.0],
        rows=[Rows("same", sp.csr_array([[1.0, -1.0, -1.0]]), lower=0.0, upper=0.0)],
        lower=[1.0, -INF, -INF],
    )
    x = np.array([1.0, 1.0, 0.0])
    assert verify(model, x, np.array([0.0])).bound == pytest.approx(1.0)
    slightly = verify(model, x, np.array([1e-9]))
    assert slightly.bound is not None
    assert slightly.bound == pytest.approx(1.0, abs=1e-7)
    assert slightly.bound <= 1.0  # forgiven, but charged
    assert verify(model, x, np.array([1e-3])).bound is None


def test_a_row_that_limits_a_variable_absorbs_an_error() -> None:
    """x has no upper limit, but x + y <= 10 with y >= 0: the bound loses a little, not everything."""
    model = LinearProgram.build(
        sense="max", cost=[1.0, 1.0], rows=[Rows("cap", sp.csr_array([[1.0, 1.0]]), upper=10.0)]
    )
    verified = verify(model, np.array([10.0, 0.0]), np.array([0.99]))
    assert verified.bound == pytest.approx(9.9 + 0.01 * 20.0)


def test_ranges_use_the_side_that_the_sign_says() -> None:
    model = LinearProgram.build(
        cost=[1.0], rows=[Rows("range", sp.csr_array([[1.0]]), lower=2.0, upper=5.0)], lower=-INF
    )
    assert verify(model, np.array([2.0]), np.array([1.0])).bound == pytest.approx(2.0)
    model = LinearProgram.build(
        sense="max",
        cost=[1.0],
        rows=[Rows("range", sp.csr_array([[1.0]]), lower=2.0, upper=5.0)],
        lower=-INF,
    )
    assert verify(model, np.array([5.0]), np.array([1.0])).bound == pytest.approx(5.0)


def test_an_unproven_claim_is_downgraded() -> None:
    x, wrong = np.array([3.0, 1.0]), np.array([1.0])

    def status(duals: NDArray[np.float64] | None, *, has_basis: bool = False) -> Status:
        return judge(
            diet(), claimed=Status.OPTIMAL, backend="b", x=x, row_duals=duals, has_basis=has_basis
        ).status

    assert status(np.array([3.0])) is Status.OPTIMAL
    assert status(wrong) is Status.FEASIBLE
    assert status(wrong, has_basis=True) is Status.FEASIBLE  # a bound that contradicts it
    assert status(None) is Status.FEASIBLE
    assert status(None, has_basis=True) is Status.OPTIMAL  # nothing to check it by


def test_an_infeasible_point_is_no_plan() -> None:
    solution = judge(
        diet(), claimed=Status.OPTIMAL, backend="b", x=np.array([3.0, 0.5]), row_duals=np.array([3.0])
    )
    assert solution.status is Status.UNDECIDED
    assert solution.x is None
    assert solution.objective is None
    assert solution.bound == pytest.approx(9.0)
    assert "violates a limit" in solution.reasons[0]


def test_whole_numbers_are_made_exact() -> None:
    model = LinearProgram.build(cost=[1.0], rows=[Rows("r", sp.csr_array([[1.0]]), lower=2.0)], integer=True)
    solution = judge(model, claimed=Status.OPTIMAL, backend="b", x=np.array([2.0000004]), bound=2.0)
    assert solution.x is not None
    assert solution.x.tolist() == [2.0]


@given(st.integers(0, 10**6), st.sampled_from(["min", "max"]), st.floats(1e-2, 1e2))
def test_no_multipliers_prove_too_much(seed: int, sense: str, size: float) -> None:
    """Weak duality: whatever y is, its bound is no better than the optimum."""
    rng = np.random.default_rng(seed)
    rows, columns = int(rng.integers(1, 5)), int(rng.integers(1, 5))
    matrix = rng.integers(-3, 4, (rows, columns)).astype(float)
    activity = matrix @ rng.uniform(-1, 2, columns)
    model = LinearProgram.build(
        sense="min" if sense == "min" else "max",
        cost=rng.normal(size=columns),
        rows=[Rows("r", sp.csr_array(matrix), lower=activity - 1, upper=activity + 1)],
        lower=-3.0,
        upper=np.where(rng.random(columns) < 0.5, INF, 3.0),
    )
    solution = highs.solve(model, Options(algorithm="simplex"))
    if solution.x is None or solution.objective is None or solution.row_duals is None:
        return
    gap = relative_gap(solution.objective, solution.bound)
    assert gap is not None
    assert gap <= OPTIMALITY_GAP
    any_bound = verify(model, solution.x, solution.row_duals + rng.normal(0, size, rows)).bound
    if any_bound is not None:
        sign = 1.0 if sense == "min" else -1.0
        assert sign * any_bound <= sign * solution.objective + 1e-6 * max(1.0, abs(solution.objective))
