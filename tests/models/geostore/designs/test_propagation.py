"""Ways of copies: the cheapest of all trees, within the limit of time."""

from __future__ import annotations

from itertools import product

import networkx as nx
import numpy as np
import pytest

from planner_models.geostore.designs.propagation import cheapest_ways

PRICE = np.array([[0.0, 0.09, 0.09], [0.02, 0.0, 0.02], [0.02, 0.02, 0.0]])


def test_a_relay_saves_a_dear_way() -> None:
    time = np.full((3, 3), 50.0)
    assert cheapest_ways(0, np.array([1, 2]), PRICE, time, np.inf) in (
        [(0, 0, 1), (0, 1, 2)],
        [(0, 2, 1), (0, 0, 2)],
    )
    assert cheapest_ways(0, np.array([1, 2]), PRICE, time, 60.0) == [(0, 0, 1), (0, 0, 2)]


@pytest.mark.parametrize(("seed", "count"), list(product(range(4), (4, 5, 8))))
def test_ways_are_a_cheapest_arborescence(seed: int, count: int) -> None:
    price = np.random.default_rng(seed).uniform(0.01, 0.1, (count, count))
    graph = nx.DiGraph()
    graph.add_weighted_edges_from(
        (a, b, price[a, b]) for a in range(count) for b in range(1, count) if a != b
    )
    tree = nx.minimum_spanning_arborescence(graph)
    ways = cheapest_ways(0, np.arange(1, count), price, np.ones((count, count)), np.inf)
    cost = sum(price[source, target] for _, source, target in ways)
    expected = sum(weight for _, _, weight in tree.edges(data="weight"))
    assert cost >= expected - 1e-12
    if count <= 6:
        assert cost == pytest.approx(expected)
    else:
        assert cost <= 1.1 * expected  # local search
    found = nx.DiGraph((source, target) for _, source, target in ways)
    assert nx.is_arborescence(found)
