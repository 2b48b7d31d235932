"""Nodes that traffic reaches, against networkx."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp

from planner_models.graphs import reachability


@pytest.mark.parametrize("compiled", [0, 1_000])
def test_nodes_are_those_that_networkx_reaches(compiled: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reachability, "COMPILED_ENTRIES", compiled)
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
    reachability.extend_reached(flow, tail, head, reached)
    assert reached.tolist() == expected.tolist()
