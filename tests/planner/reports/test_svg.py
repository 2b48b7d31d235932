"""Pictures as SVG text: well-formed, complete, and names of users are text."""

from __future__ import annotations

import itertools
import re
from dataclasses import replace
from typing import Any
from xml.etree import ElementTree

import defusedxml.ElementTree
import numpy as np
import pandas as pd
import pytest

from planner.contract.drawing import NetworkMap, Timeline
from planner.formatting import printable
from planner.reports import joined_network
from planner.reports.network_svg import network_svg
from planner.reports.svg import text_width
from planner.reports.timeline_svg import timeline_svg

SVG = "{http://www.w3.org/2000/svg}"


def network(**more: Any) -> NetworkMap:
    nodes = pd.DataFrame(
        {"node": ["Köln", "<b>&\"'", "c"], "latitude": [50.0, 51.0, 52.0], "longitude": [8.0, 9.0, 11.0]}
    )
    links = pd.DataFrame(
        {
            "tail": ["Köln", "<b>&\"'", "<b>&\"'", "c"],
            "head": ["<b>&\"'", "Köln", "c", "<b>&\"'"],
            "value": [10.0, 311.4, 90.0, float("nan")],
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


def read(text: str) -> ElementTree.Element:
    levels: ElementTree.Element = defusedxml.ElementTree.fromstring(text)
    return levels


def texts(text: str) -> list[str]:
    return [element.text or "" for element in read(text).iter(f"{SVG}text")]


def test_names_title_legend_and_overload_are_written() -> None:
    written = texts(network_svg(network()))
    assert {"Köln", "<b>&\"'", "c", "Links by utilization", "over 100 %", "311 %"} <= set(written)


def test_names_stand_where_no_link_crosses_them() -> None:
    names = ["north: 2 members, leads", "third: 1 member", "south: 2 members", "a site between them"]
    nodes = pd.DataFrame({"node": names, "x": [0.0, -1.0, 1.0, 0.0], "y": [1.0, -1.0, -1.0, -0.4]})
    pairs = list(itertools.combinations(names, 2))
    links = pd.DataFrame(pairs, columns=["tail", "head"]).assign(value=10.0)
    text = network_svg(network(nodes=nodes, links=links, width_unit="", directed=False))
    lines = re.findall(r'd="M([\d.]+) ([\d.]+)L([\d.]+) ([\d.]+)"', text)
    assert len(lines) == len(links)
    ends = np.array(lines, float)
    steps = np.linspace(0.0, 1.0, 2_000)[:, None, None]
    points = (ends[:, :2] + steps * (ends[:, 2:] - ends[:, :2])).reshape(-1, 2)
    shown = [element for element in read(text).iter(f"{SVG}text") if element.text in names]
    assert {element.text for element in shown} == set(names)
    for element in shown:
        left, base = float(element.get("x", "nan")), float(element.get("y", "nan"))
        right = left + text_width(str(element.text), 13)
        is_inside = (points > [left, base - 11]) & (points < [right, base + 2])
        assert not is_inside.all(axis=1).any(), element.text


def test_title_legend_and_map_are_optional() -> None:
    bare = network_svg(network(), title=False, legend=False, base_map=False)
    assert set(texts(bare)) == {"Köln", "<b>&\"'", "c", "311 %"}
    assert len(bare) < len(network_svg(network())) / 3


def test_links_tell_their_values() -> None:
    told = [element.text or "" for element in read(network_svg(network())).iter(f"{SVG}title")]
    assert "<b>&\"' → Köln\nutilization 311 %\ncapacity 1 Gbit/s" in told
    assert any("utilization unknown" in item for item in told)


def test_links_that_only_the_plan_before_has_are_dotted() -> None:
    full = network()
    failed = replace(full, links=full.links.iloc[2:].reset_index(drop=True))
    text = network_svg(replace(failed, whole=full))
    assert text.count('stroke-dasharray="2 4"') == 1
    assert 'stroke-dasharray="2 4"' not in network_svg(full)


def test_flows_that_only_the_plan_before_has_are_left_out() -> None:
    before = network(link_kind="")
    after = network(link_kind="", links=before.links.iloc[2:])
    assert "stroke-dasharray" not in network_svg(replace(after, whole=before), base_map=False)


def test_light_and_dark_differ_in_colours_only() -> None:
    light, dark = network_svg(network()), network_svg(network(), dark=True)
    assert texts(light) == texts(dark)
    assert light != dark


def test_names_do_not_cover_each_other() -> None:
    nodes = pd.DataFrame(
        {"node": [f"node {i}" for i in range(60)], "x": [0.01 * i for i in range(60)], "y": 0.0}
    )
    nodes.loc[59, "x"] = 10.0
    links = pd.DataFrame(
        {"tail": nodes["node"][:-1].tolist(), "head": nodes["node"][1:].tolist(), "value": 1.0}
    )
    written = texts(network_svg(network(nodes=nodes, links=links), title=False, legend=False))
    assert 1 < len(written) < 20


def test_a_fabric_has_boxes_around_its_groups() -> None:
    nodes = pd.DataFrame(
        {
            "node": list("abcd"),
            "x": [0, 1, 5, 6],
            "y": [0, 0, 0, 0],
            "group": ["pod 1", "pod 1", "pod 2", "pod 2"],
        }
    )
    links = pd.DataFrame({"tail": ["a", "c"], "head": ["b", "d"], "value": [1.0, 2.0]})
    assert {"pod 1", "pod 2"} <= set(texts(network_svg(network(nodes=nodes, links=links))))


def test_a_picture_says_what_it_leaves_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(joined_network, "MAX_LINKS", 3)
    assert "1 link with smaller values is not drawn" in " ".join(texts(network_svg(network())))


def test_a_node_that_loses_traffic_says_how_much() -> None:
    lossy = network()
    lossy = replace(lossy, nodes=lossy.nodes.assign(lost=[0.0, 1500.0, 0.0]), lost_unit="Mbit/s")
    written = texts(network_svg(lossy))
    assert "1.5 Gbit/s" in written
    assert "Labels cover the 1.5 Gbit/s that is lost" in written


def timeline(**more: Any) -> Timeline:
    rows: dict[str, list[Any]] = {
        "lane": ["r<1>", "r<1>", "r2"],
        "start": [0.0, 10.0, 0.0],
        "end": [10.0, 20.0, 5.0],
        "what": list("aba"),
    }
    return Timeline(title="Circuits", frame=pd.DataFrame(rows | more), unit="us", lanes="rack", what="to")


def test_a_timeline_has_lanes_bars_and_times() -> None:
    text = timeline_svg(timeline())
    assert {"Circuits", "r<1>", "r2", "a", "b", "us", "10"} <= set(texts(text))
    told = [element.text for element in read(text).iter(f"{SVG}title")]
    assert told[1] == "rack r<1>, to b\n10 to 20 us"


@pytest.mark.parametrize("name", ["\x01\x1b[31m", "\u202eevil", "\ufffe\uffff", "</text><script>", "]]>&"])
def test_a_hostile_name_is_text_of_a_drawing_that_opens(name: str) -> None:
    """No SVG may hold a control character or half a character: one would make a report in PDF fail."""
    inputs = network()
    renamed = {column: inputs.links[column].replace("c", name) for column in ("tail", "head")}
    nodes = inputs.nodes.assign(node=inputs.nodes["node"].replace("c", name))
    drawing = replace(inputs, nodes=nodes, links=inputs.links.assign(**renamed), title=name)
    shown = texts(network_svg(drawing))
    assert printable(name) in shown
    assert printable(name) in texts(timeline_svg(timeline(lane=[name, "r2", "r2"])))


def test_a_very_long_name_is_shortened_where_many_links_repeat_it() -> None:
    inputs = network()
    long = "x" * 100_000
    renamed = {column: inputs.links[column].replace("c", long) for column in ("tail", "head")}
    nodes = inputs.nodes.assign(node=inputs.nodes["node"].replace("c", long))
    assert len(network_svg(replace(inputs, nodes=nodes, links=inputs.links.assign(**renamed)))) < 50_000


def test_a_timeline_shows_the_plan_before_only_in_its_own_lanes() -> None:
    before = timeline(lane=["r2", "r9", "r2"])
    assert timeline_svg(timeline(), before=before).count("<title>") == 5


def test_many_targets_have_colours_of_their_own() -> None:
    many = timeline(
        lane=[f"r{i}" for i in range(30)],
        start=[0.0] * 30,
        end=[1.0] * 30,
        what=[f"rack {i}" for i in range(30)],
    )
    rects = [element.get("fill") for element in read(timeline_svg(many, dark=True)).iter(f"{SVG}rect")]
    assert len(set(rects)) == 31


def test_a_timeline_without_activities_is_drawn() -> None:
    read(timeline_svg(timeline(lane=[], start=[], end=[], what=[])))
