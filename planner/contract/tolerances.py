"""Tolerances of checks: differences of an amount from its limit by arithmetic alone.

There is one rule for all systems, without an amount of its own, so that it holds for rates of 1e-6 and of 1e9
in one problem. An amount may differ from its limit by

    1.001 * RELATIVE * |limit|  +  ROUNDING * (sum of the absolute terms that the amount was computed from)

Designs stop at RELATIVE. A check computes the same sums in another order, so it allows a thousandth more, and
the rounding of terms that nearly cancel: what a small demand sends beside much traffic of others is the
difference of two large sums.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from planner.arrays import Bools, Floats

RELATIVE: Final = 1e-6
"""Largest violation that a design may leave, relative to the limit."""
EXACT: Final = 1e-9
"""The same, where plans are made of given numbers as they are, and only their sums and products round."""
MARGIN: Final = 1.001
"""Factor by which a check allows more than a design may leave."""
ROUNDING: Final = 1e-12
"""Error of a sum in double precision, relative to the sum of its absolute terms; a sum has up to 10,000s."""


def allowance(limit: ArrayLike, terms: ArrayLike = 0.0, *, relative: float = RELATIVE) -> Floats:
    """Return the tolerances of amounts at limits, in their shape and unit; 0 for limits of inf.

    terms     sum of the absolute terms that an amount was computed from, in the unit of the limit
    relative  for limits that are kept more exactly than by a solver, such as EXACT
    """
    size = np.abs(np.asarray(limit, float))
    size = np.where(np.isfinite(size), size, 0.0)
    return np.asarray(MARGIN * relative * size + ROUNDING * np.abs(np.asarray(terms, float)))


def exceeds(
    amount: ArrayLike, limit: ArrayLike, terms: ArrayLike = 0.0, *, relative: float = RELATIVE
) -> Bools:
    """Return whether amounts exceed upper limits by more than the allowance; see `allowance`."""
    threshold = np.asarray(limit, float) + allowance(limit, terms, relative=relative)
    return np.asarray(np.asarray(amount, float) > threshold)


def falls_short(
    amount: ArrayLike, limit: ArrayLike, terms: ArrayLike = 0.0, *, relative: float = RELATIVE
) -> Bools:
    """Return whether amounts are below lower limits by more than the allowance; see `allowance`."""
    threshold = np.asarray(limit, float) - allowance(limit, terms, relative=relative)
    return np.asarray(np.asarray(amount, float) < threshold)


def differs(
    item: ArrayLike, other: ArrayLike, terms: ArrayLike = 0.0, *, relative: float = RELATIVE
) -> Bools:
    """Return whether amounts differ by more than the allowance of the larger one, or one of them is NaN."""
    first, second = np.asarray(item, float), np.asarray(other, float)
    larger = np.maximum(np.abs(first), np.abs(second))
    with np.errstate(invalid="ignore"):  # inf - inf
        is_near = np.abs(first - second) <= allowance(larger, terms, relative=relative)
    return np.asarray(~(is_near | (first == second)))
