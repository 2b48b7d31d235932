"""Rows of small coefficients, multiplied so that a solver's absolute tolerances mean something in them.

Solvers satisfy rows to an absolute 1e-9 to 1e-6 or so: in a row of coefficients of 1e-6, that is all of it.
Factors are powers of two, which change no digit. Rows of usual magnitude stay as they are.
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
"""Largest coefficient of a row, below which it is scaled."""


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
