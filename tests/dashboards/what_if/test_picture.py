"""Two plans beside each other: series have one colour in both charts, and a difference needs one map."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pandas as pd

from planner.contract.drawing import Curve
from planner.scenarios.catalogue import find_system
from planner_dashboard.what_if import picture


def curve(*series: str) -> Curve:
    return Curve(
        title="Traffic", frame=pd.DataFrame({"window": [1, 2], **{name: [3.0, 4.0] for name in series}})
    )


def plan(drawing: Any, scenario: str = "contracts/own_data", **metrics: float) -> picture.Plan:
    answer: Any = SimpleNamespace(question=SimpleNamespace(scenario=scenario, upload=""))
    design: Any = SimpleNamespace(picture=drawing, figures=SimpleNamespace(metrics=metrics))
    return picture.Plan("", answer, design)


def test_series_of_the_second_chart_have_the_order_of_the_first() -> None:
    second = picture.with_series_of(
        curve("Acme", "Cirrus", "Beacon"), curve("New", "Acme", "Beacon", "Cirrus")
    )
    assert isinstance(second, Curve)
    assert list(second.frame.columns) == ["window", "Acme", "Cirrus", "Beacon", "New"]


def test_charts_are_shown_side_by_side_only() -> None:
    assert picture.modes_of(plan(curve("Acme")), plan(curve("Acme"))) == [picture.BESIDE]


def test_a_change_that_no_digit_shows_is_not_listed() -> None:
    system = find_system("cdnrouting")
    before, after = plan(None, price_of_anarchy=1.00001), plan(None, price_of_anarchy=1.0)
    assert picture.describe_difference(system, before, after) == ["All figures are the same."]
    table = picture.metrics_html(system, before, after)
    assert table.count(f"<td>{system.metric('price_of_anarchy').text(1.0)}</td>") == 2
