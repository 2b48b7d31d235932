"""Series of problems that differ by joins and leaves."""

from __future__ import annotations

import dataclasses
from itertools import pairwise

import numpy as np
import pytest

from planner.errors import InputError
from planner_models.multicast import Multicast
from planner_models.multicast.problem import series
from planner_models.multicast.problem.problem import MEMBER_PROPERTIES
from tests.models.multicast.fabrics import fat


def test_problems_in_series_differ_by_what_joined_and_left() -> None:
    problem = fat(k=8, aggregation_copies=2, groups=40)
    windows = list(series.ChurnSeries(problem=problem, windows=11, events=50, seed=1))
    assert [label for label, _ in windows] == [f"{window:02d}" for window in range(11)]
    assert windows[0][1] is problem
    for (_, item), (_, two) in pairwise(windows):
        before, after = (
            set(zip(each.group_of.tolist(), each.host_of.tolist(), strict=True)) for each in (item, two)
        )
        assert 0 < len(before ^ after) <= 50
        assert (two.member_counts > 0).all()
        again = Multicast.from_tables(two.to_tables())  # and it is a problem as any other
        assert np.array_equal(again.edges_in_pod, two.edges_in_pod)
        selected = {name for name in vars(two) if name in vars(type(two))} - set(MEMBER_PROPERTIES)
        for name in selected - {"_distributions"}:  # what was worked out before still holds
            assert np.array_equal(getattr(two, name), getattr(again, name)), name
    with pytest.raises(InputError, match="joins and leaves need this table"):
        series.ChurnSeries(problem=dataclasses.replace(problem, tenants=None), windows=2, events=5, seed=0)
