"""Shortest-path trees against networkx and a plain-Python twin."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner_models.graphs import shortest_path_trees
from planner_models.graphs.shortest_path_trees import Graph


@st.composite
def lengths(draw: st.DrawFn) -> tuple[Graph, np.ndarray]:
    """Draw a ring with chords, some of them parallel, and integer lengths of which many are 0."""
    count = draw(st.integers(2, 7))
    chords = st.tuples(st.integers(0, count - 1), st.integers(0, count - 1)).filter(lambda p: p[0] != p[1])
    ends = np.array([(i, (i + 1) % count) for i in range(count)] + draw(st.lists(chords, max_size=12)))
    length = draw(st.lists(st.integers(0, 3), min_size=len(ends), max_size=len(ends)))
    return Graph.of(count, ends[:, 0], ends[:, 1]), np.array(length, dtype=float)


def walk(graph: Graph, parent: np.ndarray, node: int) -> list[int]:
    """Return the arcs from a node to the root, in plain Python."""
    arcs: list[int] = []
    while parent[node] >= 0:
        arcs.append(int(parent[node]))
        node = int(graph.head[parent[node]])
        assert len(arcs) <= graph.nodes, "the tree has a cycle"
    return arcs


@given(lengths(), st.integers(0, 2**31))
@settings(max_examples=60, deadline=None)
def test_trees_are_shortest_and_loads_are_sums_over_walks(
    instance: tuple[Graph, np.ndarray], seed: int
) -> None:
    graph, length = instance
    rng = np.random.default_rng(seed)
    roots = np.arange(graph.nodes)
    amount = rng.integers(0, 5, size=(graph.nodes, graph.nodes)).astype(float)
    np.fill_diagonal(amount, 0)
    parent, value = shortest_path_trees.shortest_trees(graph, length, roots, amount)

    oracle = nx.MultiDiGraph()
    oracle.add_nodes_from(range(graph.nodes))
    for tail, head, size in zip(graph.tail, graph.head, length, strict=True):
        oracle.add_edge(int(tail), int(head), weight=size)
    distance = dict(nx.all_pairs_dijkstra_path_length(oracle))
    load = np.zeros((graph.nodes, len(length)))
    for root in roots.tolist():
        for node in roots.tolist():
            arcs = walk(graph, parent[root], node)
            assert sum(length[arcs]) == distance[node][root]
            load[root, arcs] += amount[root, node]
    np.testing.assert_allclose(value, (load * length).sum(axis=1))
    flow = shortest_path_trees.tree_flows(graph, parent, amount, roots)
    np.testing.assert_allclose(shortest_path_trees.tree_loads(graph, parent, flow), load)

    some = np.flatnonzero(rng.random(len(length)) < 0.5)
    np.testing.assert_allclose(shortest_path_trees.tree_loads(graph, parent, flow, some), load[:, some])
    weight = rng.random(graph.nodes)
    np.testing.assert_allclose(shortest_path_trees.weighted_load(graph, parent, flow, weight), weight @ load)
    tree, row = np.array([0, 1, 1]), np.array([1, 1, 0])
    by_row = shortest_path_trees.weighted_load_by_row(
        graph, parent, amount, tree, row, np.array([0.5, 0.5, 2.0])
    )
    flow = shortest_path_trees.tree_flows(graph, parent[tree], amount, row)
    own_values = shortest_path_trees.tree_loads(graph, parent[tree], flow) * np.array([[0.5], [0.5], [2.0]])
    np.testing.assert_allclose(by_row[:2], [own_values[2], own_values[0] + own_values[1]])


def test_loads_are_correct_over_arcs_of_length_zero() -> None:
    # all distances are 0, so they cannot tell a parent from its child
    graph = Graph.of(4, np.array([0, 1, 2]), np.array([1, 2, 3]))
    amount = np.array([[1.0, 2.0, 4.0, 0.0]])
    parent, value = shortest_path_trees.shortest_trees(graph, np.zeros(3), np.array([3]), amount)
    assert value.tolist() == [0.0]
    flow = shortest_path_trees.tree_flows(graph, parent, amount, np.zeros(1, dtype=int))
    assert flow.tolist() == [[1.0, 3.0, 7.0, 0.0]]
    assert shortest_path_trees.tree_loads(graph, parent, flow).tolist() == [[1.0, 3.0, 7.0]]


def test_the_shortest_of_parallel_arcs_is_used() -> None:
    graph = Graph.of(2, np.array([0, 0, 0]), np.array([1, 1, 1]))
    parent, value = shortest_path_trees.shortest_trees(
        graph, np.array([3.0, 1.0, 2.0]), np.array([1]), np.array([[2.0, 0.0]])
    )
    assert parent.tolist() == [[1, -1]]
    assert value.tolist() == [2.0]


def test_walks_list_their_arcs_in_order() -> None:
    graph = Graph.of(3, np.array([0, 1]), np.array([1, 2]))
    parent, _ = shortest_path_trees.shortest_trees(graph, np.ones(2), np.array([2]), np.zeros((1, 3)))
    which, arc = shortest_path_trees.walk_to_root(graph, parent, np.zeros(3, dtype=int), np.array([1, 2, 0]))
    assert (which.tolist(), arc.tolist()) == ([0, 2, 2], [1, 0, 1])


def test_traffic_without_a_path_raises_an_error() -> None:
    graph = Graph.of(3, np.array([0]), np.array([1]))
    with pytest.raises(ValueError, match="traffic to node 0 has no path"):
        shortest_path_trees.shortest_trees(graph, np.ones(1), np.array([0]), np.array([[0.0, 1.0, 0.0]]))
    _, value = shortest_path_trees.shortest_trees(graph, np.ones(1), np.array([0]), np.zeros((1, 3)))
    assert value.tolist() == [0.0]  # a node without traffic needs no path
