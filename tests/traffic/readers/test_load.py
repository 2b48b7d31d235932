"""Shortest-path loads and gravity demands against plain computations on small networks."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner_models.traffic.readers.gravity import gravity, largest
from planner_models.traffic.readers.load import shortest_path_load

Arrays = dict[str, np.ndarray]
Triples = list[tuple[int, int, float]]


def arrays(links: Triples, demands: Triples) -> Arrays:
    tail, head, weight = np.array(links, dtype=float).reshape(-1, 3).T
    source, target, rate = np.array(demands, dtype=float).reshape(-1, 3).T
    ends = {"tail": tail, "head": head, "source": source, "target": target}
    return {name: values.astype(np.intp) for name, values in ends.items()} | {"weight": weight, "rate": rate}


def plain_load(nodes: int, links: Triples, demands: Triples) -> list[float]:
    """Each demand walks from node to node and splits evenly over the links that lie on a shortest path."""
    graph: nx.MultiDiGraph[int] = nx.MultiDiGraph()
    graph.add_nodes_from(range(nodes))
    for number, (tail, head, weight) in enumerate(links):
        graph.add_edge(tail, head, key=number, weight=weight)
    load = [0.0] * len(links)

    def carry(node: int, target: int, rate: float, distance: dict[int, float]) -> None:
        if node == target:
            return
        ways = [
            (key, head)
            for _, head, key, data in graph.out_edges(node, keys=True, data=True)
            if head in distance and distance[node] == data["weight"] + distance[head]
        ]
        for key, head in ways:
            load[key] += rate / len(ways)
            carry(head, target, rate / len(ways), distance)

    for source, target, rate in demands:
        distance = nx.single_source_dijkstra_path_length(graph.reverse(), target)
        if source in distance:
            carry(source, target, rate, distance)
    return load


node = st.integers(0, 5)
links_strategy = st.lists(st.tuples(node, node, st.integers(1, 4).map(float)), max_size=18)
demands_strategy = st.lists(st.tuples(node, node, st.integers(1, 9).map(float)), max_size=6)


@given(links_strategy, demands_strategy)
def test_load_is_that_of_walking_every_path(links: Triples, demands: Triples) -> None:
    found = shortest_path_load(nodes=6, **arrays(links, demands))
    assert found == pytest.approx(plain_load(6, links, demands))


def test_ties_and_parallel_links_share_evenly() -> None:
    square = [(0, 1, 1.0), (1, 3, 1.0), (0, 2, 1.0), (2, 3, 1.0), (2, 3, 1.0), (2, 3, 7.0)]
    load = shortest_path_load(nodes=4, **arrays(square, [(0, 3, 8.0)]))
    assert load.tolist() == [4, 4, 4, 2, 2, 0]


def test_a_demand_without_a_path_loads_nothing() -> None:
    assert shortest_path_load(nodes=3, **arrays([(0, 1, 1.0)], [(1, 0, 5.0), (0, 2, 5.0)])).tolist() == [0]


def test_weights_of_zero_are_refused() -> None:
    with pytest.raises(ValueError, match="weights must be positive"):
        shortest_path_load(nodes=2, **arrays([(0, 1, 0.0)], [(0, 1, 1.0)]))


def test_blocks_of_targets_add_up(monkeypatch: pytest.MonkeyPatch) -> None:
    ring = [(i, (i + 1) % 7, 1.0) for i in range(7)] + [((i + 1) % 7, i, 2.0) for i in range(7)]
    demands = [(i, j, 1.0 + i) for i in range(7) for j in range(7) if i != j]
    whole = shortest_path_load(nodes=7, **arrays(ring, demands))
    monkeypatch.setattr("planner_models.traffic.readers.load.BLOCK", 14)
    assert shortest_path_load(nodes=7, **arrays(ring, demands)) == pytest.approx(whole)


def test_gravity_is_in_proportion_to_masses_and_repeats_with_its_seed() -> None:
    tail, head = np.array([0, 1, 1, 2, 0, 2]), np.array([1, 0, 2, 1, 2, 0])
    source, target, share = gravity(nodes=3, tail=tail, head=head, seed=7)
    assert list(zip(source.tolist(), target.tolist(), strict=True)) == [
        (0, 1),
        (0, 2),
        (1, 0),
        (1, 2),
        (2, 0),
        (2, 1),
    ]
    assert share.sum() == pytest.approx(1)
    # sent x received: the product around the triangle is the same either way
    assert share[0] * share[3] * share[4] == pytest.approx(share[1] * share[5] * share[2])
    assert np.array_equal(share, gravity(nodes=3, tail=tail, head=head, seed=7)[2])
    assert not np.array_equal(share, gravity(nodes=3, tail=tail, head=head, seed=8)[2])


def test_gravity_asks_for_no_demand_without_a_path() -> None:
    # 0 -> 1 -> 2 one way, 3 on its own
    source, target, _ = gravity(nodes=4, tail=np.array([0, 1]), head=np.array([1, 2]), seed=0)
    assert set(zip(source.tolist(), target.tolist(), strict=True)) == {(0, 1), (0, 2), (1, 2)}


def test_gravity_of_no_links_is_empty() -> None:
    none = np.array([], dtype=np.intp)
    assert [len(part) for part in gravity(nodes=2, tail=none, head=none, seed=0)] == [0, 0, 0]


@given(st.lists(st.integers(0, 5).map(float), max_size=9), st.integers(1, 12))
def test_largest_keeps_the_largest_in_their_order(rates: list[float], pairs: int) -> None:
    rate = np.array(rates)
    kept = largest(rate, pairs)
    assert len(kept) == min(pairs, len(rates))
    assert sorted(kept.tolist()) == kept.tolist()
    assert sorted(rate[kept], reverse=True) == sorted(rates, reverse=True)[: len(kept)]
    assert largest(rate, None).tolist() == list(range(len(rates)))
