"""Graphs in files of other tools: the same network in every format, and each fault in one line."""

from __future__ import annotations

import json
import pickle
import re
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest

from planner.contract.notes import observe_notes
from planner.errors import InputError
from planner_models.traffic.problem.readers import graphs, net2plan

GML = """# a comment
graph [
  directed 0
  node [ id 0 label "a" Longitude 2.0 Latitude 48.8 graphics [ x 1 y 2 ] ]
  node [ id 1 label "b" Longitude 4.8 Latitude 45.7 ]
  node [ id 2 label "c &#38; d" Longitude 3.0 Latitude 50.6 ]
  edge [ source 0 target 1 bandwidth "10G" weight 3 ]
  edge [ source 0 target 1 bandwidth "10G" weight 3 ]
  edge [ source 1 target 2 bandwidth 4000 weight 1 ]
]
"""
DOT = """// drawn by hand
graph net {
  rankdir=LR
  node [shape=box];
  edge [label="10G", weight=3]
  a -- b; a:p1 -- b:p2
  subgraph cluster_1 { label=east; edge [label="4 Gbit/s", weight=1]; b -- c }
  "c" [comment="a \\"quoted\\" text"]
}
"""
CONTAINERLAB = """name: lab
topology:
  nodes:
    a: {kind: linux}
    b: {kind: linux}
    c: {kind: linux}
  links:
    - endpoints: ["a:eth1", "b:eth1"]
      labels: {bandwidth: 10G}
    - endpoints: ["a:eth2", "b:eth2"]
      labels: {bandwidth: 10G}
    - type: veth
      endpoints:
        - {node: b, interface: eth3}
        - {node: c, interface: eth1}
      vars: {bandwidth: 4 Gbps}
    - endpoints: ["c:eth9", "host:c-eth9"]
"""
GEXF = """<?xml version="1.0" encoding="UTF-8"?>
<gexf xmlns="http://gexf.net/1.3" version="1.3">
  <graph defaultedgetype="undirected">
    <attributes class="node"><attribute id="0" title="Latitude" type="double"/></attributes>
    <attributes class="edge">
      <attribute id="0" title="bandwidth" type="string"><default>10G</default></attribute>
    </attributes>
    <nodes>
      <node id="1" label="a"><attvalues><attvalue for="0" value="48.8"/></attvalues></node>
      <node id="2" label="b"/>
      <node id="3" label="c"/>
    </nodes>
    <edges>
      <edge source="1" target="2" weight="3"/>
      <edge source="1" target="2" weight="3" type="mutual"/>
      <edge source="2" target="3" weight="1">
        <attvalues><attvalue for="0" value="4000"/></attvalues>
      </edge>
    </edges>
  </graph>
</gexf>
"""
N2P = """<?xml version='1.0' encoding='UTF-8'?>
<network description="" name="three" version="6" nextElementId="20">
  <node id="2" name="a" xCoord="2.0" yCoord="48.8" isUp="true"/>
  <node id="3" name="b" xCoord="4.8" yCoord="45.7" isUp="true"/>
  <node id="4" name="c" xCoord="3.0" yCoord="50.6" isUp="true"/>
  <layer id="1" name="" isDefaultLayer="true" linkCapacityUnitsName="Gbps" demandTrafficUnitsName="Mbps">
    <link id="5" originNodeId="2" destinationNodeId="3" capacity="10" lengthInKm="400"
          propagationSpeedInKmPerSecond="200000.0" isUp="true"/>
    <link id="6" originNodeId="3" destinationNodeId="4" capacity="4" lengthInKm="200"
          propagationSpeedInKmPerSecond="200000.0" isUp="true"/>
    <link id="7" originNodeId="4" destinationNodeId="2" capacity="4" lengthInKm="200" isUp="false"/>
    <demand id="8" ingressNodeId="2" egressNodeId="4" offeredTraffic="500"/>
    <demand id="9" ingressNodeId="2" egressNodeId="4" offeredTraffic="250"/>
  </layer>
</network>
"""


def node_link() -> str:
    """Return what networkx writes of the same graph."""
    graph = nx.MultiGraph()
    graph.add_nodes_from("abc")
    for tail, head, capacity, weight in (("a", "b", 10_000, 3), ("a", "b", 10_000, 3), ("b", "c", 4_000, 1)):
        graph.add_edge(tail, head, capacity=capacity, weight=weight)
    return json.dumps(nx.node_link_data(graph))


