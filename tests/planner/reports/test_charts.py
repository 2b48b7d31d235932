"""Charts of a comparison: a row of bars for every three metrics, however few there are."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from plotly import graph_objects as go

import planner
from planner.contract.drawing import Points
from planner.contract.metrics import Metric
from planner.reports import charts
from planner.reports.chart_style import apply_style
from planner.reports.run_drawings import trade_off


@pytest.mark.parametrize("labels", [2, 9])
@pytest.mark.parametrize("count", [1, 3, 4, 13])
def test_each_metric_that_tells_designs_apart_has_bars(count: int, labels: int) -> None:
    metrics = [Metric(name=f"m{i}", unit="", better="more", about="a figure") for i in range(count)]
    alike = Metric(name="alike", unit="", better="less", about="the same for all")
    designs = {
        f"design {number}": {
            "alike": 1.0,
            **{metric.name: float(number + i) for i, metric in enumerate(metrics)},
        }
        for number in range(labels)
    }
    (figure,) = charts.metrics_by_design([*metrics, alike], designs)
    assert [len(bars.x) for bars in figure.data] == [labels] * count
    titles = [title.text for title in figure.layout.annotations]
    assert len(titles) == count
    assert all(title.startswith(metric.label) for title, metric in zip(titles, metrics, strict=True))


def test_designs_that_are_alike_have_no_chart() -> None:
    metric = Metric(name="alike", unit="", better="less", about="the same for all")
    assert charts.metrics_by_design([metric], {label: {"alike": 1.0} for label in "ab"}) == []


def test_markup_in_names_is_shown_and_never_a_link() -> None:
    name = '<a href="https://example.org">b</a>'
    figure = go.Figure(go.Bar(x=[name, "c"], y=[1.0, 2.0], text=[name, "<b>bold</b>"], name=name))
    figure.add_annotation(text=f"{name}<br>second line")
    figure.update_layout(xaxis={"title": {"text": name}, "ticktext": [name], "tickvals": [0]})
    text = apply_style(figure, name).to_json()
    assert "<a" not in text.replace("\\u003c", "<")
    assert "&lt;a href" in text
    assert "<br>second line" in text.replace("\\u003c", "<").replace("\\u003e", ">")
    assert figure.data[0].y == (1.0, 2.0)


def test_names_of_near_points_lie_on_different_sides() -> None:
    dots = np.array([[120.0, 200.0], [160.0, 200.0], [160.0, 203.0], [438.0, 100.0]])
    positions = charts.label_places(dots, ["optimum", "rebalance, pisces", "", "a long name"])
    assert positions == ["top center", "bottom center", "top center", "middle left"]


def test_shares_are_shown_in_percent() -> None:
    share = Metric(name="max_utilization", unit="", better="less", about="of the busiest link")
    designs = {"a": {share.name: 0.5}, "b": {share.name: 1.25}}
    (figure,) = charts.metrics_by_design([share], designs)
    assert figure.data[0].x == (50.0, 125.0)
    assert figure.layout.annotations[0].text == "Max utilization<br>↓ %"


@pytest.mark.parametrize("lowest", [0.0, 3.0, -5.0])
def test_an_axis_of_amounts_has_no_negative_tick(lowest: float) -> None:
    frame = pd.DataFrame({"design": ["a", "b"], "moved": [lowest, 100.0], "rounds": [1.0, 3.0]})
    start, end = charts.chart(Points(title="rounds against moved", frame=frame)).layout.xaxis.range
    assert start < lowest
    assert end > 100
    smallest_tick = (end - start) / 12
    assert start > -smallest_tick or lowest < 0


def test_designs_that_are_equal_in_a_metric_are_no_trade_off() -> None:
    result = planner.compare("fairshare/own_data", designs=["optimum", "unmodified"])
    assert {run.metrics["moved_gb"] for run in result.runs} == {0.0}
    assert trade_off(result) == []
    assert len(trade_off(planner.compare("updates/diamond", designs=["one_shot", "two_phase"]))) == 1
