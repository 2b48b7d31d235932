"""Percentiles of samples, against sorting by hand and numpy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner_models.networks.percentile_bills import (
    billed_level,
    billed_rank,
    count_unbilled,
    levels_of_next,
)

SAMPLES = st.lists(st.integers(0, 20), max_size=45)


@pytest.mark.parametrize(
    ("windows", "unbilled"), [(1, 0), (19, 0), (20, 1), (40, 2), (8_640, 432), (8_928, 446)]
)
def test_five_percent_of_the_windows_are_not_billed(windows: int, unbilled: int) -> None:
    assert count_unbilled(windows) == unbilled
    assert billed_rank(windows) + unbilled == windows


@given(SAMPLES, st.integers(0, 25), st.sampled_from([0.5, 0.9, 0.95, 1.0]), st.integers(1, 40))
def test_more_samples_decide_only_between_two_levels(
    samples: list[int], more: int, share: float, times: int
) -> None:
    low, high = levels_of_next(np.array(samples, float), share, times=times)
    assert low <= high
    assert billed_level(np.array([*samples, *[more] * times], float), share) == np.clip(more, low, high)


@given(st.lists(st.integers(0, 20), min_size=1, max_size=45), st.sampled_from([0.5, 0.95, 1.0]))
def test_the_billed_level_is_the_inverted_distribution(samples: list[int], share: float) -> None:
    expected = np.percentile(samples, 100 * share, method="inverted_cdf")
    assert billed_level(np.array(samples, float), share) == expected


def test_without_samples_nothing_is_billed() -> None:
    assert billed_level(np.zeros(0)) == 0
    assert levels_of_next(np.zeros(0)) == (0.0, np.inf)
