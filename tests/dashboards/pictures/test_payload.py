"""Data of a network's picture: its geometry stays the same while values change and links fail."""

from __future__ import annotations

import json
from typing import Any

import pandas as pd

from planner.contract.drawing import NetworkMap
from planner_dashboard.pictures import payload


def network(**more: Any) -> NetworkMap:
    nodes = pd.DataFrame(
        {"node": ["a", "b", "c"], "latitude": [50.0, 51.0, 52.0], "longitude": [8.0, 9.0, 10.0]}
    )
    links = pd.DataFrame(
        {
            "tail": list("abbc"),
            "head": list("bacb"),
            "value": [10.0, 20.0, 30.0, float("nan")],
            "element": ["a-b", "a-b", "b-c", "b-c"],
            "width": [1000.0, 1000.0, 2500.0, 2500.0],
        }
    )
    given: dict[str, Any] = {
        "title": "Links by utilization",
        "nodes": nodes,
        "links": links,
        "value": "utilization",
        "unit": "%",
        "limit": 100.0,
        "width_unit": "Mbit/s",
        "link_kind": "link",
    }
    return NetworkMap(**given | more)


def without_first_pair(drawing: NetworkMap, **more: Any) -> NetworkMap:
    return network(links=drawing.links.iloc[2:].reset_index(drop=True), **more)


def geometry_of(drawing: NetworkMap, before: NetworkMap | None = None) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(payload.geometry(payload.parts_of(drawing, before), drawing))
    return found


def test_geometry_is_the_same_after_a_failure_and_for_other_values() -> None:
    whole = network()
    other = network(links=whole.links.assign(value=99.0))
    failed = without_first_pair(whole)
    assert geometry_of(whole)["id"] == geometry_of(other)["id"] == geometry_of(failed, whole)["id"]
    assert geometry_of(whole)["id"] != geometry_of(failed)["id"]


def test_links_that_only_the_plan_before_has_are_gone() -> None:
    whole = network()
    failed = without_first_pair(whole)
    parts = payload.parts_of(failed, whole)
    data = payload.values(parts, failed, whole, "a-b", 640)
    assert data["gone"] == [0, 1]
    assert data["values"] == [None, None, 30.0, None]
    assert data["was"] == [10.0, 20.0, 30.0, None]
    assert data["selected"] == "a-b"


def test_nodes_that_only_the_plan_before_has_are_gone() -> None:
    whole = network()
    failed = network(nodes=whole.nodes.iloc[1:], links=whole.links.iloc[2:])
    parts = payload.parts_of(failed, whole)
    assert payload.values(parts, failed, whole, "", 640)["goneNodes"] == [0]
    assert geometry_of(failed, whole)["id"] == geometry_of(whole)["id"]


def test_amounts_are_written_with_their_unit() -> None:
    whole = network()
    lossy = network(links=whole.links.assign(lost=[0.0, 1500.0, float("nan"), 0.0]), lost_unit="Mbit/s")
    parts = payload.parts_of(lossy, None)
    assert payload.values(parts, lossy, None, "", 640)["lost"] == {"1": "1.5 Gbit/s"}
    assert geometry_of(whole)["links"]["widthTexts"] == ["1 Gbit/s", "2.5 Gbit/s"]


def test_of_too_many_links_the_busiest_are_sent(monkeypatch: Any) -> None:
    monkeypatch.setattr(payload, "MAX_LINKS", 2)
    parts = payload.parts_of(network(), None)
    assert parts.links["value"].tolist() == [20.0, 30.0]
    assert parts.left_out == 2


def test_parallel_links_are_kept_apart() -> None:
    whole = network()
    twice = pd.concat([whole.links, whole.links.iloc[:1].assign(value=77.0)], ignore_index=True)
    both = network(links=twice)
    parts = payload.parts_of(whole, both)
    assert parts.is_gone_link.tolist() == [False, False, False, False, True]


def test_the_coast_is_sent_only_for_maps() -> None:
    whole = network()
    assert geometry_of(whole)["land"]
    plane = network(nodes=pd.DataFrame({"node": ["a", "b", "c"], "x": [0, 1, 2], "y": [0, 1, 0]}))
    assert "land" not in geometry_of(plane)
    assert geometry_of(plane)["y"][0] > geometry_of(plane)["y"][1]  # y upwards in the drawing, downwards here