TWO = "graph [ node [ id 0 ] node [ id 1 ]"
LAB = "topology:\n  nodes: {a: }\n  links:\n"
FILES: dict[str, str] = {
    "net.gml": GML,
    "net.dot": DOT,
    "lab.clab.yml": CONTAINERLAB,
    "net.json": node_link(),
    "net.gexf": GEXF,
}


@pytest.mark.parametrize("name", FILES)
def test_a_graph_is_the_same_network_in_every_format(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(FILES[name])
    tables = graphs.read(path, total_mbps=100.0)
    links = tables["links"]
    assert links["capacity_mbps"].tolist() == [10_000.0] * 4 + [4_000.0] * 2
    if name != "lab.clab.yml":
        assert links["weight"].tolist() == [3.0] * 4 + [1.0] * 2
    third = "c & d" if name == "net.gml" else "c"
    assert list(zip(links["tail"], links["head"], strict=True))[:2] == [("a", "b"), ("b", "a")]
    assert tables["nodes"]["node"].tolist() == ["a", "b", third]
    assert tables["demands"]["rate_mbps"].sum() == pytest.approx(100.0)


def test_gml_of_networkx_reads_back(tmp_path: Path) -> None:
    graph = nx.DiGraph()
    graph.add_edge("x", "ü", capacity=5.0)
    graph.add_edge("ü", "x", capacity=7.0)
    path = tmp_path / "net.gml"
    nx.write_gml(graph, path)
    links = graphs.read(path, total_mbps=1.0)["links"]
    assert links["head"].tolist() == ["ü", "x"]
    assert links["capacity_mbps"].tolist() == [5.0, 7.0]


def test_gexf_of_networkx_reads_back(tmp_path: Path) -> None:
    graph = nx.DiGraph()
    graph.add_edge("x", "ü", capacity=5.0)
    graph.add_edge("ü", "x", capacity=7.0)
    path = tmp_path / "net.gexf"
    nx.write_gexf(graph, path)
    links = graphs.read(path, total_mbps=1.0)["links"]
    assert links["head"].tolist() == ["ü", "x"]
    assert links["capacity_mbps"].tolist() == [5.0, 7.0]


def test_links_of_d3_name_numbers_of_nodes(tmp_path: Path) -> None:
    document: dict[str, Any] = {
        "nodes": [{"name": "a"}, {"name": "b"}],
        "links": [{"source": 0, "target": 1, "capacity_gbps": 2}],
    }
    (tmp_path / "net.json").write_text(json.dumps(document))
    links = graphs.read(tmp_path / "net.json", total_mbps=1.0, capacity="capacity_gbps")["links"]
    assert links["tail"].tolist() == ["a", "b"]
    assert links["capacity_mbps"].tolist() == [2_000.0, 2_000.0]


@pytest.mark.parametrize(
    ("name", "text", "line"),
    [
        ("n.gml", f"{TWO} edge [ source 0 target 0 capacity 1 ] ]", "row 1: source and target are both '0'"),
        ("n.gml", "graph [\n node [ label 0 ]\n]", "n.gml row 2: node has no id"),
        ("n.gml", "graph [\n node [ id 0", "n.gml: ends within a list; is it whole?"),
        ("n.gml", "graph [\n node [ id 0 ]\n ?\n]", "n.gml row 3: is no GML at '?'"),
        ("n.gml", "nodes [ ]", "n.gml: has 0 graphs, must have 1"),
        ("n.gml", "graph " + "[ a " * 30, "n.gml row 1: lists are nested over 20 deep"),
        ("n.gml", f"{TWO} edge [ source 0 target 2 capacity 1 ] ]", "target is '2', must be a node"),
        ("n.gml", f"{TWO} edge [ source 0 target 1 ] ]", "set default_capacity_mbps"),
        ("n.dot", "net { a -- b }", "n.dot row 1: begins with 'net', must begin with graph or digraph"),
        ("n.dot", "graph {\n a -- {b c}\n}", "n.dot row 2: an edge to a group is not read"),
        ("n.dot", "graph {\n a -- b", "n.dot: ends within a graph; is it whole?"),
        ("n.dot", "graph {\n a [label=<b>]\n}", "n.dot row 2: is no DOT at '<b>]'"),
        ("n.dot", "graph " + "{" * 90, "groups are nested over 50 deep"),
        ("n.json", "{", "n.json row 1: is no JSON"),
        ("n.json", "[1]", "n.json: is no node-link JSON"),
        ("n.json", '{"nodes": [{"id": [1]}], "links": []}', "n.json: node 1: id is a list or an object"),
        ("n.json", '{"nodes": [{"id": 1}], "links": [{"source": 1}]}', "n.json: link 1: target is missing"),
        ("n.json", "[" * 100_000, "nested too deeply"),
        ("n.json", '{"nodes": [{"id": "a\\ud800"}], "links": []}', "n.json: has half a character, \\ud800"),
        ("n.json", '{"nodes": [{"id": 1' + "0" * 5_000 + '}], "links": []}', "has a number of 5,001 digits"),
        ("n.yml", 'name: "lab\\udfff"\ntopology: {}\n', "n.yml: has half a character, \\udfff"),
        ("n.yml", "topology: [", "n.yml row 1: is no YAML"),
        ("n.yml", "a: 1", "n.yml: is no containerlab topology"),
        ("n.yml", f"{LAB}  - endpoints: ['a:e', 'bb:e']", "n.yml: link 1: 'bb' is no node"),
        ("n.yml", f"{LAB}  - endpoints: [a]", "must have two endpoints"),
        ("n.yml", "a: &a [1]\nb: &b [*a, *a]\n", "row 2: refused for safety: an alias within an anchor"),
        ("n.yml", "topology: !!python/object/apply:os.system ['x']", "n.yml"),
        ("n.yml", "[" * 1_500, "n.yml"),
        ("n.edges", "a b", "n.edges: must end in one of .gml, .json"),
        ("n.gexf", "<graphml/>", "n.gexf: root element is 'graphml', must be 'gexf'"),
        ("n.gexf", "<gexf/>", "n.gexf: has 0 graphs, must have 1"),
        ("n.gexf", GEXF.replace('id="2" label', "label"), "n.gexf: node 2: id is missing"),
        ("n.gexf", GEXF.replace('target="3"', ""), "n.gexf: edge 3: target is missing"),
        ("n.gexf", GEXF.replace('target="3"', 'target="4"'), "edge 3: target is '4', must be a node"),
        ("n.gexf", GEXF.replace("mutual", "mutal"), "type is 'mutal', must be one of undirected, directed"),
        ("n.gexf", GEXF.replace('for="0"', 'for="9"'), "has a value for '9', must be a declared attribute"),
        ("n.gexf", GEXF.replace("?>", "?><!DOCTYPE a [<!ENTITY b 'c'>]>"), "n.gexf: refused for safety"),
    ],
)  # fmt: skip
def test_a_fault_is_one_line(name: str, text: str, line: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(InputError) as caught:
        graphs.read(tmp_path / name, total_mbps=1.0)
    assert any(line in fault for fault in caught.value.faults), caught.value.faults


def test_demands_come_from_one_place(tmp_path: Path) -> None:
    (tmp_path / "net.gml").write_text(GML)
    with pytest.raises(InputError, match=r"set demands to a table of source, target, rate_mbps, matrix to"):
        graphs.read(tmp_path / "net.gml")
    with pytest.raises(InputError, match="matrix and total_mbps are set; set one of them"):
        graphs.read(tmp_path / "net.gml", matrix=tmp_path / "m.txt", total_mbps=1.0)


MATRIX = np.array([[9.0, 1, 2], [3, 0, 0], [0, 4, 0]])


@pytest.mark.parametrize(
    "form", ["rows.txt", "commas.csv", "flat.txt", "steps.txt", "m.npy", "steps.npy", "m.npz"]
)
def test_a_matrix_is_in_the_order_of_the_nodes(form: str, tmp_path: Path) -> None:
    (tmp_path / "net.gml").write_text(GML)
    path = tmp_path / form
    steps = np.stack([MATRIX / 2, MATRIX, MATRIX / 4])
    match form:
        case "rows.txt":
            np.savetxt(path, MATRIX)
        case "commas.csv":
            np.savetxt(path, MATRIX, delimiter=",")
        case "flat.txt":
            np.savetxt(path, MATRIX.reshape(1, -1))
        case "steps.txt":
            np.savetxt(path, steps.reshape(3, -1))
        case "m.npy":
            np.save(path, MATRIX)
        case "steps.npy":
            np.save(path, steps)
        case _:
            np.savez(path, MATRIX)
    notes: list[str] = []
    with observe_notes(notes.append):
        demands = graphs.read(tmp_path / "net.gml", matrix=path, matrix_unit="gbps")["demands"]
    rows = list(demands.itertuples(index=False, name=None))
    assert rows == [("a", "b", 1000.0), ("a", "c & d", 2000.0), ("b", "a", 3000.0), ("c & d", "b", 4000.0)]
    assert any("left out 9 of traffic from nodes to themselves" in note for note in notes)
    assert any("of 3 matrices, the one with the most traffic: step 1" in note for note in notes) == (
        "steps" in form
    )


@pytest.mark.parametrize("suffix", ["pkl", "npy", "npz"])
def test_a_pickled_matrix_is_refused_and_runs_nothing(suffix: str, tmp_path: Path) -> None:
    (tmp_path / "net.gml").write_text(GML)
    path, mark = tmp_path / f"tm.{suffix}", tmp_path / "mark"

    class Attack:
        def __reduce__(self) -> Any:
            return (Path.touch, (mark,))

    objects = np.array([Attack()], dtype=object)
    if suffix == "pkl":
        path.write_bytes(pickle.dumps(Attack()))
    else:
        (np.save if suffix == "npy" else np.savez)(path, objects)
    with pytest.raises(InputError, match=re.escape(f"tm.{suffix}: refused for safety")) as caught:
        graphs.read(tmp_path / "net.gml", matrix=path)
    assert "numpy.save('tm.npy'" in caught.value.faults[0]
    assert not mark.exists()


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("1 2\n3 4\n", "m.txt: is 2 x 2, must be 3 x 3"),
        ("1 2 3\n4 5\n", "m.txt row 2: has 2 numbers, not 3"),
        ("1 2 3\n4 x 6\n", "m.txt row 2: is 'x', must be a number"),
        ("0 1 2\n3 0 -1\n1 1 0\n", "m.txt: row 2, column 3 is -1, must be a finite number of at least 0"),
        ("0 1 2\n3 0 nan\n1 1 0\n", "m.txt: row 2, column 3 is nan, must be a finite number of at least 0"),
        ("# none\n", "m.txt: is empty, must have numbers"),
    ],
)
def test_a_fault_of_a_matrix_is_one_line(text: str, line: str, tmp_path: Path) -> None:
    (tmp_path / "net.gml").write_text(GML)
    (tmp_path / "m.txt").write_text(text)
    with pytest.raises(InputError) as caught:
        graphs.read(tmp_path / "net.gml", matrix=tmp_path / "m.txt")
    assert caught.value.faults[0].startswith(line)


