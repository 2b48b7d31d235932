"""Points that lie in one place share a label."""

from __future__ import annotations

import pandas as pd
import pytest

from planner.contract.drawing import Points, Timeline


def labels(*rows: tuple[str, float, float]) -> list[str]:
    return Points(title="", frame=pd.DataFrame(rows, columns=["design", "cost", "share"])).labels()


def test_points_in_one_place_share_the_label_of_the_first() -> None:
    assert labels(("a", 1, 1), ("b", 5, 9), ("c", 1, 1.1), ("d", 5, 1)) == ["a, c", "b", "", "d"]


def test_of_many_names_in_one_place_some_are_shown() -> None:
    assert labels(*((name, 2.0, 3.0) for name in "abcdef")) == ["a, b, ..., f", "", "", "", "", ""]


def test_no_points_have_no_labels() -> None:
    assert labels() == []


def timeline(rows: list[tuple[str, float, float]], unit: str = "us") -> Timeline:
    frame = pd.DataFrame(rows, columns=["lane", "start", "end"]).assign(what="a")
    return Timeline(title="", frame=frame, unit=unit, lanes="rack", what="to")


def test_activities_at_the_same_time_lie_in_tracks_of_their_lane() -> None:
    rows = [("a", 5.0, 9.0), ("a", 0.0, 4.0), ("a", 3.0, 6.0), ("b", 3.0, 6.0), ("a", 6.0, 7.0)]
    assert timeline(rows).tracks().tolist() == [0, 0, 1, 0, 1]
    assert timeline([("a", 0.0, 1.0), ("a", 1.0 - 1e-9, 2.0)]).tracks().tolist() == [0, 0]
    assert timeline([]).tracks().tolist() == []


def test_short_times_are_shown_in_a_smaller_unit() -> None:
    short, long = timeline([("a", 0.002, 0.0105)], "s"), timeline([("a", 0.0, 2.5)], "s")
    shown = short.readable()
    assert shown.unit == "ms"
    assert shown.frame["end"].tolist() == pytest.approx([10.5])
    assert short.readable(long) is short
    assert long.readable() is long
    assert timeline([], "s").readable().unit == "s"
