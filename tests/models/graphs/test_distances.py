"""Distances to many targets, against Dijkstra's algorithm of SciPy."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse.csgraph import dijkstra

from planner_models.graphs import distances


@pytest.mark.parametrize("weight", [1.0, 0.1])
def test_breadth_first_search_finds_the_same_distances(
    weight: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(distances, "COMPILED_ENTRIES", 0)
    random = np.random.default_rng(3)
    for _ in range(5):  # so sparse that some nodes do not reach some targets
        links = sp.random_array((40, 40), density=0.04, rng=random, format="csr")
        links.data[:] = weight
        targets = np.flatnonzero(random.random(40) < 0.3)
        result = distances.find_distances(links, targets)
        assert np.array_equal(result, dijkstra(links.T, indices=targets))
        assert np.isinf(result).any()


@pytest.mark.parametrize("compiled", [0, 1_000])
def test_nodes_are_those_that_networkx_reaches(compiled: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(distances, "COMPILED_ENTRIES", compiled)
    random = np.random.default_rng(7)
    tail = random.integers(0, 15, 40)
    head = (tail + random.integers(1, 15, 40)) % 15
    flow = sp.random_array((8, 40), density=0.4, rng=random, format="csr")
    flow.data[random.random(flow.nnz) < 0.2] = 0.0  # leads nowhere
    reached = random.random((8, 15)) < 0.1
    expected = reached.copy()
    for row in range(8):
        used = np.flatnonzero(flow.toarray()[row] > 0)
        graph = nx.DiGraph(list(zip(tail[used].tolist(), head[used].tolist(), strict=True)))
        graph.add_nodes_from(range(15))
        for node in np.flatnonzero(reached[row]).tolist():
            expected[row, list(nx.descendants(graph, node))] = True
    assert expected.sum() > reached.sum()
    distances.extend_reached(flow, tail, head, reached)
    assert reached.tolist() == expected.tolist()
