"""Mixed-integer rounding of a row that capacities must satisfy (Marchand and Wolsey 2001)."""

from __future__ import annotations

import numpy as np

from planner.search.tolerances import SOLVER
from planner_models.capacity.designs.network_design.network import Floats

TOLERANCE = SOLVER
"""Distance from a whole number below which a right-hand side counts as one, relative to it."""

MAX_DIVISORS = 8
"""Divisors of one row; those of several modules are rounded again by larger ones."""

MAX_RATIO = 1e6
"""Ratio of coefficients up to which a row is scaled by its largest: solvers drop those of 1e-9 and less."""


def round_row(coefficients: Floats, limit: float, point: Floats) -> tuple[Floats, float]:
    """Return the row `a x >= b` that rounding with the best divisor gives at a point, a (n,) and b.

    Where no rounded row is violated more, it is the row itself, scaled: with modules of several sizes a whole
    point may violate a row and none of its rounded ones.

    coefficients  (n,) at least 0
    limit         right-hand side, greater than 0
    point         (n,) at which the rounded row should be violated most
    """
    divisors = np.unique(np.round(coefficients[coefficients > 1e-9], 9))
    if len(divisors) > MAX_DIVISORS:
        divisors = divisors[np.linspace(0, len(divisors) - 1, MAX_DIVISORS).astype(int)]
    smallest = float(coefficients[coefficients > 1e-9].min(initial=np.inf))
    scale = max(min(float(coefficients.max(initial=0.0)), MAX_RATIO * smallest), 1e-12)
    best_row = coefficients / scale, limit / scale
    best = (limit - float(coefficients @ point)) / max(float(np.linalg.norm(coefficients)), 1e-12)
    for first, divisor in enumerate(divisors):
        row, rhs = round_with(coefficients, limit, float(divisor))
        for larger in divisors[first:]:  # rounding again gives the hull where sizes divide each other
            if larger > divisor:
                row, rhs = round_with(row, rhs, float(larger / divisor))
            violation = (rhs - float(row @ point)) / max(float(np.linalg.norm(row)), 1e-12)
            if violation > best + 1e-9:
                best, best_row = violation, (row, rhs)
    return best_row


def round_down(sizes: Floats, fraction: float) -> Floats:
    """Return the coefficients of sizes in a rounded row with a fractional right-hand side."""
    rounded = np.floor(sizes + TOLERANCE)
    remainder: Floats = np.maximum(0.0, sizes - rounded)
    return rounded + np.minimum(1.0, remainder / fraction)


def round_with(coefficients: Floats, limit: float, divisor: float) -> tuple[Floats, float]:
    """Return the row `a x >= b` after rounding `coefficients x / divisor >= limit / divisor`; x whole."""
    scaled, rhs = coefficients / divisor, limit / divisor
    ceiling = float(np.ceil(rhs - TOLERANCE * max(1.0, rhs)))
    fraction = rhs - (ceiling - 1.0)
    if fraction >= 1.0 - TOLERANCE:  # the limit is whole: only what exceeds it can shrink
        return np.minimum(scaled, ceiling), ceiling
    return np.minimum(round_down(scaled, fraction), ceiling), ceiling