def test_a_header_of_numpy_that_promises_too_much_is_refused_before_it_is_read(tmp_path: Path) -> None:
    (tmp_path / "net.gml").write_text(GML)
    np.save(tmp_path / "m.npy", MATRIX)
    content = (tmp_path / "m.npy").read_bytes()
    (tmp_path / "m.npy").write_bytes(content.replace(b"(3, 3)", b"(9, 9)"))
    with pytest.raises(InputError, match=r"m\.npy: ends after 72 of 648 bytes; is it whole"):
        graphs.read(tmp_path / "net.gml", matrix=tmp_path / "m.npy")


def test_a_design_of_net2plan(tmp_path: Path) -> None:
    (tmp_path / "three.n2p").write_text(N2P)
    notes: list[str] = []
    with observe_notes(notes.append):
        tables = net2plan.read(tmp_path / "three.n2p")
    links = tables["links"]
    assert list(zip(links["tail"], links["head"], strict=True)) == [("a", "b"), ("b", "c")]
    assert links["capacity_mbps"].tolist() == [10_000.0, 4_000.0]
    assert links["latency_ms"].tolist() == [2.0, 1.0]
    assert tables["demands"].to_numpy().tolist() == [["a", "c", 750.0]]
    assert tables["nodes"]["latitude"].tolist() == [48.8, 45.7, 50.6]
    assert "three.n2p: left out 1 links that are down" in notes


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ('originNodeId="2"', 'originNodeId="22"', "link '5': originNodeId is '22', must be a node's id"),
        ('capacity="10"', 'capacity="ten"', "link '5': capacity is 'ten', must be a number"),
        ('egressNodeId="4"', 'egressNodeId="2"', "demand '8': both ends are the same node, must differ"),
        ("<layer", "<lair", "is no well-formed XML"),
        ('version="6"', 'version="6"><!DOCTYPE', "is no well-formed XML"),
    ],
)  # fmt: skip
def test_a_fault_of_net2plan_is_one_line(old: str, new: str, line: str, tmp_path: Path) -> None:
    (tmp_path / "n.n2p").write_text(N2P.replace(old, new))
    with pytest.raises(InputError) as caught:
        net2plan.read(tmp_path / "n.n2p")
    assert any(line in fault for fault in caught.value.faults), caught.value.faults
