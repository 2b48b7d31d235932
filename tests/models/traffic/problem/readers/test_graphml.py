"""GraphML files: attributes, units, directions, and faults."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import networkx as nx
import pandas as pd
import pytest

import planner
from planner.contract.notes import notes_of, observe_notes
from planner.errors import InputError
from planner_models.traffic.problem.readers import graphml

HEAD = '<?xml version="1.0" encoding="utf-8"?>\n<graphml xmlns="http://graphml.graphdrawing.org/xmlns">'
KEYS = """
<key attr.name="LinkSpeedRaw" attr.type="double" for="edge" id="d1"/>
<key attr.name="label" attr.type="string" for="node" id="d2"/>
<key attr.name="Latitude" attr.type="double" for="node" id="d3"/>
<key attr.name="Longitude" attr.type="double" for="node" id="d4"/>
<key attr.name="capacity" attr.type="double" for="edge" id="d5"/>
<key attr.name="weight" attr.type="double" for="edge" id="d6"/>
<key attr.name="latency_ms" attr.type="double" for="edge" id="d7"/>
"""
ZOO = """<graph edgedefault="undirected">
<node id="0"><data key="d2">Paris</data><data key="d3">48.85</data><data key="d4">2.35</data></node>
<node id="1"><data key="d2">Lyon</data><data key="d3">45.76</data><data key="d4">4.84</data></node>
<node id="2"><data key="d2">Lyon</data><data key="d3">45.7</data><data key="d4">4.9</data></node>
<node id="3"><data key="d3">43.3</data><data key="d4">5.37</data></node>
<edge source="0" target="1"><data key="d1">1000000000.0</data></edge>
<edge source="0" target="1"><data key="d1">2.5e9</data></edge>
<edge id="e3" source="1" target="2" directed="true"><data key="d5">40</data></edge>
<edge source="2" target="3"><data key="d1">155000000</data></edge>
</graph>
"""
# A-C-B weighs 20 and is shorter than A-B, so that C->B carries both demands
EDGES = (("n0", "n1", "30"), ("n0", "n2", "10"), ("n2", "n1", "10"))


def document(graph: str, keys: str = KEYS) -> str:
    return f"{HEAD}{keys}{graph}</graphml>"


def read(tmp_path: Path, text: str | bytes, **parameters: Any) -> dict[str, pd.DataFrame]:
    path = tmp_path / "net.graphml"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return graphml.read(path, **({"total_mbps": 100.0} | parameters))


def faults(tmp_path: Path, text: str | bytes, **parameters: Any) -> tuple[str, ...]:
    with pytest.raises(InputError) as caught:
        read(tmp_path, text, **parameters)
    return caught.value.faults


def test_topology_zoo(tmp_path: Path) -> None:
    tables = read(tmp_path, document(ZOO))
    nodes, links, demands = tables["nodes"], tables["links"], tables["demands"]
    assert nodes["node"].tolist() == ["Paris", "Lyon (1)", "Lyon (2)", "3"]
    assert nodes["latitude"].tolist() == [48.85, 45.76, 45.7, 43.3]
    assert nodes["longitude"].tolist() == [2.35, 4.84, 4.9, 5.37]
    assert list(zip(links["tail"], links["head"], links["capacity_mbps"], strict=True)) == [
        ("Paris", "Lyon (1)", 1000),
        ("Lyon (1)", "Paris", 1000),
        ("Paris", "Lyon (1)", 2500),
        ("Lyon (1)", "Paris", 2500),
        ("Lyon (1)", "Lyon (2)", 40),
        ("Lyon (2)", "3", 155),
        ("3", "Lyon (2)", 155),
    ]
    assert list(links) == ["tail", "head", "capacity_mbps"]
    assert demands["rate_mbps"].sum() == pytest.approx(100)
    # the one-way link leads nobody back
    assert not ((demands["source"] == "3") & (demands["target"] == "Paris")).any()


def test_the_same_edges_as_networkx(tmp_path: Path) -> None:
    text = document(ZOO.replace(' directed="true"', ""))
    links = read(tmp_path, text, default_capacity_mbps=1)["links"]
    graph = nx.parse_graphml(text, force_multigraph=True)
    name = dict(zip(["0", "1", "2", "3"], ["Paris", "Lyon (1)", "Lyon (2)", "3"], strict=True))
    theirs = sorted((name[a], name[b]) for edge in graph.edges() for a, b in (edge, edge[::-1]))
    assert sorted(zip(links["tail"], links["head"], strict=True)) == theirs


@pytest.mark.parametrize(
    ("unit", "mbps"), [("bps", 4e-5), ("kbps", 0.04), ("mbps", 40.0), ("gbps", 40_000.0)]
)
def test_units(tmp_path: Path, unit: str, mbps: float) -> None:
    links = read(tmp_path, document(ZOO), capacity_unit=unit)["links"]
    assert links["capacity_mbps"].tolist() == [1000, 1000, 2500, 2500, mbps, 155, 155]


def test_a_capacity_by_name_is_in_the_unit_given(tmp_path: Path) -> None:
    text = document(ZOO.replace('"d1"', '"d5"'))
    assert (
        read(tmp_path, text, capacity="capacity", capacity_unit="bps")["links"]["capacity_mbps"].max() == 2500
    )


def test_weights_and_latencies(tmp_path: Path) -> None:
    edges = (
        '<edge source="a" target="b">'
        '<data key="d5">1</data><data key="d6">7</data><data key="d7">1.5</data></edge>'
        '<edge source="b" target="a"><data key="d5">1</data><data key="d7">2.5</data></edge>'
    )
    text = document(f'<graph edgedefault="directed"><node id="a"/><node id="b"/>{edges}</graph>')
    links = read(tmp_path, text)["links"]
    assert links["weight"].tolist() == [7, 1]
    assert links["latency_ms"].tolist() == [1.5, 2.5]


def test_an_incomplete_column_is_left_out_with_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    tables = read(tmp_path, document(ZOO.replace('<data key="d3">48.85</data>', "")))
    assert list(tables["nodes"]) == ["node"]
    assert "net.graphml: latitude is left out: 1 of 4 are missing" in caplog.text


def test_defaults_of_keys(tmp_path: Path) -> None:
    keys = '<key id="c" for="edge" attr.name="capacity" attr.type="double"><default>8</default></key>'
    graph = '<graph edgedefault="directed"><node id="a"/><node id="b"/><edge source="a" target="b"/></graph>'
    assert read(tmp_path, document(graph, keys))["links"]["capacity_mbps"].tolist() == [8]


def test_latin_1_as_the_file_declares(tmp_path: Path) -> None:
    text = document(ZOO.replace("Paris", "Orléans")).replace("utf-8", "ISO-8859-1").encode("latin-1")
    assert read(tmp_path, text)["nodes"]["node"][0] == "Orléans"


def test_demands_from_a_file(tmp_path: Path) -> None:
    csv = tmp_path / "d.csv"
    csv.write_text("source,target,rate_mbps\nParis,3,5\n", encoding="utf-8")
    demands = read(tmp_path, document(ZOO), demands=csv, total_mbps=None)["demands"]
    assert demands.values.tolist() == [["Paris", "3", 5.0]]


def test_faults_of_both_files_at_once(tmp_path: Path) -> None:
    missing = tmp_path / "d.csv"
    result = faults(tmp_path, document(ZOO), demands=missing, total_mbps=None, label="Label")
    assert result == (
        "net.graphml: no node has the attribute 'Label'; did you mean 'label'?",
        f"{missing}: no such file",
    )


def test_gravity_is_the_same_for_a_seed_and_adds_up_to_the_total(tmp_path: Path) -> None:
    text = document(ZOO)
    item, same, other = (read(tmp_path, text, seed=seed, pairs=3)["demands"] for seed in (1, 1, 2))
    pd.testing.assert_frame_equal(item, same)
    assert not item.equals(other)
    assert len(item) == 3
    assert item["rate_mbps"].sum() == pytest.approx(100)


def test_demands_need_a_file_or_a_total(tmp_path: Path) -> None:
    (line,) = faults(tmp_path, document(ZOO), total_mbps=None)
    assert line == (
        "net.graphml: GraphML holds no demands; set demands to a file with source, target, rate_mbps, "
        "or total_mbps to draw them by gravity"
    )
    (line,) = faults(tmp_path, document(ZOO), demands=tmp_path / "d.csv")
    assert line == "net.graphml: demands and total_mbps are both set; set one of them"


def test_capacities_that_are_missing(tmp_path: Path) -> None:
    (line,) = faults(tmp_path, document(ZOO), capacity="LinkSpeedRaw")
    assert line == (
        "net.graphml: 1 of 4 edges have no LinkSpeedRaw; "
        "set default_capacity_mbps, or capacity to the attribute that holds it"
    )
    links = read(tmp_path, document(ZOO), capacity="LinkSpeedRaw", default_capacity_mbps=7)["links"]
    assert links["capacity_mbps"].tolist() == [1000, 1000, 2500, 2500, 7, 155, 155]
    bare = document('<graph><node id="a"/><node id="b"/><edge source="a" target="b"/></graph>')
    (line,) = faults(tmp_path, bare)
    assert line.startswith(
        "net.graphml: 1 of 1 edges have no LinkSpeedRaw, capacity_mbps, capacity or bandwidth; "
    )


def test_names_of_attributes(tmp_path: Path) -> None:
    result = faults(tmp_path, document(ZOO), capacity="capcity", label="Label")
    assert result == (
        "net.graphml: no node has the attribute 'Label'; did you mean 'label'?",
        "net.graphml: no edge has the attribute 'capcity'; did you mean 'capacity'?",
    )


def test_every_fault_at_once(tmp_path: Path) -> None:
    graph = """<graph edgedefault="undirected">
    <node id="n1"><data key="d3">north</data></node>
    <node id="n1"/><node/><node id="n2"><data key="d22">x</data></node>
    <edge id="e1" source="n1" target="n22"><data key="d1">fast</data></edge>
    <edge source="n1"><data key="d1">inf</data></edge>
    <hyperedge/>
    </graph>"""
    assert faults(tmp_path, document(graph)) == (
        "net.graphml: node 'n2': data has key 'd22', must be a declared key; did you mean 'd2'?",
        "net.graphml: has a hyperedge, must have edges of two ends only",
        "net.graphml: node 'n1' is there already",
        "net.graphml: node 3: id is missing",
        "net.graphml: node 'n1': Latitude is 'north', must be a number",
        "net.graphml: edge 'e1': target is 'n22', must be a node's id; did you mean 'n2'?",
        "net.graphml: edge 2: target is missing",
        "net.graphml: edge 'e1': LinkSpeedRaw is 'fast', must be a number",
        "net.graphml: edge 2: LinkSpeedRaw is 'inf', must be a number; for no limit write 1e+18",
    )


def test_of_many_similar_faults_only_the_first_are_listed(tmp_path: Path) -> None:
    edges = "".join(f'<edge source="a" target="b"><data key="d1">x{i}</data></edge>' for i in range(9))
    result = faults(tmp_path, document(f'<graph><node id="a"/><node id="b"/>{edges}</graph>'))
    assert result[4:] == (
        "net.graphml: edge 5: LinkSpeedRaw is 'x4', must be a number",
        "net.graphml: 4 more where LinkSpeedRaw must be a number",
    )


@pytest.mark.parametrize(
    ("graphs", "line"),
    [
        ("", "net.graphml: has 0 graphs, must have 1"),
        ("<graph/><graph/>", "net.graphml: has 2 graphs, must have 1"),
    ],
)
def test_one_graph(tmp_path: Path, graphs: str, line: str) -> None:
    assert faults(tmp_path, document(graphs)) == (line,)


def test_nested_graphs_are_faults(tmp_path: Path) -> None:
    result = faults(tmp_path, document('<graph><node id="a"><graph/></node></graph>'))
    assert result == ("net.graphml: node 'a': holds a graph of its own, must hold none",)


def document_of_edge_attributes(*attributes: str, edges: tuple[tuple[str, ...], ...], more: str = "") -> str:
    """Return a file with capacities of 100 and further attributes of edges, by name."""
    names = ("capacity", *attributes)
    keys = [f'<key id="k{row}" for="edge" attr.name="{name}"/>' for row, name in enumerate(names)]
    nodes = [f'<node id="n{row}"><data key="d">{name}</data></node>' for row, name in enumerate("ABC")]
    lines = []
    for source, target, *values in edges:
        data = [f'<data key="k{row}">{value}</data>' for row, value in enumerate(("100", *values)) if value]
        lines.append(f'<edge source="{source}" target="{target}">{"".join(data)}</edge>')
    label = '<key id="d" for="node" attr.name="label"/><key id="g" for="graph" attr.name="Network"/>'
    return (
        f'<graphml>{"".join(keys)}{label}<key id="c" for="node" attr.name="Country"/>'
        f'<graph edgedefault="undirected">{more}{"".join(nodes)}{"".join(lines)}</graph></graphml>'
    )


def read_of_edge_attributes(
    folder: Path, text: str, **parameters: Any
) -> tuple[Mapping[str, pd.DataFrame], list[str]]:
    """Return the tables of a file, and the notes on it."""
    path = folder / "net.graphml"
    path.write_text(text)
    notes: list[str] = []
    with observe_notes(notes.append):
        settings: dict[str, Any] = {"total_mbps": 100.0, "capacity_unit": "mbps"} | parameters
        tables = graphml.read(path, **settings)
    return tables, notes


def refuse(folder: Path, text: str, **parameters: Any) -> tuple[str, ...]:
    with pytest.raises(InputError) as caught:
        read_of_edge_attributes(folder, text, **parameters)
    return caught.value.faults


@pytest.mark.parametrize("name", ["metric", "igp_metric", "OSPF cost", "te_metric"])
def test_a_routing_metric_of_another_name_decides_the_routes(tmp_path: Path, name: str) -> None:
    (tmp_path / "net.graphml").write_text(document_of_edge_attributes(name, edges=EDGES))
    (tmp_path / "demands.csv").write_text("source,target,rate_mbps\nA,B,80\nC,B,40\n")
    scenario = tmp_path / "scenario.toml"
    scenario.write_text(
        'system = "traffic"\n[problem]\nsource = "graphml"\npath = "net.graphml"\n'
        'demands = "demands.csv"\n[designs.ecmp]\n'
    )
    result = planner.solve(scenario)
    assert result.metrics["max_utilization"] == pytest.approx((80 + 40) / 100)
    assert notes_of(result.problem) == [
        "assumed: net.graphml: edge attribute 'capacity' is in Mbit/s; capacity_unit sets another unit",
        f"net.graphml: read edge attribute '{name}' as weight",
    ]


def test_a_cost_without_a_metric_is_asked_about(tmp_path: Path) -> None:
    text = document_of_edge_attributes("cost", edges=EDGES)
    (fault,) = refuse(tmp_path, text)
    assert fault == (
        "net.graphml: edge attribute 'cost' may be cost (price of carrying traffic, per Mbit/s) or weight "
        '(routing metric), and no attribute is weight: set weight = "cost" or cost = "cost"'
    )
    tables, notes = read_of_edge_attributes(tmp_path, text, weight="cost")
    assert tables["links"]["weight"].tolist() == [30, 30, 10, 10, 10, 10]
    assert "cost" not in tables["links"]
    assert notes == []
    tables, notes = read_of_edge_attributes(tmp_path, text, cost="cost")
    assert tables["links"]["cost"].tolist() == [30, 30, 10, 10, 10, 10]
    assert notes == ["assumed: net.graphml: all links weigh 1"]


def test_a_cost_beside_a_metric_is_a_price(tmp_path: Path) -> None:
    edges = tuple((*edge, str(row)) for row, edge in enumerate(EDGES))
    links = read_of_edge_attributes(tmp_path, document_of_edge_attributes("metric", "cost", edges=edges))[0][
        "links"
    ]
    assert links["weight"].tolist() == [30, 30, 10, 10, 10, 10]
    assert links["cost"].tolist() == [0, 0, 1, 1, 2, 2]


def test_several_metrics_are_asked_about(tmp_path: Path) -> None:
    text = document_of_edge_attributes("igp_metric", "te_metric", edges=tuple((*edge, "1") for edge in EDGES))
    (fault,) = refuse(tmp_path, text)
    assert fault == (
        "net.graphml: edge attributes 'igp_metric' and 'te_metric' may both be weight; "
        "set weight to one of them"
    )
    assert set(read_of_edge_attributes(tmp_path, text, weight="te_metric")[0]["links"]["weight"]) == {1}


def test_an_attribute_that_no_edge_has_is_named(tmp_path: Path) -> None:
    (fault,) = refuse(tmp_path, document_of_edge_attributes("metric", edges=EDGES), weight="metrc")
    assert fault == "net.graphml: no edge has the attribute 'metrc'; did you mean 'metric'?"


def test_edges_without_a_metric_are_counted(tmp_path: Path) -> None:
    tables, notes = read_of_edge_attributes(
        tmp_path, document_of_edge_attributes("metric", edges=(*EDGES[:2], ("n2", "n1", "")))
    )
    assert tables["links"]["weight"].tolist() == [30, 30, 10, 10, 1, 1]
    assert notes[-1] == "assumed: net.graphml: 1 of 3 edges have no 'metric' and weigh 1"


def test_every_attribute_that_is_not_read_is_named_once(tmp_path: Path) -> None:
    edges = tuple((*edge, "fibre", "x") for edge in EDGES)
    more = '<data key="g">Net</data><node id="n3"><data key="d">D</data><data key="c">CH</data></node>'
    _, notes = read_of_edge_attributes(
        tmp_path, document_of_edge_attributes("weight", "kind", "owner", edges=edges, more=more)
    )
    assert notes == [
        "net.graphml: ignored graph attributes 'Network'",
        "net.graphml: ignored node attributes 'Country'",
        "net.graphml: ignored edge attributes 'kind', 'owner'",
    ]


@pytest.mark.parametrize(("name", "mbps"), [("capacity_gbps", 7000), ("Speed (kbit/s)", 0.007), ("speed", 7)])
def test_a_unit_in_the_name_of_a_capacity_is_used(tmp_path: Path, name: str, mbps: float) -> None:
    text = document_of_edge_attributes(name, edges=tuple((*edge[:2], "7") for edge in EDGES))
    tables, notes = read_of_edge_attributes(tmp_path, text, capacity=name, capacity_unit=None)
    assert tables["links"]["capacity_mbps"].tolist() == [mbps] * 6
    assumed = f"assumed: net.graphml: edge attribute '{name}' is in Mbit/s; capacity_unit sets another unit"
    assert (assumed in notes) == (name == "speed")


def test_loops_and_values_are_named_as_the_file_names_its_edges(tmp_path: Path) -> None:
    edges = (("n0", "n1", "30"), ("n1", "n1", "10"), ("n2", "n1", "0"))
    text = document_of_edge_attributes("metric", edges=edges).replace(
        '<edge source="n2"', '<edge id="e9" source="n2"'
    )
    assert refuse(tmp_path, text) == (
        "net.graphml: edge 2: source and target are both 'n1', must differ; delete the edge",
        "net.graphml: edge 'e9': metric is '0', must be greater than 0",
    )


@pytest.mark.parametrize("name", ["Bandwidth_Gbps", "speed (Gbit/s)", "Link Capacity [Gb/s]"])
def test_a_capacity_of_another_name_with_its_unit_is_read(tmp_path: Path, name: str) -> None:
    keys = KEYS.replace("LinkSpeedRaw", name)
    graph = ZOO.replace('<data key="d5">40', '<data key="d1">40').replace("0000000.0", "").replace("e9", "")
    notes: list[str] = []
    with observe_notes(notes.append):
        links = read(tmp_path, document(graph, keys))["links"]
    assert links["capacity_mbps"].iloc[:3].tolist() == [100_000.0, 100_000.0, 2_500.0]
    assert f"net.graphml: read edge attribute '{name}' as capacity_mbps" in notes
