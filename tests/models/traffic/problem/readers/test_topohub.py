"""Networks of the package topohub as tables."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.contract.tables import validate
from planner.errors import InputError
from planner_models.traffic.problem.readers import topohub
from planner_models.traffic.problem.readers.topohub import shortest_path_load
from planner_models.traffic.problem.schema import TABLES

NAMES = topohub.names()
SNDLIB = [name for name in NAMES if name.startswith("sndlib/")]
Arrays = dict[str, np.ndarray]
Triples = list[tuple[int, int, float]]
node = st.integers(0, 5)
links_strategy = st.lists(st.tuples(node, node, st.integers(1, 4).map(float)), max_size=18)
demands_strategy = st.lists(st.tuples(node, node, st.integers(1, 9).map(float)), max_size=6)


def raw(name: str) -> dict[str, Any]:
    graph: dict[str, Any] = json.loads(
        (files("topohub") / "data" / f"{name}.json").read_text(encoding="utf-8")
    )
    return graph


def test_every_collection_has_networks() -> None:
    assert {name.split("/")[0] for name in NAMES} == {"backbone", "caida", "gabriel", "sndlib", "topozoo"}
    assert len(SNDLIB) == 26


@pytest.mark.parametrize("name", [*SNDLIB, "topozoo/Uninett2011", "caida/2024-08/2847", "gabriel/5/0"])
def test_network_is_valid(name: str) -> None:
    tables = topohub.read(name)
    for table in TABLES:
        if table.name in tables:
            validate(table, tables[table.name])
    graph = raw(name)
    assert len(tables["nodes"]) == len(graph["nodes"])
    assert len(tables["links"]) == 2 * len(graph["edges"])
    nodes = set(tables["nodes"]["node"])
    assert nodes.issuperset(tables["links"]["tail"])
    assert nodes.issuperset(tables["demands"]["target"])


@pytest.mark.parametrize(
    ("name", "nodes", "links", "demands"),
    [
        ("sndlib/abilene", 12, 30, 132),  # a demand each way for every pair
        ("sndlib/germany50", 50, 176, 1324),  # 662 undirected ones
        ("sndlib/sun", 27, 102, 67),  # mostly one way, but two pairs go both ways: directed
        ("topozoo/Abilene", 11, 28, 110),  # gravity
    ],
)
def test_sizes(name: str, nodes: int, links: int, demands: int) -> None:
    tables = topohub.read(name)
    assert [len(tables[table]) for table in ("nodes", "links", "demands")] == [nodes, links, demands]


def test_undirected_demands_go_both_ways_unless_listed() -> None:
    both = topohub.read("sndlib/germany50")["demands"]
    rate = dict(zip(zip(both["source"], both["target"], strict=True), both["rate_mbps"], strict=True))
    assert all(rate[target, source] == value for (source, target), value in rate.items())
    assert len(topohub.read("sndlib/germany50", demand_direction="listed")["demands"]) == 662


@pytest.mark.parametrize("name", SNDLIB)
def test_loads_equal_those_that_topohub_states(name: str) -> None:
    """The package states each link's load in % (equal-cost multipath on hops, demands both ways)."""
    graph = raw(name)
    published = np.array([[e["ecmp_fwd"]["org"], e["ecmp_bwd"]["org"]] for e in graph["edges"]]).reshape(-1)
    tables = topohub.read(name, demand_direction="both")
    assert load(tables) / 10_000 * 100 == pytest.approx(published, abs=0.0051)


def load(tables: dict[str, pd.DataFrame]) -> np.ndarray:
    from planner_models.traffic.problem.readers.topohub import shortest_path_load

    index = pd.Index(tables["nodes"]["node"])
    links, demands = tables["links"], tables["demands"]
    return shortest_path_load(
        nodes=len(index),
        tail=index.get_indexer(links["tail"]),
        head=index.get_indexer(links["head"]),
        weight=links["weight"].to_numpy(),
        source=index.get_indexer(demands["source"]),
        target=index.get_indexer(demands["target"]),
        rate=demands["rate_mbps"].to_numpy(),
    )


@pytest.mark.parametrize("name", ["sndlib/germany50", "topozoo/Abilene"])
@pytest.mark.parametrize("weight", ["hops", "distance"])
def test_classes_are_the_smallest_that_fit_the_load(name: str, weight: Any) -> None:
    tables = topohub.read(name, weight=weight)
    carried, capacity = load(tables), tables["links"]["capacity_mbps"].to_numpy()
    assert carried.max() == pytest.approx(10_000)
    busier = np.maximum(carried[::2], carried[1::2])
    assert np.array_equal(capacity[::2], capacity[1::2])
    for edge_capacity, upper in zip(capacity[::2], busier, strict=True):
        assert edge_capacity == min(c for c in (1_000, 2_500, 4_000, 10_000) if c >= upper * (1 - 1e-9))


def test_peak_utilization_scales_only_demands() -> None:
    full, half = topohub.read("sndlib/abilene"), topohub.read("sndlib/abilene", peak_utilization=0.5)
    pd.testing.assert_frame_equal(full["links"], half["links"])
    assert half["demands"]["rate_mbps"].tolist() == pytest.approx((full["demands"]["rate_mbps"] / 2).tolist())
    assert load(half).max() == pytest.approx(5_000)


