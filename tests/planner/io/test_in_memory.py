"""Tables from data in memory: graphs, matrices, mappings and records."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import pytest

import planner
from planner.contract.notes import notes_of
from planner.errors import InputError
from planner.io.in_memory import to_graph
from planner_models.brokering import Brokering
from planner_models.livevideo import LiveVideo
from planner_models.traffic import Traffic


def triangle(**names: str) -> nx.Graph:
    graph = nx.Graph()
    capacity, latency = names.get("capacity", "capacity_gbps"), names.get("latency", "latency_us")
    for tail, head, rate, delay in (("a", "b", 10, 500), ("b", "c", 5, 100), ("a", "c", 1, 9)):
        graph.add_edge(tail, head, **{capacity: rate, latency: delay})
    return graph


def tiers() -> nx.DiGraph:
    graph = nx.DiGraph()
    for name, tier in (("S", "source"), ("R", "edge"), ("C", "group")):
        graph.add_node(name, tier=tier)
    graph.add_edge("S", "R", capacity=1.0, cost=2.0)
    graph.add_edge("R", "C", capacity=0.01)
    return graph


def test_an_edge_without_direction_is_a_link_each_way_in_our_units() -> None:
    problem = Traffic.from_networkx(triangle(), {("a", "c"): 3.0}, unit="Gbit/s")
    links = problem.links.set_index(["tail", "head"])
    assert len(links) == 6
    assert links.loc[("c", "b"), "capacity_mbps"] == 5_000.0
    assert links.loc[("a", "b"), "latency_ms"] == 0.5
    assert problem.demands.to_dict(orient="records") == [{"source": "a", "target": "c", "rate_mbps": 3_000.0}]


def test_what_is_converted_is_kept_with_the_problem_as_notes() -> None:
    problem = Traffic.from_networkx(triangle(), {("a", "c"): 3.0}, unit="Gbit/s")
    edges, weights, demands = notes_of(problem)
    assert weights == "assumed: edges of the graph: all links weigh 1"
    assert edges.startswith("edges of the graph: read columns 'capacity_gbps' as capacity_mbps (times 1,000)")
    assert "'latency_us' as latency_ms (divided by 1,000)" in edges
    assert demands == "demands: read columns 'rate (Gbit/s)' as rate_mbps (times 1,000)"
    result = planner.solve(problem, design="ecmp", changes={"problem.scale": 0.5})
    assert notes_of(result.problem) == notes_of(problem)


@pytest.mark.parametrize("attribute", ["capacity_mbps", "bandwidth_mbps", "Capacity (Mbit/s)"])
def test_a_unit_in_the_name_of_an_attribute_goes_before_the_argument(attribute: str) -> None:
    named = None if attribute == "capacity_mbps" else attribute
    graph = triangle(capacity=attribute)
    problem = Traffic.from_networkx(graph, {("a", "c"): 3.0}, unit="Gbit/s", capacity=named)
    assert sorted(problem.capacity_mbps) == [1.0, 1.0, 5.0, 5.0, 10.0, 10.0]


MATRIX = np.array([[0.0, 1.0, 2.0], [0.0, 0.0, 0.0], [4.0, 0.0, 0.0]])
DEMANDS: dict[str, Any] = {
    "a mapping": {("a", "b"): 1.0, ("a", "c"): 2.0, ("c", "a"): 4.0},
    "a series": pd.Series({("a", "b"): 1.0, ("a", "c"): 2.0, ("c", "a"): 4.0}),
    "an array": MATRIX,
    "lists": MATRIX.tolist(),
    "a matrix with names": pd.DataFrame(MATRIX, index=list("abc"), columns=list("abc")),
    "a table": pd.DataFrame(
        {"source": ["a", "a", "c"], "target": ["b", "c", "a"], "rate_gbps": [1.0, 2.0, 4.0]}
    ),
    "records": [
        {"source": "a", "target": "b", "rate_mbps": 1_000.0},
        {"source": "a", "target": "c", "rate_mbps": 2_000.0},
        {"source": "c", "target": "a", "rate_mbps": 4_000.0},
    ],
}


@pytest.mark.parametrize("kind", DEMANDS)
def test_demands_of_every_kind_are_the_same(kind: str) -> None:
    graph = triangle()
    problem = Traffic.from_networkx(graph, DEMANDS[kind], unit="Gbit/s")
    rates = problem.to_networkx().graph["demands"]
    assert rates == {("a", "b"): 1_000.0, ("a", "c"): 2_000.0, ("c", "a"): 4_000.0}


def test_a_graph_becomes_a_problem_and_the_same_graph_again() -> None:
    problem = planner.generate("traffic", "abilene")
    assert isinstance(problem, Traffic)
    graph = problem.to_networkx()
    again = Traffic.from_networkx(graph, graph.graph["demands"], unit="Mbit/s")
    for name, frame in problem.to_tables().items():
        order = list(frame.columns)
        item, other = (
            table.sort_values(order[:2], ignore_index=True)[order].astype({order[0]: str})
            for table in (frame, again.to_tables()[name])
        )
        pd.testing.assert_frame_equal(item, other, check_dtype=False)


def test_parallel_edges_are_parallel_links() -> None:
    graph = nx.MultiDiGraph()
    graph.add_edge(1, 2, capacity_mbps=1.0)
    graph.add_edge(1, 2, capacity_mbps=2.0)
    problem = Traffic.from_networkx(graph, {(1, 2): 3.0}, unit="Mbit/s")
    assert problem.link_labels == ["1->2", "1->2#2"]
    assert planner.solve(problem).metrics["delivered_mbps"] == pytest.approx(3.0)


def test_plans_on_networks_are_graphs_with_load() -> None:
    run = planner.solve(Traffic.from_networkx(triangle(), {("a", "c"): 3.0}, unit="Gbit/s"), design="ecmp")
    (edge,) = run.to_networkx()["a"]["c"].values()
    assert edge["load_mbps"] == pytest.approx(3_000.0)
    assert edge["utilization"] == pytest.approx(3.0)
    video = planner.solve(LiveVideo.from_networkx(tiers(), {("C", "news", 3000): 5}, unit="Gbit/s"))
    assert [edge["load_mbps"] for *_, edge in video.to_networkx().edges(data=True)] == [3.0, 3.0]
    with pytest.raises(InputError, match="circuits: this system has no network"):
        planner.solve("circuits/hotspots").to_networkx()


def test_video_has_defaults_for_objects_and_costs() -> None:
    problem = LiveVideo.from_networkx(tiers(), {("C", "news", 3000): 5}, unit="Gbit/s")
    assert problem.links["capacity_mbps"].tolist() == [1_000.0, 10.0]
    assert problem.links["cost"].tolist() == [2.0, 0.0]
    assert problem.objects[["channel", "bitrate_kbps", "priority"]].to_numpy().tolist() == [
        ["news", 3000.0, 1.0]
    ]


def test_values_that_are_missing_are_no_attributes_of_a_graph() -> None:
    nodes = pd.DataFrame({"node": ["a", "b"], "latitude": [1.0, np.nan]})
    links = pd.DataFrame({"tail": ["a"], "head": ["b"], "cost": [np.nan]})
    graph = to_graph(nodes, links, {"load": np.array([2.0])})
    assert dict(graph.nodes(data=True)) == {"a": {"latitude": 1.0}, "b": {}}
    assert [data for *_, data in graph.edges(data=True)] == [{"load": 2.0}]


def traffic(demands: Any, graph: nx.Graph | None = None, **given: Any) -> Traffic:
    return Traffic.from_networkx(triangle() if graph is None else graph, demands, **given)


FAULTS: dict[str, tuple[Callable[[], Any], str]] = {
    "a rate without a unit": (
        lambda: traffic({("a", "c"): 3.0}),
        'demands: its unit is unknown; give unit="Mbit/s" or another rate',
    ),
    "a capacity without a unit": (
        lambda: traffic(DEMANDS["a table"], triangle(capacity="capacity")),
        "edge attribute 'capacity': its unit is unknown",
    ),
    "a unit of data": (lambda: traffic({("a", "c"): 3.0}, unit="MB"), "unit: 'MB' is no unit of rate"),
    "an unknown node": (
        lambda: traffic({("a", "x"): 3.0}, unit="Mbit/s"),
        "demands row 1: target 'x' is no node of the network",
    ),
    "a matrix of another size": (
        lambda: traffic(np.zeros((2, 2)), unit="Mbit/s"),
        "demands: has shape (2, 2), must be (3, 3)",
    ),
    "a matrix with a hole": (
        lambda: traffic(np.full((3, 3), np.nan), unit="Mbit/s"),
        "demands row 1 column 1: is not a number",
    ),
    "no pair": (lambda: traffic({"ac": 3.0}, unit="Mbit/s"), "demands: 'ac' is no pair (source, target)"),
    "an attribute that is not there": (
        lambda: traffic({}, unit="Mbit/s", capacity="capacity_gps"),
        "graph: no edge has the attribute 'capacity_gps'; did you mean 'capacity_gbps'?",
    ),
    "no capacity": (
        lambda: traffic({(0, 2): 1.0}, nx.path_graph(3), unit="Mbit/s"),
        "edges of the graph: column 'capacity_mbps' is missing",
    ),
    "no edges": (lambda: traffic({}, nx.empty_graph(2), unit="Mbit/s"), "graph: has no edges"),
    "no nodes": (lambda: traffic({}, nx.Graph(), unit="Mbit/s"), "graph: has no nodes"),
    "video both ways": (
        lambda: LiveVideo.from_networkx(triangle(), {}, unit="Mbit/s"),
        "graph: its edges have no direction",
    ),
    "missing tables": (
        lambda: Brokering.from_tables({"clients": []}),
        "locations: is missing\nclusters: is missing",
    ),
    "an unknown table": (
        lambda: Traffic.from_tables({"link": [], "demands": []}),
        "link: no such table; did you mean 'links'?\nlinks: is missing",
    ),
    "no table": (lambda: Traffic.from_tables({"links": 3, "demands": []}), "links: is no table"),
}


@pytest.mark.parametrize("case", FAULTS)
def test_faults_of_data_in_memory_are_one_line_each(case: str) -> None:
    make, message = FAULTS[case]
    with pytest.raises(InputError) as raised:
        make()
    assert message in str(raised.value)


def test_a_metric_of_another_name_is_read_and_what_is_not_read_is_named() -> None:
    graph = nx.Graph()
    graph.add_node("a", country="CH")
    for tail, head, metric in (("a", "b", 30), ("a", "c", 10), ("c", "b", 10)):
        graph.add_edge(tail, head, capacity_mbps=100, igp_metric=metric, cost=metric, owner="x")
    demands = {("a", "b"): 80.0, ("c", "b"): 40.0}
    problem = Traffic.from_networkx(graph, demands, unit="Mbit/s")
    path = nx.shortest_path(graph, "a", "b", weight="igp_metric")
    assert path == ["a", "c", "b"]
    # both demands share c->b
    assert planner.solve(problem, design="ecmp").metrics["max_utilization"] == pytest.approx(1.2)
    assert problem.weight.tolist() == problem.links["cost"].tolist() == [30, 30, 10, 10, 10, 10]
    notes = notes_of(problem)
    assert "edges of the graph: read columns 'igp_metric' as weight" in notes
    assert "graph: ignored edge attributes 'owner'" in notes
    assert "graph: ignored node attributes 'country'" in notes
    assert not [note for note in notes if note.startswith("assumed: edges")]


def test_a_cost_without_a_metric_is_a_price_and_said_so() -> None:
    graph = nx.Graph()
    graph.add_edge("a", "b", capacity_mbps=100, cost=3)
    said = notes_of(Traffic.from_networkx(graph, {("a", "b"): 1.0}, unit="Mbit/s"))
    weigh = "assumed: edges of the graph: all links weigh 1"
    price = (
        "assumed: edges of the graph: 'cost' is cost (price of carrying traffic, per Mbit/s), "
        "not weight (routing metric)"
    )
    assert [note for note in said if note.startswith("assumed: ")] == [price, weigh]
    named = notes_of(Traffic.from_networkx(graph, {("a", "b"): 1.0}, unit="Mbit/s", weight="cost"))
    assert not [note for note in named if note.startswith("assumed: ")]


def test_several_metrics_of_edges_are_asked_about() -> None:
    graph = nx.Graph()
    graph.add_edge("a", "b", capacity_mbps=100, igp_metric=3, te_metric=4)
    with pytest.raises(InputError, match="'igp_metric' and 'te_metric' may both be weight; name one of them"):
        Traffic.from_networkx(graph, {("a", "b"): 1.0}, unit="Mbit/s")
    assert Traffic.from_networkx(graph, {("a", "b"): 1.0}, unit="Mbit/s", weight="te_metric").weight[0] == 4
