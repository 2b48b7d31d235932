"""Sums with the same bits in Python and in compiled code: numpy adds pairs, Numba one after another."""

from __future__ import annotations

from planner.arrays import Floats
from planner.compiled import inner


@inner
def add_up(values: Floats) -> float:
    """Return the sum of (N,) values, added one after another."""
    total = 0.0
    for value in values:
        total += value
    return total
