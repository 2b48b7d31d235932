"""Rows of small coefficients and programs of small limits, scaled for the absolute tolerances of solvers.

Solvers satisfy rows to an absolute 1e-9 to 1e-6 or so: in a row of coefficients of 1e-6, or of a limit of
1e-6, that is all of it. Factors are powers of two, which change no digit. Rows and limits of usual magnitude
stay as they are.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from planner.backends.linear_program import LinearProgram
from planner.backends.solution import Solution

SMALL: Final = 1e-3
"""Largest coefficient of a row, or limit of a program, below which it is scaled."""


def find_factors(model: LinearProgram) -> NDArray[np.float64] | None:
    """Return the factor of each row, (m,), with which its largest coefficient is 1 to 2; None without any."""
    largest = np.zeros(model.shape[0])
    rows = np.repeat(np.arange(model.shape[0]), np.diff(model.matrix.indptr))
    np.maximum.at(largest, rows, np.abs(model.matrix.data))
    is_small = (largest > 0) & (largest < SMALL)
    if not is_small.any():
        return None
    exponent = np.floor(np.log2(largest, out=np.zeros_like(largest), where=is_small))
    return np.asarray(np.exp2(-exponent))


def scale_rows(model: LinearProgram, factors: NDArray[np.float64]) -> LinearProgram:
    """Return the same program with rows multiplied by factors, (m,)."""
    return replace(
        model,
        matrix=sp.csr_array(sp.diags_array(factors) @ model.matrix),
        row_lower=model.row_lower * factors,
        row_upper=model.row_upper * factors,
    )


def unscale_duals(solution: Solution, factors: NDArray[np.float64]) -> Solution:
    """Return a solution of the scaled program as one of the program: its dual values are of other units."""
    if solution.row_duals is None:
        return solution
    return replace(solution, row_duals=solution.row_duals * factors)


def find_unit_factor(model: LinearProgram) -> float:
    """Return the factor of amounts with which the largest limit is 1 to 2; 1 where they stay as they are."""
    if model.is_integer:
        return 1.0
    limits = np.concatenate([model.row_lower, model.row_upper, model.lower, model.upper])
    largest = float(np.abs(limits[np.isfinite(limits)]).max(initial=0.0))
    return float(np.exp2(-np.floor(np.log2(largest)))) if 0 < largest < SMALL else 1.0


def scale_amounts(model: LinearProgram, factor: float) -> LinearProgram:
    """Return the same program with variables and limits multiplied by a factor, and so its objective."""
    return replace(
        model,
        row_lower=model.row_lower * factor,
        row_upper=model.row_upper * factor,
        lower=model.lower * factor,
        upper=model.upper * factor,
        offset=model.offset * factor,
    )


def unscale_amounts(solution: Solution, factor: float) -> Solution:
    """Return a solution of the scaled program as one of the program; the dual values are the same."""
    objective, bound, x = solution.objective, solution.bound, solution.x
    return replace(
        solution,
        x=None if x is None else x / factor,
        objective=None if objective is None else objective / factor,
        bound=None if bound is None else bound / factor,
    )
