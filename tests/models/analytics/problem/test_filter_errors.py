"""Errors of answers from records that pass a filter, against plain loops over records."""

from __future__ import annotations

import statistics
from collections import defaultdict

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner_models.analytics.problem.filter_errors import find_passing, measure_error
from planner_models.analytics.problem.filters import Filter, passes, read_value
from planner_models.analytics.problem.schema import AGGREGATES

Rows = st.lists(
    st.tuples(st.integers(1, 2), st.sampled_from("abc"), st.integers(0, 6)), min_size=1, max_size=15
)


def summarize(values: list[int], aggregate: str) -> float:
    if aggregate == "quantile":
        return float(np.quantile(values, 0.9))
    if aggregate == "mean":
        return statistics.fmean(values)
    return float({"count": len(values), "max": max(values), "distinct": len(set(values))}[aggregate])


def expect_error(rows: list[tuple[int, str, int]], limit: int, aggregate: str) -> float:
    """Return the mean error of intervals by loops over records; the two largest cells for lists."""
    errors = []
    for interval in sorted({row[0] for row in rows}):
        full, passed = defaultdict(list), defaultdict(list)
        for number, cell, value in rows:
            if number == interval:
                full[cell].append(value)
                if value >= limit:
                    passed[cell].append(value)
        if aggregate == "top_k":
            largest = sorted(full, key=lambda cell: (-len(full[cell]), cell))[:2]
            listed = sorted(passed, key=lambda cell: (-len(passed[cell]), cell))[:2]
            of_cells = [
                1 - len(passed[cell]) / len(full[cell]) if cell in listed else 1.0 for cell in largest
            ]
        else:
            of_cells = []
            for cell, values in full.items():
                true = summarize(values, aggregate)
                answer = summarize(passed[cell], aggregate) if cell in passed else None
                if answer is None:
                    of_cells.append(1.0)
                elif true == 0:
                    of_cells.append(float(answer != 0))
                else:
                    of_cells.append(min(abs(answer - true) / true, 1.0))
        errors.append(statistics.fmean(of_cells))
    return statistics.fmean(errors)


@pytest.mark.parametrize("aggregate", AGGREGATES)
@settings(max_examples=60, deadline=None)
@given(rows=Rows, limit=st.integers(0, 7))
def test_errors_are_those_of_loops_over_records(
    aggregate: str, rows: list[tuple[int, str, int]], limit: int
) -> None:
    records = pd.DataFrame(rows, columns=["interval", "cell", "value"]).astype({"value": float})
    passed = find_passing(records, Filter("value", "at_least", float(limit)))
    error = measure_error(records, passed, aggregate, quantile=0.9, wanted=2)
    assert error == pytest.approx(expect_error(rows, limit, aggregate))


def test_largest_values_lose_nothing_where_small_ones_are_dropped() -> None:
    records = pd.DataFrame({"interval": 1.0, "cell": ["a", "a", "b"], "value": [1.0, 5.0, 7.0]})
    passed = find_passing(records, Filter("value", "at_least", 5.0))
    assert measure_error(records, passed, "max", quantile=0.5, wanted=1) == 0
    assert measure_error(records, passed, "count", quantile=0.5, wanted=1) == pytest.approx(0.25)


@pytest.mark.parametrize("keeps", ["equal", "not_equal", "at_least", "at_most"])
def test_records_pass_as_single_values_do(keeps: str) -> None:
    records = pd.DataFrame({"size": [1.0, 2.0, 3.0, 2.0], "kind": ["2", "x", "", "x"]})
    condition = Filter("size", keeps, 2.0)
    expected = [passes(condition, value) for value in records["size"]]
    assert find_passing(records, condition).tolist() == expected
    if keeps in ("equal", "not_equal"):
        text = Filter("kind", keeps, "x")
        assert find_passing(records, text).tolist() == [
            passes(text, read_value(value)) for value in records["kind"]
        ]
    assert find_passing(records, None).all()
