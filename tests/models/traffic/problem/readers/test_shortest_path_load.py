"""Shortest-path loads against a plain computation on small networks."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner_models.traffic.problem.readers.shortest_path_load import shortest_path_load

Arrays = dict[str, np.ndarray]
Triples = list[tuple[int, int, float]]


def arrays(links: Triples, demands: Triples) -> Arrays:
    tail, head, weight = np.array(links, dtype=float).reshape(-1, 3).T
    source, target, rate = np.array(demands, dtype=float).reshape(-1, 3).T
    ends = {"tail": tail, "head": head, "source": source, "target": target}
    return {name: values.astype(np.intp) for name, values in ends.items()} | {"weight": weight, "rate": rate}


def plain_load(nodes: int, links: Triples, demands: Triples) -> list[float]:
    """Return loads where each demand walks and splits evenly over the links that lie on a shortest path."""
    graph: nx.MultiDiGraph[int] = nx.MultiDiGraph()
    graph.add_nodes_from(range(nodes))
    for number, (tail, head, weight) in enumerate(links):
        graph.add_edge(tail, head, key=number, weight=weight)
    load = [0.0] * len(links)

    def walk(node: int, target: int, rate: float, distance: dict[int, float]) -> None:
        if node == target:
            return
        next_links = [
            (key, head)
            for _, head, key, data in graph.out_edges(node, keys=True, data=True)
            if head in distance and distance[node] == data["weight"] + distance[head]
        ]
        for key, head in next_links:
            load[key] += rate / len(next_links)
            walk(head, target, rate / len(next_links), distance)

    for source, target, rate in demands:
        distance = nx.single_source_dijkstra_path_length(graph.reverse(), target)
        if source in distance:
            walk(source, target, rate, distance)
    return load


node = st.integers(0, 5)
links_strategy = st.lists(st.tuples(node, node, st.integers(1, 4).map(float)), max_size=18)
demands_strategy = st.lists(st.tuples(node, node, st.integers(1, 9).map(float)), max_size=6)


@given(links_strategy, demands_strategy)
def test_loads_equal_those_of_walking_every_path(links: Triples, demands: Triples) -> None:
    result = shortest_path_load(nodes=6, **arrays(links, demands))
    assert result == pytest.approx(plain_load(6, links, demands))


def test_ties_and_parallel_links_share_evenly() -> None:
    square = [(0, 1, 1.0), (1, 3, 1.0), (0, 2, 1.0), (2, 3, 1.0), (2, 3, 1.0), (2, 3, 7.0)]
    load = shortest_path_load(nodes=4, **arrays(square, [(0, 3, 8.0)]))
    assert load.tolist() == [4, 4, 4, 2, 2, 0]


def test_a_demand_without_a_path_loads_nothing() -> None:
    assert shortest_path_load(nodes=3, **arrays([(0, 1, 1.0)], [(1, 0, 5.0), (0, 2, 5.0)])).tolist() == [0]


def test_a_weight_of_zero_raises_an_error() -> None:
    with pytest.raises(ValueError, match="weights must be positive"):
        shortest_path_load(nodes=2, **arrays([(0, 1, 0.0)], [(0, 1, 1.0)]))


def test_blocks_of_targets_add_up(monkeypatch: pytest.MonkeyPatch) -> None:
    ring = [(i, (i + 1) % 7, 1.0) for i in range(7)] + [((i + 1) % 7, i, 2.0) for i in range(7)]
    demands = [(i, j, 1.0 + i) for i in range(7) for j in range(7) if i != j]
    full = shortest_path_load(nodes=7, **arrays(ring, demands))
    monkeypatch.setattr("planner_models.traffic.problem.readers.shortest_path_load.MAX_DISTANCES", 14)
    assert shortest_path_load(nodes=7, **arrays(ring, demands)) == pytest.approx(full)
