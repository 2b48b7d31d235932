"""The compiled matching against scipy's, from scratch and warm-started."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from planner_models.graphs.max_weight_matching import FREE, Pairs, State, update_matching


def best(weight: NDArray[np.float64]) -> float:
    row, column = linear_sum_assignment(weight, maximize=True)
    return float(weight[row, column].sum())


def test_each_matching_of_a_sequence_has_the_most_weight() -> None:
    """Weights of all kinds change a little or wholly; ties, zeros and empty lines among them."""
    rng = np.random.default_rng(0)
    for trial in range(200):
        n = int(rng.integers(1, 9))
        allowed = rng.random((n, n)) < rng.random()
        pairs, state = Pairs.of(allowed), State.of(n)
        source, target = np.nonzero(allowed)
        full = rng.integers(0, 6, (n, n)).astype(float) if trial % 2 else rng.random((n, n))
        for step in range(5):
            factor = rng.random((n, n)) if step % 2 else rng.integers(0, 3, (n, n))
            weight = np.where(allowed, full * factor, 0.0)
            update_matching(pairs, weight[source, target], state)
            total = sum(weight[i, j] for i, j in enumerate(state.mate) if j != FREE)
            assert total == pytest.approx(best(weight), abs=1e-9)
            for i, j in enumerate(state.mate):
                assert j == FREE or state.back_mate[j] == i
            over = state.price[source] + state.back_price[target] - weight[source, target]
            assert (over >= -1e-9).all()  # the prices prove it


@settings(max_examples=20, deadline=None)
@given(weights=st.lists(st.integers(0, 9), min_size=25, max_size=25))
def test_its_weight_is_that_of_networkx(weights: list[int]) -> None:
    weight = np.array(weights, dtype=float).reshape(5, 5)
    pairs, state = Pairs.of(weight > 0), State.of(5)
    update_matching(pairs, weight[weight > 0], state)
    graph = nx.Graph()
    graph.add_weighted_edges_from((f"s{i}", f"t{j}", weight[i, j]) for i, j in np.argwhere(weight > 0))
    matching = nx.max_weight_matching(graph)
    assert sum(weight[i, j] for i, j in enumerate(state.mate) if j != FREE) == pytest.approx(
        sum(graph.edges[edge]["weight"] for edge in matching)
    )


def test_indexed_pairs_are_those_of_the_matrix() -> None:
    rng = np.random.default_rng(1)
    allowed = rng.random((6, 6)) < 0.4
    pairs = Pairs.of(allowed)
    source, target = np.nonzero(allowed)
    np.testing.assert_array_equal(np.repeat(np.arange(6), np.diff(pairs.first)), source)
    np.testing.assert_array_equal(pairs.target, target)
    np.testing.assert_array_equal(source[pairs.pair], pairs.source)
    np.testing.assert_array_equal(target[pairs.pair], np.repeat(np.arange(6), np.diff(pairs.back_first)))
