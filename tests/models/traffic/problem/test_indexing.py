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


def test_sums_at_nodes_are_those_of_the_incidence(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(5)
    flow = sp.random_array((6, 30), density=0.3, rng=random, format="csr")
    tail = random.integers(0, 9, 30)
    head = (tail + random.integers(1, 9, 30)) % 9
    incidence = np.zeros((30, 9))
    np.add.at(incidence, (np.arange(30), tail), 1.0)
    passing = incidence.copy()
    np.add.at(incidence, (np.arange(30), head), -1.0)
    np.add.at(passing, (np.arange(30), head), 1.0)
    for most, kind in ((indexing.MOST_DENSE, np.ndarray), (0, sp.csr_array)):
        monkeypatch.setattr(indexing, "MOST_DENSE", most)
        sums = indexing.sum_at_nodes(flow, tail, head, 9)
        for found, expected in zip(sums, (flow @ incidence, flow @ passing), strict=True):
            assert isinstance(found, kind)
            dense = found if isinstance(found, np.ndarray) else found.toarray()
            assert dense == pytest.approx(expected, abs=1e-12)
