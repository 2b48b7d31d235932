"""Explanation of infeasible programs: an irreducible set of conflicting rows and limits, by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from planner import clock
from planner.backends.linear_program import INTEGRALITY_TOLERANCE, ROUNDING_TOLERANCE, LinearProgram, Rows
from planner.backends.verification import InfeasibleOrUnbounded
from planner.contract.proof import Status
from planner.options import Options

MAX_NAMES = 10
"""Largest number of names in an explanation; the others are counted."""

Indices = NDArray[np.intp]


def contradictory_limits(model: LinearProgram) -> tuple[str, ...]:
    """Return the rows and variables with contradictory limits of their own; () if none.

    That is a lower limit above the upper one, a row without coefficients that must not be 0, or
    whole numbers with no value within the limits, such as `2 x + 4 y = 3`.
    """
    empty = np.diff(model.matrix.indptr) == 0
    low = np.where(empty, np.maximum(model.row_lower, 0.0), model.row_lower)
    high = np.where(empty, np.minimum(model.row_upper, 0.0), model.row_upper)
    names = [f"{model.row_name(i)}: {says}" for i, says in _contradictions(low, high)]
    names += [f"{model.column_name(j)}: {says}" for j, says in _contradictions(model.lower, model.upper)]
    if model.integer is not None and not names:
        step = _row_steps(model)
        names = [f"{model.row_name(i)}: {says}" for i, says in _without_multiple(step, low, high)]
        step = model.integer.astype(float)
        names += [
            f"{model.column_name(j)}: {says}" for j, says in _without_multiple(step, model.lower, model.upper)
        ]
    return _shorten(names)


def _row_steps(model: LinearProgram) -> NDArray[np.float64]:
    """Return the greatest common divisor of each row's coefficients, (m,); 0 where any value is possible."""
    matrix, integer = model.matrix, model.integer
    assert integer is not None
    is_exact = (
        integer[matrix.indices] & (matrix.data == np.round(matrix.data)) & (np.abs(matrix.data) < 2**53)
    )
    rows = np.flatnonzero(np.diff(matrix.indptr))  # `reduceat` takes no empty rows
    step = np.zeros(matrix.shape[0])
    if rows.size:
        coefficients = np.where(is_exact, np.abs(matrix.data), 0.0).astype(np.int64)
        divisor = np.gcd.reduceat(coefficients, matrix.indptr[rows])
        step[rows] = np.where(np.logical_and.reduceat(is_exact, matrix.indptr[rows]), divisor, 0)
    return step


def _without_multiple(
    step: NDArray[np.float64], low: NDArray[np.float64], high: NDArray[np.float64]
) -> list[tuple[int, str]]:
    """Return the limits with no multiple of `step` between them; any value is one of step 0."""
    some = np.flatnonzero((step > 0) & np.isfinite(low) & np.isfinite(high))
    first = np.ceil(low[some] / step[some] - INTEGRALITY_TOLERANCE)
    last = np.floor(high[some] / step[some] + INTEGRALITY_TOLERANCE)
    return [
        (int(i), f"no multiple of {step[i]:g} from {low[i]:g} to {high[i]:g}") for i in some[first > last]
    ]


def explain(model: LinearProgram, *, seconds: float) -> tuple[str, ...] | None:
    """Return names of rows, and of limits of variables as `x <= 3`, that together have no solution.

    The set is irreducible (without any one of its rows it would be feasible) unless `seconds` run
    out: then it is only smaller than the model, or () where nothing was found in time. None where
    the model is feasible after all.
    """
    budget = _TimeBudget(seconds)
    proof = _infeasibility_proof(model, budget)
    rows = np.flatnonzero(np.abs(proof) > NEGLIGIBLE) if proof is not None else np.arange(0)
    if rows.size == 0:
        if not model.is_integer:
            return None if proof is not None else ()
        if _is_feasible(model, budget):
            return None
        rows = np.arange(model.shape[0])  # infeasible by integrality only: any row may take part
    rows = _irreducible(rows, lambda subset: _is_infeasible(_rows_only(model, subset), budget))
    return _shorten([model.row_name(int(i)) for i in rows] + _binding_limits(model, rows, budget))


NEGLIGIBLE = 1e-9
"""Largest multiplier, and largest penalty per unit of a row, that counts as zero."""


class _TimeBudget:
    def __init__(self, seconds: float) -> None:
        self.end = clock.now() + seconds

    @property
    def left_s(self) -> float:
        return self.end - clock.now()


