"""Subgradient ascent: the best bound is kept, steps shrink where it stalls, and a maximum is found."""

from __future__ import annotations

import numpy as np

from planner.search.ascent import Ascent


def test_a_stall_leads_back_with_shorter_steps() -> None:
    ascent = Ascent("first", factor=1.0, stall_limit=2, best=1.0)
    assert not ascent.tell(2.0, "second")
    assert (ascent.best, ascent.best_point, ascent.factor) == (2.0, "second", 1.0)
    assert [ascent.tell(1.5, "worse") for _ in range(3)] == [False, True, False]
    assert ascent.go_back() == "second"
    assert ascent.factor == 0.5
    assert ascent.tell(2.05, "too near", progress=0.1)
    assert ascent.best == 2.0


def test_better_bounds_lengthen_the_steps() -> None:
    ascent = Ascent(0.0, factor=1.0, stall_limit=20, shrink=0.66, growth=1.1)
    ascent.tell(1.0, 1.0)
    ascent.go_back()
    assert ascent.factor == 1.1 * 0.66
    assert ascent.length(6.0, 3.0) == 1.1 * 0.66 * 6.0 / 3.0


def test_the_largest_value_of_a_concave_function_is_found() -> None:
    """The least of some planes: largest, 1, at (1, 1)."""
    planes, height = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, -1.0]]), np.array([0.0, 0.0, 3.0])
    point = np.zeros(2)
    ascent = Ascent(point, factor=1.0, stall_limit=3)
    for _ in range(200):
        values = planes @ point + height
        if ascent.tell(float(values.min()), point):
            point = ascent.go_back()
            continue
        direction = planes[values.argmin()]
        point = point + ascent.length(1.0 - values.min(), float(direction @ direction)) * direction
    assert abs(ascent.best - 1.0) < 1e-6
    assert np.allclose(ascent.best_point, 1.0, atol=1e-5)
