"""Charts of the value of coordination, and of performance with degraded information."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from planner.extras import needed_by
from planner.formatting import amount, is_convertible
from planner.reports.chart_style import apply_style

with needed_by("a chart"):
    from plotly import graph_objects as go
    from plotly.subplots import make_subplots

MECHANISMS: Final = {
    "none": "#888888",
    "reaction": "#D55E00",
    "transparency": "#0072B2",
    "priority ranking": "#C08000",
    "hierarchical partitioning": "#009E73",
}
"""Colours that can be distinguished on white and on black."""
DASHES: Final = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
SIGNS: Final = ("circle", "square", "diamond", "cross", "x", "star")
MIN_SHARE: Final = -1.0
"""Lower end of the axis: a loss as large as the possible gain; lower values are drawn there, with numbers."""


def coordination(frame: pd.DataFrame) -> go.Figure:
    """Return a chart of the share of the possible gain that each design achieves, one row per design.

    A thin line behind a point is the range of the share over draws.

    frame  system, design, mechanism and share with its range, as `planner.coordination.measurement` has them
    """
    finite = frame[frame["share"].notna()]
    systems = list(dict.fromkeys(finite["system"]))
    if not systems:
        return apply_style(go.Figure(), "Value of coordination: no bound is proven, shares are unknown")
    counts = [int((finite["system"] == system).sum()) for system in systems]
    head, row, foot = 26, 21, 60
    tall = sum(counts) * row + len(systems) * head
    figure = go.Figure()
    lowest = max(MIN_SHARE, min(0.0, float(finite["share"].min())))
    low, high = 100 * lowest - 6, 100 + 0.18 * (106 - 100 * lowest)  # space for the numbers
    baseline, ticks = _add_system_names(figure, systems, counts, head / row)
    names = [name for system in systems for name in finite.loc[finite["system"] == system, "design"]]
    share = finite["share"].astype(float).to_numpy()
    shown = 100 * np.maximum(share, lowest)
    points = pd.DataFrame(
        {
            "system": finite["system"].to_numpy(),
            "design": names,
            "mechanism": finite["mechanism"].to_numpy(),
            "percent": 100 * share,
            "shown": shown,
            "low": 100 * np.maximum(finite["share_low"].fillna(finite["share"]).astype(float), lowest),
            "high": 100 * np.maximum(finite["share_high"].fillna(finite["share"]).astype(float), lowest),
            "height": ticks,
        }
    )
    for mechanism, colour in MECHANISMS.items():
        of_mechanism = points[points["mechanism"] == mechanism]
        if len(of_mechanism):
            _add_points(figure, of_mechanism, mechanism, colour)
    _add_numbers(figure, points[["shown", "high"]].max(axis=1).to_numpy(), ticks, share)
    _mark_reference_shares(figure, low, high)
    figure.update_yaxes(
        range=[baseline - 0.3, -0.7], tickvals=ticks, ticktext=names, showgrid=False, zeroline=False
    )
    apply_style(figure, "Value of coordination: share of the possible gain")
    return figure.update_layout(
        height=tall + foot + 120,
        margin={"l": 10, "r": 10, "t": 100, "b": foot},
        legend={"orientation": "h", "y": 0, "yanchor": "top", "yref": "paper"},
    )


def _add_numbers(
    figure: go.Figure, shown: NDArray[np.floating], heights: Sequence[float], share: NDArray[np.floating]
) -> None:
    """Add the share of each design as a number beside its point and the range of its draws.

    shown    where the points or their ranges end, %
    heights  of the points
    """
    figure.add_trace(
        go.Scatter(
            x=np.maximum(shown, 0.0),
            y=heights,
            mode="markers+text",
            marker={"size": 11, "opacity": 0},  # keeps the numbers off the points
            text=[f"{value:.0%}".replace("-", "−") for value in share],
            textposition="middle right",
            cliponaxis=False,
            hoverinfo="skip",
            showlegend=False,
        )
    )


def _mark_reference_shares(figure: go.Figure, low: float, high: float) -> None:
    """Mark the shares without coordination and at the proven bound on an axis from `low` to `high`, %."""
    for percent in (0, 100):
        figure.add_vline(x=percent, line={"dash": "dot", "color": "#888888", "width": 1})
    marks = [mark for mark in (-100, -50, 0, 50, 100) if mark >= low]
    texts = {0: "0 %<br>no coordination", 100: "100 %<br>proven bound"}
    figure.update_xaxes(
        range=[low, high],
        tickvals=marks,
        ticktext=[texts.get(mark, "") for mark in marks],
        tickangle=0,
        zeroline=False,
        side="top",
    )


def _add_system_names(
    figure: go.Figure, systems: Sequence[str], counts: Sequence[int], head: float
) -> tuple[float, list[float]]:
    """Add a heading above the rows of each system; return the height of all, and of each row, in rows.

    head  height of a heading, in rows
    """
    height, ticks = 0.0, []
    for system, count in zip(systems, counts, strict=True):
        figure.add_annotation(
            text=f"<b>{system}</b>", x=0, xref="paper", xanchor="left", y=height, yref="y",
            yanchor="middle", showarrow=False, font_size=13,
        )  # fmt: skip
        height += head
        ticks += [height + step for step in range(count)]
        height += count
    return height, ticks


def _add_points(figure: go.Figure, points: pd.DataFrame, mechanism: str, colour: str) -> None:
    """Add a point on a stem for each design of a mechanism; those below the axis point to the left.

    points  system, design, percent, height, and as far as the axis goes: shown, low and high
    """
    heights = points["height"].tolist()
    figure.add_trace(
        go.Scatter(
            x=[x for end in points["shown"] for x in (0.0, end, None)],
            y=[y for height in heights for y in (height, height, None)],
            mode="lines",
            line={"color": colour, "width": 3},
            hoverinfo="skip",
            showlegend=False,
        )
    )
    is_below = points["percent"] < points["shown"]
    figure.add_trace(
        go.Scatter(
            x=points["shown"].to_numpy(),
            y=heights,
            mode="markers",
            showlegend=False,
            customdata=points[["system", "design", "percent"]].to_numpy(dtype=object).tolist(),
            error_x={
                "type": "data",
                "symmetric": False,
                "array": (points["high"] - points["shown"]).to_numpy(),
                "arrayminus": (points["shown"] - points["low"]).to_numpy(),
                "color": colour,
                "thickness": 1,
                "width": 5,
            },
            marker={
                "size": 11,
                "color": colour,
                "symbol": ["triangle-left" if below else "circle" for below in is_below],
            },
            cliponaxis=False,
            hovertemplate="%{customdata[0]}, %{customdata[1]}: %{customdata[2]:.1f}%<extra>"
            + mechanism
            + "</extra>",
        )
    )
    mark = {"size": 11, "color": colour}
    figure.add_trace(go.Scatter(x=[None], y=[None], mode="markers", name=mechanism, marker=mark))


def curves(frame: pd.DataFrame, kind: str, *, columns: int = 2, legend: bool = True) -> go.Figure:
    """Return a chart of each design's performance with degraded information, one panel per system.

    frame   as `planner.coordination.measurement.curves` has it
    kind    age, noise or granularity
    legend  of mechanisms; without it `MECHANISMS` has their colours
    """
    rows = frame[frame["kind"] == kind]
    systems = list(dict.fromkeys(rows["system"]))
    degradation = {"age": "age of information", "noise": "measurement noise", "granularity": "granularity"}[
        kind
    ]
    title = f"Value of coordination by {degradation}"
    if not systems:
        return apply_style(go.Figure(), f"{title}: no measurements")
    across = min(columns, len(systems))
    down = math.ceil(len(systems) / across)
    figure = make_subplots(
        down,
        across,
        subplot_titles=[f"<b>{system}</b>" for system in systems] if len(systems) > 1 else None,
        horizontal_spacing=0.24 if across == 2 else 0.2,
        vertical_spacing=0 if down == 1 else 90 / (250 * down + 90 * (down - 1)),
    )
    in_legend: set[str] = set()
    for index, system in enumerate(systems):
        cell = index // across + 1, index % across + 1
        in_legend |= _add_panel(figure, rows[rows["system"] == system], cell, 250 / 14, in_legend)
    title += "<br><sup>share of the possible gain, from no coordination to the proven bound</sup>"
    if len(systems) == 1:
        title = f"<b>{systems[0]}</b> by {degradation}"
    apply_style(figure, title)
    foot = 90 if legend else 45
    return figure.update_layout(
        height=82 + foot + 250 * down + 90 * (down - 1),
        margin={"l": 10, "r": 130, "t": 82 if len(systems) > 1 else 45, "b": foot},
        showlegend=legend,
        legend={"orientation": "h", "y": 0, "yanchor": "bottom", "yref": "container"},
    )


def _add_panel(
    figure: go.Figure, rows: pd.DataFrame, cell: tuple[int, int], max_labels: float, in_legend: set[str]
) -> set[str]:
    """Add one system's curves with the design's name at each end; return the mechanisms drawn.

    max_labels  number of labels that fit above each other
    in_legend   mechanisms that the legend has already
    """
    shares = bool(rows["share"].notna().any())
    values = list(dict.fromkeys(rows["value"].astype(float)))
    column, scale = ("share", 100.0) if shares else ("performance", 1.0)
    every_height = scale * rows[column].astype(float)
    low, high = float(every_height.min()), float(every_height.max())
    if shares:
        low, high = max(100 * MIN_SHARE, min(low, 0.0)), max(high, 100.0)
    ends: list[tuple[float, str, str, int]] = []
    counts: dict[str, int] = {}
    shown: set[str] = set()
    for design, curve in rows.groupby("design", sort=False):
        mechanism = str(curve["mechanism"].iloc[0])
        number = counts[mechanism] = counts.get(mechanism, -1) + 1
        heights = scale * curve[column].astype(float).to_numpy()
        drawn = np.maximum(heights, low)
        outside = heights < low
        spread = [_describe_spread(row) for row in curve.to_dict(orient="records")]
        hover = f"{design}: %{{customdata[0]:.4g}}{'%' if shares else ''}, performance "
        figure.add_trace(
            go.Scatter(
                x=list(range(len(values))),
                y=drawn,
                showlegend=mechanism not in in_legend | shown,
                # beside what is shown: what a page needs to open the scenario of a point
                customdata=[
                    [height, text, str(design), value]
                    for height, text, value in zip(heights, spread, values, strict=True)
                ],
                hovertemplate=hover + "%{customdata[1]}<extra>" + mechanism + "</extra>",
                error_y=_range_of_curve(curve, drawn, low, scale) if shares else None,
                **_line_style(mechanism, number, outside),
            ),
            *cell,
        )
        shown.add(mechanism)
        finite = np.flatnonzero(~np.isnan(heights))
        if len(finite):
            last = finite[-1]
            text = str(design) + (f" {heights[last]:.0f}%".replace("-", "−") if outside[last] else "")
            ends.append((float(drawn[last]), text, MECHANISMS[mechanism], int(last)))
    padding = 0.06 * (high - low) or 1.0
    span = low - padding, high + padding
    _label_ends(figure, ends, cell, span, max_labels)
    quality = str(rows["kind"].iloc[0]), str(rows["unit"].iloc[0])
    _set_axes(figure, cell, span, values, quality, shares=shares)
    return shown


def _set_axes(
    figure: go.Figure,
    cell: tuple[int, int],
    span: tuple[float, float],
    values: Sequence[float],
    quality: tuple[str, str],
    *,
    shares: bool,
) -> None:
    """Set the axes of a panel: the quality of information across, from best to worst, and performance up.

    span     lowest and highest value of the performance
    quality  what gets worse, and its unit
    """
    if shares:
        figure.add_hline(y=0, line={"dash": "dot", "color": "#888888", "width": 1}, row=cell[0], col=cell[1])
    kind, unit = quality
    plain = not is_convertible(unit)  # else each tick has its unit
    figure.update_xaxes(
        tickvals=list(range(len(values))),
        ticktext=[f"{value:,.10g}" if plain or not value else amount(value, unit) for value in values],
        title_text=f"{kind} ({unit})" if unit and plain else kind,
        title_standoff=4,
        range=[-0.2, len(values) - 0.9],
        zeroline=False,
        row=cell[0],
        col=cell[1],
    )
    figure.update_yaxes(
        range=list(span), ticksuffix=" %" if shares else "", zeroline=False, row=cell[0], col=cell[1]
    )


def _range_of_curve(curve: pd.DataFrame, drawn: np.ndarray, low: float, scale: float) -> dict[str, Any]:
    """Return the range of the shares of a curve over its draws, as far as the axis goes, as error bars."""
    ends = [
        np.maximum(scale * curve[name].fillna(curve["share"]).astype(float).to_numpy(), low)
        for name in ("share_low", "share_high")
    ]
    return {
        "type": "data",
        "symmetric": False,
        "array": np.maximum(ends[1] - drawn, 0.0),
        "arrayminus": np.maximum(drawn - ends[0], 0.0),
        "thickness": 1,
        "width": 3,
    }


def _line_style(mechanism: str, number: int, is_outside: np.ndarray) -> dict[str, Any]:
    """Return the style of a curve of a mechanism: its colour, and dashes and signs of its own.

    number      of the curve among those of the mechanism, from 0
    is_outside  whether each point is below the axis
    """
    sign = SIGNS[number % len(SIGNS)]
    return {
        "mode": "lines+markers",
        "name": mechanism,
        "legendgroup": mechanism,
        "legendrank": list(MECHANISMS).index(mechanism),
        "line": {"color": MECHANISMS[mechanism], "width": 2, "dash": DASHES[number % len(DASHES)]},
        "marker": {"size": 7, "symbol": ["triangle-down" if below else sign for below in is_outside]},
    }


def _label_ends(
    figure: go.Figure,
    ends: Sequence[tuple[float, str, str, int]],
    cell: tuple[int, int],
    limits: tuple[float, float],
    max_labels: float,
) -> None:
    """Write the text of each curve beside its last point, none above another.

    ends    height, text, colour and position of each last point
    limits  of the axis
    """
    bottom, top = limits
    ordered = sorted(ends)
    spots = _spread_labels([end[0] for end in ordered], (top - bottom) / max_labels, bottom, top)
    for (height, text, colour, last), spot in zip(ordered, spots, strict=True):
        figure.add_annotation(
            text=text, x=last, y=height, ax=14, ay=spot, axref="pixel",
            ayref=figure.get_subplot(*cell).yaxis.plotly_name.replace("axis", ""), xanchor="left",
            yanchor="middle", showarrow=True, arrowhead=0, arrowwidth=0.8, arrowcolor=colour,
            row=cell[0], col=cell[1], font_size=11,
        )  # fmt: skip


def _describe_spread(row: Mapping[Any, Any]) -> str:
    """Return a performance with its range, such as `1.25 (1.2 to 1.3, 3 seeds)`."""
    if row["performance"] is None:
        return "unknown"
    text = f"{row['performance']:.4g}"
    return (
        text
        if row["seeds"] < 2
        else f"{text} ({row['least']:.4g} to {row['most']:.4g}, {row['seeds']} seeds)"
    )


def _spread_labels(heights: Sequence[float], spacing: float, low: float, high: float) -> list[float]:
    """Return label positions near the ends of lines (ascending), at least `spacing` apart."""
    positions: list[float] = []
    for height in heights:
        positions.append(max(height, positions[-1] + spacing if positions else low))
    over = positions[-1] - high if positions else 0.0
    if over > 0:  # beyond the upper end: move labels down
        for index in range(len(positions) - 1, -1, -1):
            ceiling = high if index == len(positions) - 1 else positions[index + 1] - spacing
            positions[index] = min(positions[index], ceiling)
    return positions