def _infeasibility_proof(model: LinearProgram, budget: _TimeBudget) -> NDArray[np.float64] | None:
    """Return multipliers of the rows, (m,), that prove the linear relaxation infeasible; 0 if it is not.

    Every row may be violated at a penalty of 1 per unit: the least total penalty is positive exactly
    where the rows conflict, and its dual values are the proof (Farkas). None where time ran out.
    """
    from planner.backends import highs  # not above: other backends work without it

    count, columns = model.shape
    if count == 0 or budget.left_s <= 0:
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
    solution = highs.solve(elastic, Options(time_limit_s=budget.left_s))
    if solution.status is not Status.OPTIMAL or solution.objective is None or solution.row_duals is None:
        return None
    return solution.row_duals if solution.objective > NEGLIGIBLE else np.zeros(count)


def _irreducible(rows: Indices, infeasible: Callable[[Indices], bool]) -> Indices:
    """Find an irreducible set by QuickXplain (Junker 2004): k of m rows in about k log(m/k) solves."""

    def search(required: Indices, added: bool, candidates: Indices) -> Indices:
        if added and infeasible(required):
            return candidates[:0]
        if candidates.size <= 1:
            return candidates
        half = candidates.size // 2
        first, second = candidates[:half], candidates[half:]
        needed_second = search(np.concatenate([required, first]), first.size > 0, second)
        needed_first = search(np.concatenate([required, needed_second]), needed_second.size > 0, first)
        return np.concatenate([needed_first, needed_second])

    return np.sort(search(rows[:0], False, rows))


def _is_infeasible(model: LinearProgram, budget: _TimeBudget) -> bool:
    """Return whether it is proven infeasible; an undecided model counts as feasible."""
    return _status(model, budget) is Status.INFEASIBLE


def _is_feasible(model: LinearProgram, budget: _TimeBudget) -> bool:
    """Return whether a solution was found, at any cost."""
    costless = _rows_only(model, np.arange(model.shape[0]))
    return _status(costless, budget) in (Status.OPTIMAL, Status.FEASIBLE)


def _status(model: LinearProgram, budget: _TimeBudget) -> Status:
    from planner.backends import highs  # as above

    if budget.left_s <= 0:
        return Status.UNDECIDED
    try:
        return highs.solve(model, Options(time_limit_s=budget.left_s)).status
    except InfeasibleOrUnbounded:  # without costs nothing is unbounded
        return Status.INFEASIBLE


def _rows_only(model: LinearProgram, rows: Indices) -> LinearProgram:
    """Return the program with these rows alone, without costs."""
    return replace(
        model,
        cost=np.zeros_like(model.cost),
        offset=0.0,
        matrix=sp.csr_array(model.matrix[rows]),
        row_lower=model.row_lower[rows],
        row_upper=model.row_upper[rows],
        row_blocks=(),
    )


def _binding_limits(model: LinearProgram, rows: Indices, budget: _TimeBudget) -> list[str]:
    """Return the limits of variables in the rows' proof of infeasibility, except plain `x >= 0`."""
    proof = _infeasibility_proof(_rows_only(model, rows), budget)
    if proof is None:
        return []
    pull = -(model.matrix[rows].T @ proof)
    limits = np.where(pull > 0, model.lower, model.upper)
    used = np.flatnonzero((np.abs(pull) > NEGLIGIBLE) & np.isfinite(limits) & (limits != 0))
    return [
        f"{model.column_name(int(j))} {'>=' if pull[j] > 0 else '<='} {limits[j]:g}"
        for j in used[: MAX_NAMES + 1]
    ] + [""] * max(0, used.size - MAX_NAMES - 1)


def _contradictions(low: NDArray[np.float64], high: NDArray[np.float64]) -> list[tuple[int, str]]:
    worst = np.flatnonzero(low > high + ROUNDING_TOLERANCE * np.maximum(1.0, np.abs(high)))
    return [(int(i), f"{low[i]:g} > {high[i]:g}") for i in worst]


def _shorten(names: Sequence[str]) -> tuple[str, ...]:
    """Return at most MAX_NAMES + 1 names, in their order, and the count of the others.

    The first name of each block, such as `cap` in `cap[berlin]`, comes before others of a block: a
    constraint that was added to a model is named beside the many rows that it conflicts with.
    """
    if len(names) <= MAX_NAMES + 1:  # "and 1 more" would be as long as the name
        return tuple(names)
    blocks = [name.partition("[")[0] for name in names]
    is_repeated = [block in blocks[:index] for index, block in enumerate(blocks)]
    shown = sorted(sorted(range(len(names)), key=is_repeated.__getitem__)[:MAX_NAMES])
    return (*(names[index] for index in shown), f"and {len(names) - MAX_NAMES} more")
