"""Points that lie in one place share a label."""

from __future__ import annotations

import pandas as pd

from planner.contract.drawing import Points


def labels(*rows: tuple[str, float, float]) -> list[str]:
    return Points(title="", frame=pd.DataFrame(rows, columns=["design", "cost", "share"])).labels()


def test_points_in_one_place_share_the_label_of_the_first() -> None:
    assert labels(("a", 1, 1), ("b", 5, 9), ("c", 1, 1.1), ("d", 5, 1)) == ["a, c", "b", "", "d"]


def test_of_many_names_in_one_place_some_are_shown() -> None:
    assert labels(*((name, 2.0, 3.0) for name in "abcdef")) == ["a, b, ..., f", "", "", "", "", ""]


def test_no_points_have_no_labels() -> None:
    assert labels() == []
