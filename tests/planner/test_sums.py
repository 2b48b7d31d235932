"""Sums have the same bits in Python as in compiled code."""

from __future__ import annotations

import math
from functools import reduce
from operator import add

import numpy as np

from planner.arrays import Floats
from planner.compiled import njit
from planner.sums import add_up


@njit()
def add_up_compiled(values: Floats) -> float:
    return add_up(values)


def test_values_are_added_one_after_another() -> None:
    values = np.random.default_rng(1).normal(size=999)
    in_order = reduce(add, values.tolist(), 0.0)
    assert add_up.py_func(values) == in_order  # type: ignore[attr-defined]
    assert add_up_compiled(values) == in_order
    assert math.isclose(values.sum(), in_order)
    assert values.sum() != in_order  # numpy adds pairs
    assert add_up_compiled(values[:0]) == 0
