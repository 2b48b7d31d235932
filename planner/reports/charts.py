"""Charts of drawings and of comparisons, with plotly."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from planner.contract.drawing import Curve, Distribution, Drawing, NetworkMap, Points, Timeline
from planner.contract.layout import place_nodes
from planner.errors import PlannerError
from planner.extras import needed_by
from planner.formatting import counted_of, heading_with_unit
from planner.reports.chart_style import apply_style
from planner.reports.colours import COLOURS
from planner.reports.coordination_charts import MECHANISMS as MECHANISMS
from planner.reports.coordination_charts import MIN_SHARE as MIN_SHARE
from planner.reports.coordination_charts import coordination as coordination
from planner.reports.coordination_charts import curves as curves
from planner.reports.metric_text import better, chart_scale, differ

with needed_by("a chart"):
    from plotly import graph_objects as go
    from plotly.subplots import make_subplots

if TYPE_CHECKING:
    from planner.contract.metrics import Metric

MOST_LINKS: Final = 4_000
"""Of a map; the fullest are drawn, and the title says so."""
UNKNOWN: Final = -1
"""Band of the links of a map whose value is unknown."""
BAND_COLOURS: Final = ("#9ec9e8", "#56B4E9", "#009E73", "#E69F00", "#D55E00", "#a00000")
"""Of links by their value: five equal bands up to the largest, and those above."""
MOST_MARKS: Final = 50
"""Points of a line that are marked; the marks of more cover the line."""
MOST_POINTS: Final = 500
"""Of a distribution's curve."""


class NoBrowser(PlannerError):
    """A picture needs a browser that is not there."""

    exit_code = 1


def chart(drawing: Drawing) -> go.Figure:
    """Return the chart of one drawing."""
    match drawing:
        case Curve():
            figure = _curve(drawing)
        case Points():
            figure = _points(drawing)
        case NetworkMap():
            figure = _map(drawing)
        case Timeline():
            figure = _timeline(drawing)
        case Distribution():
            figure = _distribution(drawing)
    return apply_style(figure, drawing.title)


