"""Attributes of edges in GraphML files: metrics of any name, prices, units, and what is not read."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import planner
from planner.contract.notes import notes_of, observe_notes
from planner.errors import InputError
from planner_models.traffic.problem.readers import graphml

# A-C-B weighs 20 and is shorter than A-B, so that C->B carries both demands
EDGES = (("n0", "n1", "30"), ("n0", "n2", "10"), ("n2", "n1", "10"))


def document(*attributes: str, edges: tuple[tuple[str, ...], ...], more: str = "") -> str:
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


def read(folder: Path, text: str, **parameters: Any) -> tuple[Mapping[str, pd.DataFrame], list[str]]:
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
        read(folder, text, **parameters)
    return caught.value.faults


@pytest.mark.parametrize("name", ["metric", "igp_metric", "OSPF cost", "te_metric"])
def test_a_routing_metric_of_another_name_decides_the_routes(tmp_path: Path, name: str) -> None:
    (tmp_path / "net.graphml").write_text(document(name, edges=EDGES))
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
    text = document("cost", edges=EDGES)
    (fault,) = refuse(tmp_path, text)
    assert fault == (
        "net.graphml: edge attribute 'cost' may be cost (price of carrying traffic, per Mbit/s) or weight "
        '(routing metric), and no attribute is weight: set weight = "cost" or cost = "cost"'
    )
    tables, notes = read(tmp_path, text, weight="cost")
    assert tables["links"]["weight"].tolist() == [30, 30, 10, 10, 10, 10]
    assert "cost" not in tables["links"]
    assert notes == []
    tables, notes = read(tmp_path, text, cost="cost")
    assert tables["links"]["cost"].tolist() == [30, 30, 10, 10, 10, 10]
    assert notes == ["assumed: net.graphml: all links weigh 1"]


def test_a_cost_beside_a_metric_is_a_price(tmp_path: Path) -> None:
    edges = tuple((*edge, str(row)) for row, edge in enumerate(EDGES))
    links = read(tmp_path, document("metric", "cost", edges=edges))[0]["links"]
    assert links["weight"].tolist() == [30, 30, 10, 10, 10, 10]
    assert links["cost"].tolist() == [0, 0, 1, 1, 2, 2]


def test_several_metrics_are_asked_about(tmp_path: Path) -> None:
    text = document("igp_metric", "te_metric", edges=tuple((*edge, "1") for edge in EDGES))
    (fault,) = refuse(tmp_path, text)
    assert fault == (
        "net.graphml: edge attributes 'igp_metric' and 'te_metric' may both be weight; "
        "set weight to one of them"
    )
    assert set(read(tmp_path, text, weight="te_metric")[0]["links"]["weight"]) == {1}


def test_an_attribute_that_no_edge_has_is_named(tmp_path: Path) -> None:
    (fault,) = refuse(tmp_path, document("metric", edges=EDGES), weight="metrc")
    assert fault == "net.graphml: no edge has the attribute 'metrc'; did you mean 'metric'?"


def test_edges_without_a_metric_are_counted(tmp_path: Path) -> None:
    tables, notes = read(tmp_path, document("metric", edges=(*EDGES[:2], ("n2", "n1", ""))))
    assert tables["links"]["weight"].tolist() == [30, 30, 10, 10, 1, 1]
    assert notes[-1] == "assumed: net.graphml: 1 of 3 edges have no 'metric' and weigh 1"


def test_every_attribute_that_is_not_read_is_named_once(tmp_path: Path) -> None:
    edges = tuple((*edge, "fibre", "x") for edge in EDGES)
    more = '<data key="g">Net</data><node id="n3"><data key="d">D</data><data key="c">CH</data></node>'
    _, notes = read(tmp_path, document("weight", "kind", "owner", edges=edges, more=more))
    assert notes == [
        "net.graphml: ignored graph attributes 'Network'",
        "net.graphml: ignored node attributes 'Country'",
        "net.graphml: ignored edge attributes 'kind', 'owner'",
    ]


@pytest.mark.parametrize(("name", "mbps"), [("capacity_gbps", 7000), ("Speed (kbit/s)", 0.007), ("speed", 7)])
def test_a_unit_in_the_name_of_a_capacity_is_used(tmp_path: Path, name: str, mbps: float) -> None:
    text = document(name, edges=tuple((*edge[:2], "7") for edge in EDGES))
    tables, notes = read(tmp_path, text, capacity=name, capacity_unit=None)
    assert tables["links"]["capacity_mbps"].tolist() == [mbps] * 6
    assumed = f"assumed: net.graphml: edge attribute '{name}' is in Mbit/s; capacity_unit sets another unit"
    assert (assumed in notes) == (name == "speed")


def test_loops_and_values_are_named_as_the_file_names_its_edges(tmp_path: Path) -> None:
    edges = (("n0", "n1", "30"), ("n1", "n1", "10"), ("n2", "n1", "0"))
    text = document("metric", edges=edges).replace('<edge source="n2"', '<edge id="e9" source="n2"')
    assert refuse(tmp_path, text) == (
        "net.graphml: edge 2: source and target are both 'n1', must differ; delete the edge",
        "net.graphml: edge 'e9': metric is '0', must be greater than 0",
    )
