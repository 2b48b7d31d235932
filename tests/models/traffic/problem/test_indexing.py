"""Entries of sparse matrices and distinct numbers, beside those of NumPy."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from planner_models.traffic.problem import indexing


@given(
    places=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4), st.floats(-5, 5)), max_size=12),
    wanted=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4)), max_size=12),
    per_place=st.sampled_from([0, 100]),
    at_once=st.sampled_from([1, 10, 100]),
)
def test_entries_of_a_sparse_matrix_are_those_of_the_dense_one(
    places: list[tuple[int, int, float]], wanted: list[tuple[int, int]], per_place: int, at_once: int
) -> None:
    row, column, value = (np.array(list(one)) for one in zip(*places, strict=True)) if places else [[]] * 3
    matrix = sp.coo_array((value, (np.array(row, int), np.array(column, int))), shape=(4, 5)).tocsr()
    rows, columns = np.array(wanted, dtype=np.int64).reshape(-1, 2).T
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(indexing, "DENSE_PER_PLACE", per_place)
        patch.setattr(indexing, "MOST_DENSE", at_once)
        found = indexing.entries_at(matrix, rows, columns)
    np.testing.assert_array_equal(found, matrix.toarray()[rows, columns])


@given(numbers=st.lists(st.integers(0, 9)))
def test_distinct_numbers_and_their_places_are_those_of_numpy(numbers: list[int]) -> None:
    given_ = np.array(numbers, dtype=np.int64)
    for found, expected in zip(
        indexing.index_distinct(given_, 10), np.unique(given_, return_inverse=True), strict=True
    ):
        np.testing.assert_array_equal(found, expected)


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
