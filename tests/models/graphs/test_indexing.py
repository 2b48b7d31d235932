"""Sums at nodes, distinct and equal numbers, beside those of NumPy and pandas."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from planner_models.graphs import indexing


@given(numbers=st.lists(st.integers(0, 9)), most=st.sampled_from([1, 100]))
def test_distinct_numbers_and_their_places_are_those_of_numpy(numbers: list[int], most: int) -> None:
    given_ = np.array(numbers, dtype=np.int64)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(indexing, "MOST_MARKS", most)
        result = indexing.index_distinct(given_, 10)
    for results, expected in zip(result, np.unique(given_, return_inverse=True), strict=True):
        np.testing.assert_array_equal(results, expected)


@given(numbers=st.lists(st.integers(0, 9)))
def test_equal_keys_are_numbered_as_by_pandas(numbers: list[int]) -> None:
    keys = pd.Series(numbers, dtype=np.int64)
    place, size = indexing.number_equal(keys.to_numpy())
    groups = keys.groupby(keys)
    assert place.tolist() == groups.cumcount().tolist()
    assert size.tolist() == groups.transform("size").tolist()


@pytest.mark.parametrize("places", [1, 18, 1_000])
@pytest.mark.parametrize("compiled", [0, 1_000])
def test_sums_at_nodes_are_those_of_the_incidence(
    places: int, compiled: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(indexing, "PLACES_AT_ONCE", places)
    monkeypatch.setattr(indexing, "COMPILED_ENTRIES", compiled)
    random = np.random.default_rng(5)
    flow = sp.random_array((6, 30), density=0.3, rng=random, format="csr")
    tail = random.integers(0, 9, 30)
    head = (tail + random.integers(1, 9, 30)) % 9
    out, into = np.zeros((30, 9)), np.zeros((30, 9))
    out[np.arange(30), tail] = into[np.arange(30), head] = 1.0
    firsts, surplus, passing = zip(*indexing.sum_at_nodes(flow, tail, head, 9), strict=True)
    assert firsts == tuple(range(0, 6, max(1, places // 9)))
    assert np.concatenate(surplus) == pytest.approx(flow @ (out - into), abs=1e-12)
    assert np.concatenate(passing) == pytest.approx(flow @ (out + into), abs=1e-12)