def test_unit_capacities() -> None:
    tables = topohub.read("sndlib/abilene", capacity="unit", peak_utilization=1.2)
    assert set(tables["links"]["capacity_mbps"]) == {1_000.0}
    assert load(tables).max() == pytest.approx(1_200)


def test_gravity_is_the_same_for_a_seed() -> None:
    item, same, other = (topohub.read("sndlib/abilene", demands="gravity", seed=seed) for seed in (1, 1, 2))
    for table in item:
        pd.testing.assert_frame_equal(item[table], same[table])
    assert not item["demands"].equals(other["demands"])
    assert len(item["demands"]) == 132


def test_pairs_keeps_the_largest() -> None:
    all_, few = topohub.read("sndlib/abilene")["demands"], topohub.read("sndlib/abilene", pairs=10)["demands"]
    top = all_.nlargest(10, "rate_mbps").sort_index()
    assert few[["source", "target"]].values.tolist() == top[["source", "target"]].values.tolist()


def test_lengths_and_positions() -> None:
    tables = topohub.read("sndlib/germany50", weight="distance")
    first = tables["links"].iloc[0]
    assert (first["tail"], first["head"], first["weight"]) == ("Aachen", "Koeln", 61.63)
    assert first["latency_ms"] == pytest.approx(0.30815)
    assert tables["nodes"].iloc[0].tolist() == ["Aachen", 50.76, 6.04]


def test_nodes_in_the_same_place_have_a_positive_distance() -> None:
    tables = topohub.read("topozoo/Uninett2011", weight="distance")
    assert tables["links"]["weight"].min() == 1.0
    assert tables["links"]["latency_ms"].min() == 0.0


@pytest.mark.parametrize("name", ["sndlib/atlanta", "sndlib/india35"])
def test_networks_in_pixels_have_neither_positions_nor_lengths(name: str) -> None:
    tables = topohub.read(name)
    assert list(tables["nodes"]) == ["node"]
    assert list(tables["links"]) == ["tail", "head", "capacity_mbps", "weight"]
    with pytest.raises(InputError) as caught:
        topohub.read(name, weight="distance")
    assert (
        str(caught.value) == f"weight: '{name}' is drawn in pixels: links have no length; set weight = 'hops'"
    )


def test_synthetic_graphs_have_lengths_on_a_plane() -> None:
    tables = topohub.read("gabriel/5/0", weight="distance")
    assert list(tables["nodes"]) == ["node"]
    assert "latency_ms" in tables["links"]


def test_labels_are_unique_and_keep_odd_names() -> None:
    twice = topohub.read("topozoo/Uninett2011")["nodes"]["node"]
    assert twice.is_unique
    assert {"UiO (0)", "UiO (1)"} <= set(twice)
    unnamed = topohub.read("caida/2024-08/2847")["nodes"]["node"]
    assert unnamed.is_unique
    assert not (unnamed.str.strip() == "").any()


def test_only_cities_of_a_backbone_have_demands() -> None:
    tables = topohub.read("backbone/south_america_nosc", pairs=100)
    graph = raw("backbone/south_america_nosc")
    cities = {node["name"] for node in graph["nodes"] if node["type"] == "City"}
    assert len(cities) < len(graph["nodes"])
    assert cities.issuperset(tables["demands"]["source"])


@pytest.mark.slow
def test_the_largest_backbone() -> None:
    tables = topohub.read("backbone/world")
    assert [len(tables[table]) for table in ("nodes", "links", "demands")] == [3815, 10378, 1246 * 1245]
    assert tables["nodes"]["node"].is_unique


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("germany50", "topohub: no such network 'germany50'; did you mean 'sndlib/germany50'?"),
        ("sndlib/Germany50", "topohub: no such network 'sndlib/Germany50'; did you mean 'sndlib/germany50'?"),
        ("sndlib/germny50", "topohub: no such network 'sndlib/germny50'; did you mean 'sndlib/germany50'?"),
        (
            "abilene",
            "topohub: no such network 'abilene'; did you mean 'sndlib/abilene' or 'topozoo/Abilene'?",
        ),
        ("", "topohub: no such network ''; there are 707, such as 'sndlib/germany50'"),
        ("../x", "topohub: no such network '../x'; there are 707, such as 'sndlib/germany50'"),
    ],
)
def test_unknown_name(name: str, line: str) -> None:
    with pytest.raises(InputError) as caught:
        topohub.read(name)
    assert str(caught.value) == line


def test_given_demands_where_there_are_none() -> None:
    with pytest.raises(InputError) as caught:
        topohub.read("topozoo/Abilene", demands="given")
    assert str(caught.value) == "demands: 'topozoo/Abilene' comes without demands; set demands = 'gravity'"


def test_a_missing_package_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(_: str) -> None:
        raise ModuleNotFoundError

    monkeypatch.setattr("importlib.resources.files", gone)
    with pytest.raises(InputError, match="pip install topohub"):
        topohub.names()


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
    monkeypatch.setattr("planner_models.traffic.problem.readers.topohub.MAX_DISTANCES", 14)
    assert shortest_path_load(nodes=7, **arrays(ring, demands)) == pytest.approx(full)
