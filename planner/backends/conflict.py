"""Why a program is infeasible: few rows and limits that already contradict each other, by name."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from planner.backends.linear import ROUNDING, WHOLE, LinearProgram, Rows
from planner.proof import Status

NAMED = 10
"""Most names that a reason lists; the rest are counted."""

Indices = NDArray[np.intp]


def contradictory_limits(model: LinearProgram) -> tuple[str, ...]:
    """Rows and variables whose limits contradict each other on their own; () if none.

    That is a lower limit above the upper one, a row without coefficients that must not be 0, or
    whole numbers with no value within the limits, such as `2 x + 4 y = 3`.
    """
    empty = np.diff(model.matrix.indptr) == 0
    low = np.where(empty, np.maximum(model.row_lower, 0.0), model.row_lower)
    high = np.where(empty, np.minimum(model.row_upper, 0.0), model.row_upper)
    names = [f"{model.row_name(i)}: {says}" for i, says in _crossed(low, high)]
    names += [f"{model.column_name(j)}: {says}" for j, says in _crossed(model.lower, model.upper)]
    if model.integer is not None and not names:
        step = _row_steps(model)
        names = [f"{model.row_name(i)}: {says}" for i, says in _stepped_over(step, low, high)]
        step = model.integer.astype(float)
        names += [
            f"{model.column_name(j)}: {says}" for j, says in _stepped_over(step, model.lower, model.upper)
        ]
    return _shortened(names)


def _row_steps(model: LinearProgram) -> NDArray[np.float64]:
    """(m,) greatest common divisor of the row's coefficients; 0 where a row may take any value."""
    matrix, integer = model.matrix, model.integer
    assert integer is not None
    whole = integer[matrix.indices] & (matrix.data == np.round(matrix.data)) & (np.abs(matrix.data) < 2**53)
    rows = np.flatnonzero(np.diff(matrix.indptr))  # `reduceat` takes no empty rows
    step = np.zeros(matrix.shape[0])
    if rows.size:
        coefficients = np.where(whole, np.abs(matrix.data), 0.0).astype(np.int64)
        divisor = np.gcd.reduceat(coefficients, matrix.indptr[rows])
        step[rows] = np.where(np.logical_and.reduceat(whole, matrix.indptr[rows]), divisor, 0)
    return step


def _stepped_over(
    step: NDArray[np.float64], low: NDArray[np.float64], high: NDArray[np.float64]
) -> list[tuple[int, str]]:
    """Limits with no multiple of `step` between them; step 0 has no such rule."""
    some = np.flatnonzero((step > 0) & np.isfinite(low) & np.isfinite(high))
    first = np.ceil(low[some] / step[some] - WHOLE)
    last = np.floor(high[some] / step[some] + WHOLE)
    return [
        (int(i), f"no multiple of {step[i]:g} from {low[i]:g} to {high[i]:g}") for i in some[first > last]
    ]


def explain(model: LinearProgram, *, seconds: float) -> tuple[str, ...] | None:
    """Names of rows, and of limits of variables as `x <= 3`, that together admit no solution.

    The set is irreducible (without any one of its rows it would be feasible) unless `seconds` run
    out: then it is only smaller than the model, or () where nothing was found in time. None where
    the model has a solution after all.
    """
    budget = _Budget(seconds)
    proof = _proof(model, budget)
    rows = np.flatnonzero(np.abs(proof) > NEGLIGIBLE) if proof is not None else np.arange(0)
    if rows.size == 0:
        if not model.is_integer:
            return None if proof is not None else ()
        if _solvable(model, budget):
            return None
        rows = np.arange(model.shape[0])  # only integrality breaks it: any row may take part
    rows = _irreducible(rows, lambda subset: _infeasible(_restricted(model, subset), budget))
    return _shortened([model.row_name(int(i)) for i in rows] + _limits_involved(model, rows, budget))


NEGLIGIBLE = 1e-9
"""Multipliers, and prices per unit of a row, that count as zero."""


class _Budget:
    def __init__(self, seconds: float) -> None:
        self.end = time.perf_counter() + seconds

    @property
    def left(self) -> float:
        return self.end - time.perf_counter()