def metrics_by_design(
    metrics: Sequence[Metric], designs: Mapping[str, Mapping[str, float | None]]
) -> list[go.Figure]:
    """Return bar charts of the metrics in which designs differ, in one figure; none where they are the same.

    designs  values of the metrics by name, by the design's label
    """
    apart = [
        (metric, values)
        for metric in metrics
        if differ(values := [figures.get(metric.name) for figures in designs.values()])
    ]
    if not apart:
        return []
    columns = 2  # as many as a telephone has room for
    rows = math.ceil(len(apart) / columns)
    scales = [chart_scale(metric, values) for metric, values in apart]
    titles = [
        f"{metric.label}<br>{better(metric, unit)}"
        for (metric, _), (unit, _) in zip(apart, scales, strict=True)
    ]
    labels = list(designs)
    bars, between = 16 + 22 * len(labels), 76  # pixels; between rows stand numbers and a title
    tall = rows * bars + (rows - 1) * between
    figure = make_subplots(
        rows,
        columns,
        subplot_titles=titles,
        shared_yaxes=True,
        vertical_spacing=between / tall if rows > 1 else 0.0,
    )
    for index, ((_, values), (_, factor)) in enumerate(zip(apart, scales, strict=True)):
        bar = go.Bar(
            x=[None if value is None else value * factor for value in values],
            y=labels,
            orientation="h",
            marker_color=[COLOURS[i % len(COLOURS)] for i in range(len(labels))],
            hovertemplate="%{y}: %{x:,.6g}<extra></extra>",
        )
        figure.add_trace(bar, index // columns + 1, index % columns + 1)
    figure.update_yaxes(autorange="reversed")
    figure.update_annotations(font_size=10)
    figure.update_layout(showlegend=False, height=140 + tall)
    return [apply_style(figure, "Metrics by design").update_layout(margin_t=90)]


def save_picture(figure: go.Figure, path: Path) -> None:
    """Write the chart as a picture in the format of the file name (.png, .svg, .pdf).

    raises  NoBrowser where there is no browser to draw it with
    """
    paper = go.Figure(figure).update_layout(
        paper_bgcolor="white", plot_bgcolor="white", font_color="#222222", width=1000
    )
    with needed_by("a picture"):
        import kaleido  # noqa: F401
    try:
        paper.write_image(path, scale=2)
    except (RuntimeError, ImportError, OSError) as error:
        first = str(error).strip().split("\n")[0]
        raise NoBrowser(
            f"{path}: pictures are drawn by Chrome or Chromium, which kaleido did not find or could not "
            f"start ({first[:120]}); set BROWSER_PATH to it, or take --html"
        ) from None


# --- one drawing --------------------------------------------------------------------------


def _curve(curve: Curve) -> go.Figure:
    figure = go.Figure()
    first, *others = (str(column) for column in curve.frame)
    has_marks = len(curve.frame) <= MOST_MARKS
    marks: dict[str, Any] = {"mode": "lines+markers", "marker_size": 6} if has_marks else {"mode": "lines"}
    for name, colour in zip(others, _colours(), strict=False):
        x, y = curve.frame[first], curve.frame[name]
        if curve.bars:
            figure.add_trace(go.Bar(x=x, y=y, name=name, marker_color=colour))
        else:
            figure.add_trace(go.Scatter(x=x, y=y, name=name, line_color=colour, **marks))
    units = {curve.units.get(name, "") for name in others}
    unit = units.pop() if len(units) == 1 else ""
    figure.update_xaxes(
        title_text=heading_with_unit(first, curve.units.get(first, "")),
        type="category" if curve.bars else "log" if curve.log_x else None,
    )
    title = heading_with_unit(others[0], curve.units.get(others[0], "")) if len(others) == 1 else unit
    figure.update_yaxes(title_text=title, type="log" if curve.log_y else None)
    return figure.update_layout(showlegend=len(others) > 1)


def _points(points: Points) -> go.Figure:
    name, across, up = (str(column) for column in points.frame)
    figure = go.Figure()
    values = points.frame[[across, up]].astype(float).to_numpy()
    lowest, highest = values.min(axis=0), values.max(axis=0)
    # names reach over the points at the edges
    margins = [
        _margin(low, high, fraction) for low, high, fraction in zip(lowest, highest, (0.25, 0.1), strict=True)
    ]
    # no tick of the axis says that an amount could be negative
    ranges = [
        (max(low - by, -SMALL_MARGIN * (high + by)) if low >= 0 else low - by, high + by)
        for low, high, by in zip(lowest, highest, margins, strict=True)
    ]
    texts = points.labels()
    starts = np.array([start for start, _ in ranges])
    spans = np.array([end - start for start, end in ranges])
    positions = label_places((values - starts) / spans * PLOT_PX, texts)
    for row, colour, text, position in zip(
        points.frame.itertuples(index=False), _colours(), texts, positions, strict=False
    ):
        figure.add_trace(
            go.Scatter(
                x=[row[1]],
                y=[row[2]],
                mode="markers+text",
                text=[text],
                textposition=position,
                marker={"size": 11, "color": colour},
                name=str(row[0]),
                hovertemplate=f"{name} {row[0]}<br>{across} %{{x:,.6g}}<br>{up} %{{y:,.6g}}<extra></extra>",
            )
        )
    figure.update_xaxes(title_text=heading_with_unit(across, points.units.get(across, "")), range=ranges[0])
    figure.update_yaxes(title_text=heading_with_unit(up, points.units.get(up, "")), range=ranges[1])
    return figure.update_layout(showlegend=False, height=420)


def _margin(lowest: float, highest: float, fraction: float) -> float:
    """Return the margin of an axis beyond the points, a share of their range; of one value, a tenth of it."""
    return fraction * float(highest - lowest) or 0.1 * abs(float(highest)) or 1.0


SMALL_MARGIN: Final = 0.08
"""Margin of an axis below zero, a share of its upper end: shorter than the distance of two ticks."""
PLOT_PX: Final = np.array([440.0, 300.0])
"""Width and height of the plot of points on half a page, in which labels must not meet."""
LETTER_PX, LINE_PX, DOT_PX = 6.8, 14.0, 7.0
LABEL_SIDES: Final[Mapping[str, tuple[float, float]]] = {
    "top center": (0, 1), "bottom center": (0, -1), "middle right": (1, 0), "middle left": (-1, 0),
    "top right": (1, 1), "bottom right": (1, -1), "top left": (-1, 1), "bottom left": (-1, -1),
}  # fmt: skip
"""Where plotly may write the text of a point: towards the right, and upwards."""


def label_places(dots: NDArray[np.float64], texts: Sequence[str]) -> list[str]:
    """Return the side of each point on which its text covers least of the other texts and points.

    dots  pixels of each point, rightwards and upwards, shape (N, 2)
    """
    taken = [(x - DOT_PX, y - DOT_PX, x + DOT_PX, y + DOT_PX) for x, y in dots.tolist()]
    sides = []
    for (x, y), text in zip(dots.tolist(), texts, strict=True):
        boxes = {side: _label_box(x, y, text, side) for side in LABEL_SIDES if text}
        side = min(boxes, key=lambda side_: _covered(boxes[side_], taken), default="top center")
        taken += [boxes[side]] if text else []
        sides.append(side)
    return sides


def _label_box(x: float, y: float, text: str, side: str) -> tuple[float, float, float, float]:
    """Return the left, lower, right and upper end of a point's text, in pixels."""
    right, above = LABEL_SIDES[side]
    wide = LETTER_PX * len(text)
    left_edge = x + right * DOT_PX - wide * (1 - right) / 2
    low = y + above * DOT_PX - LINE_PX * (1 - above) / 2
    return left_edge, low, left_edge + wide, low + LINE_PX


def _covered(box: tuple[float, ...], taken: Sequence[tuple[float, ...]]) -> float:
    """Return the area of a box that others have taken, or that lies beside the plot."""
    left_edge, low, right, top = box
    outside = max(0.0, -left_edge) + max(0.0, right - float(PLOT_PX[0]))
    across = (max(0.0, min(right, box_[2]) - max(left_edge, box_[0])) for box_ in taken)
    up = (max(0.0, min(top, box_[3]) - max(low, box_[1])) for box_ in taken)
    return LINE_PX * outside + sum(wide * high for wide, high in zip(across, up, strict=True))


def _map(drawing: NetworkMap) -> go.Figure:
    links = drawing.frame.head(MOST_LINKS)
    positions = place_nodes(drawing.nodes, links)
    figure = go.Figure()
    _add_links(figure, drawing, links, positions)
    _add_nodes(figure, drawing.nodes.set_index("node").get("group"), positions)
    figure.update_xaxes(visible=False)
    figure.update_yaxes(visible=False, scaleanchor="x")
    left_out = len(drawing.links) - len(links)
    if left_out:
        figure.add_annotation(
            text=f"{counted_of(left_out, len(drawing.links), 'links with less', 'are')} not drawn",
            xref="paper", yref="paper", x=0, y=0, showarrow=False,
        )  # fmt: skip
    return figure.update_layout(height=620, hovermode="closest")


def _add_links(figure: go.Figure, drawing: NetworkMap, links: pd.DataFrame, positions: pd.DataFrame) -> None:
    """Add the links as lines by bands of their value, and a point in the middle of each that tells it."""
    value = links["value"].to_numpy(float)
    is_known = ~np.isnan(value)
    start, end = positions.loc[links["tail"]].to_numpy(), positions.loc[links["head"]].to_numpy()
    ways, length = end - start, np.hypot(*(end - start).T)
    span = float(np.ptp(positions.to_numpy(), axis=0).max()) or 1.0
    # the two directions of a pair run side by side, on the right
    aside = np.c_[ways[:, 1], -ways[:, 0]] / np.maximum(length, 1e-12)[:, None] * span * 0.004
    largest = drawing.limit or float(value[is_known].max(initial=0.0)) or 1.0
    share = np.clip(np.where(is_known, value, 0.0) / largest, 0, None)
    band = np.where(is_known, np.minimum((share * 5).astype(int), 5), UNKNOWN)
    names = _band_names(largest)
    for level in (UNKNOWN, *range(len(names))):
        rows_of_band = np.flatnonzero(band == level)
        if not len(rows_of_band):
            continue
        a, b = start[rows_of_band] + aside[rows_of_band], end[rows_of_band] + aside[rows_of_band]
        gap = np.full(len(rows_of_band), np.nan)
        figure.add_trace(
            go.Scatter(
                x=np.c_[a[:, 0], b[:, 0], gap].ravel(),
                y=np.c_[a[:, 1], b[:, 1], gap].ravel(),
                mode="lines",
                line={
                    "color": "#c8c8c8" if level == UNKNOWN else BAND_COLOURS[level],
                    "width": 1.2 + 0.7 * max(level, 0),
                },
                name="unknown" if level == UNKNOWN else f"{names[level]} {drawing.unit}".rstrip(),
                hoverinfo="skip",
            )
        )
    middle = (start + end) / 2 + aside
    texts = [
        f"{row.tail} → {row.head}"
        + (f"<br>{drawing.value} {_number(row.value)} {drawing.unit}" if has_value else "")
        for row, has_value in zip(links.itertuples(), is_known, strict=True)
    ]
    figure.add_trace(
        go.Scatter(
            x=middle[:, 0],
            y=middle[:, 1],
            mode="markers",
            marker={"size": 9, "opacity": 0},
            text=texts,
            hovertemplate="%{text}<extra></extra>",
            showlegend=False,
        )
    )


def _band_names(largest: float) -> list[str]:
    """Return the names of five equal bands of values up to the largest, and of the band above."""
    edges = [_number(largest * step / 5) for step in range(6)]
    between = [f"{edges[i]} to {edges[i + 1]}" for i in range(1, 5)]
    return [f"under {edges[1]}", *between, f"{edges[5]} and more"]


def _add_nodes(figure: go.Figure, groups: pd.Series | None, positions: pd.DataFrame) -> None:
    """Add the nodes as points, by groups where they have any; few nodes have their names beside them."""
    few = len(positions) <= 40
    for name, colour in zip(
        ["nodes"] if groups is None else pd.unique(groups), _colours("#666666"), strict=False
    ):
        here = positions
        if groups is not None:
            here = positions.loc[positions.index.intersection(groups.index[groups == name])]
        figure.add_trace(
            go.Scatter(
                x=here["x"],
                y=here["y"],
                mode="markers+text" if few else "markers",
                text=here.index.astype(str),
                textposition="top center",
                textfont_size=11,
                marker={"size": 7, "color": "#666666" if groups is None else colour},
                name=str(name),
                hovertemplate="%{text}<extra></extra>",
            )
        )


def _timeline(drawing: Timeline) -> go.Figure:
    drawing = drawing.readable()
    frame = drawing.frame.assign(track=drawing.tracks())
    tracks = int(frame["track"].max()) + 1 if len(frame) else 1
    high = 0.8 / tracks  # of the height of a lane
    figure = go.Figure()
    for name, colour in zip(pd.unique(frame["what"]), _colours(), strict=False):
        rows = frame[frame["what"] == name]
        figure.add_trace(
            go.Bar(
                base=rows["start"],
                x=rows["end"] - rows["start"],
                y=rows["lane"].astype(str),
                width=high,
                offset=high * rows["track"] - 0.4,
                orientation="h",
                name=str(name),
                marker={"color": colour, "line": {"width": 0.5, "color": "white"}},
                customdata=rows[["start", "end"]],
                hovertemplate=f"%{{y}}<br>{name}<br>%{{customdata[0]:,.6g}} to %{{customdata[1]:,.6g}} "
                f"{drawing.unit}<extra></extra>",
            )
        )
    lanes = frame["lane"].nunique()
    figure.update_xaxes(title_text=drawing.unit)
    figure.update_yaxes(
        title_text=drawing.lanes,
        autorange="reversed",
        type="category",
        categoryorder="array",
        categoryarray=pd.unique(frame["lane"].astype(str)),
    )
    several = frame["what"].nunique()
    return figure.update_layout(
        barmode="overlay",
        height=max(260, min(1200, 120 + max(18, 12 * tracks) * lanes)),
        showlegend=1 < several <= 20,
    )


def _distribution(drawing: Distribution) -> go.Figure:
    figure = go.Figure()
    for (name, values), colour in zip(drawing.values.items(), _colours(), strict=False):
        ordered = np.sort(values.dropna().to_numpy(float))
        if not len(ordered):
            continue
        count = min(MOST_POINTS, len(ordered))
        indices = np.unique(np.linspace(0, len(ordered) - 1, count).astype(int))
        figure.add_trace(
            go.Scatter(
                x=ordered[indices],
                y=100 * (indices + 1) / len(ordered),
                name=name,
                mode="lines",
                line={"color": colour, "shape": "hv"},
            )
        )
    if drawing.limit is not None:
        figure.add_vline(x=drawing.limit, line={"dash": "dot", "color": "#D55E00"})
    what = f"{drawing.what} ({drawing.unit})" if drawing.unit else drawing.what
    figure.update_xaxes(title_text=what, type="log" if drawing.log_x else None)
    figure.update_yaxes(title_text="percent at most so large", range=[0, 101])
    return figure.update_layout(showlegend=len(drawing.values) > 1)


# --- what charts share --------------------------------------------------------------------


def _colours(first: str | None = None) -> Sequence[str]:
    """Return colours for any number of series."""
    colours = COLOURS if first is None else (first, *COLOURS)
    return colours * 64


def _number(value: Any) -> str:
    return f"{value:,.4g}"
