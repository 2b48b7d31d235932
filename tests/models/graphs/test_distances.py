"""Distances to many targets, against Dijkstra's algorithm of SciPy."""

from __future__ import annotations

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
