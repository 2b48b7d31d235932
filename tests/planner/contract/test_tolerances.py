"""Tolerances of checks: relative to limits of any size, and wider where terms nearly cancel."""

from __future__ import annotations

import numpy as np
import pytest

from planner.contract.tolerances import RELATIVE, allowance, differs, exceeds, falls_short


@pytest.mark.parametrize("size", [10.0**power for power in range(-6, 10)])
def test_the_same_relative_violation_counts_at_every_size(size: float) -> None:
    assert not exceeds(size * (1 + RELATIVE), size)
    assert exceeds(size * (1 + 2 * RELATIVE), size)
    assert not falls_short(size * (1 - RELATIVE), size)
    assert falls_short(size * (1 - 2 * RELATIVE), size)
    assert differs(size, size * (1 + 2 * RELATIVE))
    assert not differs(size, size * (1 + RELATIVE))


def test_the_rounding_of_large_terms_is_allowed_for() -> None:
    large = 1e9
    small = (large + 1e-6) - large  # 1.07e-6, as doubles of that size are 1.2e-7 apart
    assert differs(small, 1e-6)
    assert not differs(small, 1e-6, terms=2 * large)


def test_limits_of_infinity_and_zero() -> None:
    assert np.array_equal(allowance([np.inf, 0.0]), [0.0, 0.0])
    assert not exceeds(1e300, np.inf)
    assert exceeds(1e-300, 0.0)