def _proof(model: LinearProgram, budget: _Budget) -> NDArray[np.float64] | None:
    """(m,) multipliers of the rows that prove the linear relaxation infeasible; all 0 if it is not.

    Every row may be broken at a price of 1 per unit: the least total price is positive exactly
    where the rows conflict, and its dual values are the proof. None where time ran out.
    """
    from planner.backends import highs
    from planner.options import Options

    count, columns = model.shape
    if count == 0 or budget.left <= 0:
        return None
    short, over = sp.eye_array(count, format="csr"), -sp.eye_array(count, format="csr")
    elastic = LinearProgram.build(
        cost=np.concatenate([np.zeros(columns), np.ones(2 * count)]),
        rows=[
            Rows("r", sp.hstack([model.matrix, short, over]), lower=model.row_lower, upper=model.row_upper)
        ],
        lower=np.concatenate([model.lower, np.zeros(2 * count)]),
        upper=np.concatenate([model.upper, np.full(2 * count, np.inf)]),
    )
    solution = highs.solve(elastic, Options(time_limit_s=budget.left))
    if solution.status is not Status.OPTIMAL or solution.objective is None or solution.row_duals is None:
        return None
    return solution.row_duals if solution.objective > NEGLIGIBLE else np.zeros(count)


def _irreducible(rows: Indices, infeasible: Callable[[Indices], bool]) -> Indices:
    """Fewest-first search (QuickXplain, Junker 2004): k conflicting of m rows in about k log(m/k) solves."""

    def search(kept: Indices, added: bool, rest: Indices) -> Indices:
        if added and infeasible(kept):
            return rest[:0]
        if rest.size <= 1:
            return rest
        half = rest.size // 2
        first, second = rest[:half], rest[half:]
        needed_second = search(np.concatenate([kept, first]), first.size > 0, second)
        needed_first = search(np.concatenate([kept, needed_second]), needed_second.size > 0, first)
        return np.concatenate([needed_first, needed_second])

    return np.sort(search(rows[:0], False, rows))


def _infeasible(model: LinearProgram, budget: _Budget) -> bool:
    """True where proven; an unproven case counts as feasible, which keeps more rows in the set."""
    return _status(model, budget) is Status.INFEASIBLE


def _solvable(model: LinearProgram, budget: _Budget) -> bool:
    """True where a solution was found, whatever it costs."""
    costless = _restricted(model, np.arange(model.shape[0]))
    return _status(costless, budget) in (Status.OPTIMAL, Status.FEASIBLE)


def _status(model: LinearProgram, budget: _Budget) -> Status:
    from planner.backends import highs
    from planner.backends.verify import InfeasibleOrUnbounded
    from planner.options import Options

    if budget.left <= 0:
        return Status.UNDECIDED
    try:
        return highs.solve(model, Options(time_limit_s=budget.left)).status
    except InfeasibleOrUnbounded:  # without costs nothing is unbounded
        return Status.INFEASIBLE


def _restricted(model: LinearProgram, rows: Indices) -> LinearProgram:
    """The rows alone, without costs."""
    return replace(
        model,
        cost=np.zeros_like(model.cost),
        offset=0.0,
        matrix=sp.csr_array(model.matrix[rows]),
        row_lower=model.row_lower[rows],
        row_upper=model.row_upper[rows],
        row_blocks=(),
    )


def _limits_involved(model: LinearProgram, rows: Indices, budget: _Budget) -> list[str]:
    """Limits of variables that the rows' proof of infeasibility leans on; plain `x >= 0` goes unsaid."""
    proof = _proof(_restricted(model, rows), budget)
    if proof is None:
        return []
    pull = -(model.matrix[rows].T @ proof)
    limits = np.where(pull > 0, model.lower, model.upper)
    leaned_on = np.flatnonzero((np.abs(pull) > NEGLIGIBLE) & np.isfinite(limits) & (limits != 0))
    return [
        f"{model.column_name(int(j))} {'>=' if pull[j] > 0 else '<='} {limits[j]:g}"
        for j in leaned_on[: NAMED + 1]
    ] + [""] * max(0, leaned_on.size - NAMED - 1)


def _crossed(low: NDArray[np.float64], high: NDArray[np.float64]) -> list[tuple[int, str]]:
    worst = np.flatnonzero(low > high + ROUNDING * np.maximum(1.0, np.abs(high)))
    return [(int(i), f"{low[i]:g} > {high[i]:g}") for i in worst]


def _shortened(names: Sequence[str]) -> tuple[str, ...]:
    if len(names) <= NAMED + 1:  # "and 1 more" would be as long as the name
        return tuple(names)
    return (*names[:NAMED], f"and {len(names) - NAMED} more")
