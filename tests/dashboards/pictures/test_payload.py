"""Data of a network's picture: its geometry stays the same while values change and links fail."""

from __future__ import annotations

import json
from typing import Any

import pandas as pd
import pytest

from planner.contract.drawing import NetworkMap
from planner.reports import joined_network
from planner.reports.joined_network import join
from planner_dashboard.pictures import payload
from planner_dashboard.pictures.payload import Frame, MetricCurve


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
    inputs: dict[str, Any] = {
        "title": "Links by utilization",
        "nodes": nodes,
        "links": links,
        "value": "utilization",
        "unit": "%",
        "limit": 100.0,
        "width_unit": "Mbit/s",
        "link_kind": "link",
    }
    return NetworkMap(**inputs | more)


def without_first_pair(drawing: NetworkMap, **more: Any) -> NetworkMap:
    return network(links=drawing.links.iloc[2:].reset_index(drop=True), **more)


def geometry_of(*drawings: NetworkMap) -> dict[str, Any]:
    result: dict[str, Any] = json.loads(payload.geometry(join(*drawings))[1])
    return result


def name_of(*drawings: NetworkMap) -> str:
    return payload.geometry(join(*drawings))[0]


def values_of(*drawings: NetworkMap) -> dict[str, Any]:
    return payload.values(join(*drawings), selected="", height=640)


def test_geometry_is_the_same_after_a_failure_and_for_other_values() -> None:
    full = network()
    other = network(links=full.links.assign(value=99.0, width=[2000.0, 2000.0, 2500.0, 2500.0]))
    failed = without_first_pair(full)
    assert name_of(full) == name_of(other) == name_of(full, failed)
    assert name_of(full) != name_of(failed)


def test_links_that_only_the_plan_before_has_are_gone() -> None:
    full = network()
    data = values_of(full, without_first_pair(full))
    assert data["gone"] == [0, 1]
    assert data["values"] == ",,30,"
    assert data["was"] == "10,20,30,"


def test_nodes_that_only_the_plan_before_has_are_gone() -> None:
    full = network()
    failed = network(nodes=full.nodes.iloc[1:], links=full.links.iloc[2:])
    assert values_of(full, failed)["goneNodes"] == [0]
    assert name_of(full, failed) == name_of(full)


def test_amounts_are_written_with_their_unit() -> None:
    full = network()
    lossy = network(links=full.links.assign(lost=[0.0, 1500.0, float("nan"), 0.0]), lost_unit="Mbit/s")
    assert values_of(lossy)["lost"] == {"1": "1.5 Gbit/s"}
    losses = values_of(lossy)["losses"]
    assert losses["links"] == {"1": 1500.0}
    assert (losses["total"], losses["totalText"], losses["verb"]) == (1500.0, "1.5 Gbit/s", "is lost")
    assert values_of(full)["losses"] == {}
    assert values_of(full)["widthTexts"] == ["1 Gbit/s", "2.5 Gbit/s"]
    assert values_of(full)["width"] == "0,0,1,1"


def test_of_too_many_links_the_busiest_are_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(joined_network, "MAX_LINKS", 2)
    data = values_of(network())
    assert data["values"] == "20,30"
    assert data["leftOut"] == 2


def test_parallel_links_are_kept_apart() -> None:
    full = network()
    twice = pd.concat([full.links, full.links.iloc[:1].assign(value=77.0)], ignore_index=True)
    assert values_of(network(links=twice), full)["gone"] == [4]


def test_the_coast_is_sent_only_for_maps() -> None:
    assert geometry_of(network())["land"]
    plane = network(nodes=pd.DataFrame({"node": ["a", "b", "c"], "x": [0, 1, 2], "y": [0, 1, 0]}))
    assert "land" not in geometry_of(plane)
    assert geometry_of(plane)["y"][0] > geometry_of(plane)["y"][1]  # y upwards in the drawing, downwards here


def test_differences_tell_changes_and_what_is_new_or_gone() -> None:
    before = network()
    changed = before.links.assign(value=[15.0, 20.0, 10.0, 5.0], element=["a-b", "a-b", "b-c", "new"])
    data = payload.differences(join(before, network(links=changed)), selected="", height=640)
    assert data["values"] == "5,0,-20,,"
    assert data["gone"] == [3]
    assert data["new"] == [4]
    assert data["edges"] == [-20.0, -2.0, 2.0, 20.0]
    assert data["unitOfChange"] == "points"


def frames(count: int) -> list[Frame]:
    full = network()
    failed = without_first_pair(full)
    return [Frame(label=f"{i} s", drawing=failed if i == 1 else full) for i in range(count)]


def test_frames_share_a_geometry_and_one_scale() -> None:
    moments = frames(3)
    joined = join(*(frame.drawing for frame in moments))
    curve = MetricCurve(label="lost traffic", unit="%", values=[0.0, 12.5, None])
    data = payload.frames_data(joined, moments, curve, selected="", height=640)
    assert [frame["gone"] for frame in data["frames"]] == [[], [0, 1], []]
    assert [frame["title"] for frame in data["frames"]] == [frame.drawing.title for frame in moments]
    assert data["curve"]["texts"] == ["0", "12.5", "-"]
    assert payload.geometry(joined)[0] == name_of(network())


def test_of_too_many_frames_some_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(payload, "MAX_FRAME_VALUES", 8)
    moments = frames(5)
    joined = join(*(frame.drawing for frame in moments))
    data = payload.frames_data(joined, moments, None, selected="", height=640)
    assert [frame["label"] for frame in data["frames"]] == ["0 s", "3 s"]
    assert data["framesLeftOut"] == 3


def test_what_a_plan_buys_is_sent_by_link() -> None:
    links = network().links.assign(added=[0.0, 400.0, 2500.0, 0.0])
    result = values_of(network(links=links, directed=False, widest=10_000.0))
    assert result["added"] == {"1": "400 Mbit/s", "2": "2.5 Gbit/s"}
    assert result["built"] == [2]
    assert result["directed"] is False
    assert max(result["widths"]) == 0.5
    assert values_of(network())["built"] == []


@pytest.mark.parametrize("columns", [("latitude", "longitude"), ("x", "y")])
def test_a_click_beside_all_nodes_has_the_place_there(columns: tuple[str, str]) -> None:
    drawing = network()
    nodes = drawing.nodes.rename(columns=dict(zip(("latitude", "longitude"), columns, strict=True)))
    drawing = network(nodes=nodes)
    shown = geometry_of(drawing)
    for row in range(3):
        place = payload.place_of(drawing, f"{shown['x'][row]} {shown['y'][row]}")
        assert place is not None
        assert [place[name] for name in columns] == pytest.approx(
            nodes[list(columns)].iloc[row].tolist(), abs=0.02
        )


def test_nodes_without_places_have_none_for_a_click() -> None:
    assert payload.place_of(network(nodes=pd.DataFrame({"node": ["a", "b", "c"]})), "1 2") is None
