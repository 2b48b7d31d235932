"""Functions of arrays against those of NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from planner.arrays import distinct


@pytest.mark.parametrize("shape", [(0,), (1,), (1_000,), (20, 30)])
def test_distinct_values_are_those_of_numpy(shape: tuple[int, ...]) -> None:
    values = np.random.default_rng(1).integers(-50, 50, size=shape)
    before = values.copy()
    assert distinct(values).tolist() == np.unique(values).tolist()
    assert (values == before).all()
