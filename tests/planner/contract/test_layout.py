"""Places of nodes in drawings: as given, by coordinates, or by their links, the same each time."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pandas as pd
import pytest

from planner.contract.layout import place_nodes


def tables(graph: nx.Graph) -> tuple[pd.DataFrame, pd.DataFrame]:
    nodes = pd.DataFrame({"node": [str(node) for node in graph]})
    links = pd.DataFrame([(str(a), str(b)) for a, b in graph.edges], columns=["tail", "head"])
    return nodes, links


def test_given_places_are_kept() -> None:
    nodes, links = tables(nx.path_graph(3))
    placed = place_nodes(
        nodes.assign(x=[1.0, 2.0, 3.0], y=[0.0, 1.0, 0.0], latitude=0.0, longitude=0.0), links
    )
    assert placed.loc["1"].tolist() == [2.0, 1.0]


def test_coordinates_are_projected_at_their_mean_latitude() -> None:
    nodes, links = tables(nx.path_graph(2))
    placed = place_nodes(nodes.assign(latitude=[60.0, 60.0], longitude=[0.0, 10.0]), links)
    assert placed["x"].tolist() == pytest.approx([0.0, 5.0])


@pytest.mark.parametrize("count", [1, 2, 3, 40, 90, 700])
def test_nodes_without_places_are_apart_and_have_the_same_places_each_time(count: int) -> None:
    nodes, links = tables(nx.convert_node_labels_to_integers(nx.path_graph(count)))
    placed = place_nodes(nodes, links)
    assert placed.index.tolist() == nodes["node"].tolist()
    assert np.isfinite(placed.to_numpy()).all()
    assert not placed.round(9).duplicated().any()
    again = place_nodes(nodes, links.sample(frac=1, random_state=1))  # in any order of the links
    pd.testing.assert_frame_equal(placed, again)


def test_a_network_in_parts_has_finite_places() -> None:
    nodes, links = tables(nx.disjoint_union(nx.cycle_graph(5), nx.empty_graph(3)))
    assert np.isfinite(place_nodes(nodes, links).to_numpy()).all()


def test_neighbours_are_near() -> None:
    graph = nx.grid_2d_graph(12, 12)
    nodes, links = tables(nx.convert_node_labels_to_integers(graph))
    placed = place_nodes(nodes, links)
    linked = np.hypot(*(placed.loc[links["tail"]].to_numpy() - placed.loc[links["head"]].to_numpy()).T)
    rng = np.random.default_rng(0)
    a, b = (placed.to_numpy()[rng.integers(len(placed), size=500)] for _ in range(2))
    assert np.median(linked) < 0.4 * np.median(np.hypot(*(a - b).T))
