"""Data of a timeline's picture."""

from __future__ import annotations

from typing import Any

import pandas as pd

from planner.contract.drawing import Timeline
from planner_dashboard.pictures.timeline import timeline_data


def timeline(**more: list[Any]) -> Timeline:
    inputs = {
        "lane": ["r1", "r1", "r2"],
        "start": [0.0, 10.123456789, 0.0],
        "end": [10.0, 20.0, 5.0],
        "what": list("aba"),
    }
    frame = pd.DataFrame(inputs | more)
    return Timeline(
        title="Circuits", frame=frame, unit="us", lanes="rack", what="circuit to", kind="rack pair"
    )


def test_lanes_targets_and_elements_are_sent_once() -> None:
    named = timeline(element=["r1->a", "r1->b", ""], note=["all of it", "all of it", None])
    data = timeline_data(named, None, selected="r1->b", height=500)
    assert data["lanes"] == ["r1", "r2"]
    assert data["whats"] == ["a", "b"]
    assert data["bars"] == {
        "lane": [0, 0, 1],
        "what": [0, 1, 0],
        "track": [0, 0, 0],
        "start": [0.0, 10.12346, 0.0],
        "end": [10.0, 20.0, 5.0],
        "element": [0, 1, 2],
        "note": [0, 0, 1],
    }
    assert data["elements"] == ["r1->a", "r1->b", ""]
    assert data["notes"] == ["all of it", ""]
    assert "before" not in data


def test_bars_before_lie_in_the_same_lanes() -> None:
    before = timeline(lane=["r2", "r3", "r1"])
    data = timeline_data(timeline(), before, selected="", height=500)
    assert data["lanes"] == ["r1", "r2"]
    assert data["before"]["lane"] == [1, 0]
    assert data["before"]["what"] == [0, 0]


def test_an_empty_timeline_has_no_bars() -> None:
    empty = timeline(lane=[], start=[], end=[], what=[])
    data = timeline_data(empty, None, selected="", height=500)
    assert data["bars"]["lane"] == []
