"""Shortest-path trees against networkx and a plain-Python twin."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner_models.traffic import trees
from planner_models.traffic.trees import Graph


@st.composite
def lengths(draw: st.DrawFn) -> tuple[Graph, np.ndarray]:
    """A ring with chords, some of them parallel, and whole lengths of which many are 0."""
    count = draw(st.integers(2, 7))
    chords = st.tuples(st.integers(0, count - 1), st.integers(0, count - 1)).filter(lambda p: p[0] != p[1])
    ends = np.array([(i, (i + 1) % count) for i in range(count)] + draw(st.lists(chords, max_size=12)))
    length = draw(st.lists(st.integers(0, 3), min_size=len(ends), max_size=len(ends)))
    return Graph.of(count, ends[:, 0], ends[:, 1]), np.array(length, dtype=float)


def way(graph: Graph, parent: np.ndarray, node: int) -> list[int]:
    """The arcs from a node to the root, in plain Python."""
    arcs: list[int] = []
    while parent[node] >= 0:
        arcs.append(int(parent[node]))
        node = int(graph.head[parent[node]])
        assert len(arcs) <= graph.nodes, "the tree runs in a circle"
    return arcs


@given(lengths(), st.integers(0, 2**31))
@settings(max_examples=60, deadline=None)
def test_trees_are_shortest_and_carry_what_walks_add_up_to(
    drawn: tuple[Graph, np.ndarray], seed: int
) -> None:
    graph, length = drawn
    rng = np.random.default_rng(seed)
    roots = np.arange(graph.nodes)
    amount = rng.integers(0, 5, size=(graph.nodes, graph.nodes)).astype(float)
    np.fill_diagonal(amount, 0)
    parent, value = trees.grow(graph, length, roots, amount)

    oracle = nx.MultiDiGraph()
    oracle.add_nodes_from(range(graph.nodes))
    for tail, head, size in zip(graph.tail, graph.head, length, strict=True):
        oracle.add_edge(int(tail), int(head), weight=size)
    distance = dict(nx.all_pairs_dijkstra_path_length(oracle))
    load = np.zeros((graph.nodes, len(length)))
    for root in roots.tolist():
        for node in roots.tolist():
            arcs = way(graph, parent[root], node)
            assert sum(length[arcs]) == distance[node][root]
            load[root, arcs] += amount[root, node]
    np.testing.assert_allclose(value, (load * length).sum(axis=1))
    np.testing.assert_allclose(trees.loads(graph, parent, amount, roots), load)

    some = np.flatnonzero(rng.random(len(length)) < 0.5)
    np.testing.assert_allclose(trees.loads_at(graph, parent, amount, roots, some), load[:, some])
    weight = rng.random(graph.nodes)
    np.testing.assert_allclose(trees.mixed(graph, parent, amount, roots, weight), weight @ load)
    tree, row = np.array([0, 1, 1]), np.array([1, 1, 0])
    by_row = trees.mixed_by(graph, parent, amount, tree, row, np.array([0.5, 0.5, 2.0]))
    own = trees.loads(graph, parent[tree], amount, row) * np.array([[0.5], [0.5], [2.0]])
    np.testing.assert_allclose(by_row[:2], [own[2], own[0] + own[1]])


def test_arcs_of_length_zero_lose_nothing() -> None:
    # all distances are 0, so they cannot tell a parent from its child
    graph = Graph.of(4, np.array([0, 1, 2]), np.array([1, 2, 3]))
    amount = np.array([[1.0, 2.0, 4.0, 0.0]])
    parent, value = trees.grow(graph, np.zeros(3), np.array([3]), amount)
    assert value.tolist() == [0.0]
    assert trees.loads(graph, parent, amount, np.zeros(1, dtype=int)).tolist() == [[1.0, 3.0, 7.0]]


def test_of_parallel_arcs_the_shorter_is_taken() -> None:
    graph = Graph.of(2, np.array([0, 0, 0]), np.array([1, 1, 1]))
    parent, value = trees.grow(graph, np.array([3.0, 1.0, 2.0]), np.array([1]), np.array([[2.0, 0.0]]))
    assert parent.tolist() == [[1, -1]]
    assert value.tolist() == [2.0]


def test_walks_name_their_arcs_in_order() -> None:
    graph = Graph.of(3, np.array([0, 1]), np.array([1, 2]))
    parent, _ = trees.grow(graph, np.ones(2), np.array([2]), np.zeros((1, 3)))
    which, arc = trees.walk(graph, parent, np.zeros(3, dtype=int), np.array([1, 2, 0]))
    assert (which.tolist(), arc.tolist()) == ([0, 2, 2], [1, 0, 1])


def test_traffic_without_a_path_is_refused() -> None:
    graph = Graph.of(3, np.array([0]), np.array([1]))
    with pytest.raises(ValueError, match="traffic to node 0 has no path"):
        trees.grow(graph, np.ones(1), np.array([0]), np.array([[0.0, 1.0, 0.0]]))
    _, value = trees.grow(graph, np.ones(1), np.array([0]), np.zeros((1, 3)))
    assert value.tolist() == [0.0]  # what sends nothing needs no path
