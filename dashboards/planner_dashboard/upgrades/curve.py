"""The Pareto curve of upgrades, drawn with boxes: `st.html` shows no SVG."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Final

from planner.formatting import short_number
from planner_dashboard.upgrades.work import BudgetPoint

SPACE: Final = 0.08
"""Part of the height below the lowest point."""


def curve_html(points: Sequence[BudgetPoint], selected: int, across: str, up: str) -> str:
    """Return the steps of a curve of cost and value, with one point marked.

    selected  place of the marked point
    across  label of the costs; `up` of the values
    """
    values, largest_cost = [point.value for point in points], max(point.cost for point in points) or 1.0
    bounds = [point.value if point.bound is None else point.bound for point in points]
    low, high = min(values + bounds), max(values + bounds)
    span = (high - low) or 1.0
    # values may be better where they are less: then the curve falls
    heights = [100 * (SPACE + (1 - SPACE) * (value - low) / span) for value in values]
    positions = [100 * point.cost / largest_cost for point in points]
    parts = []
    for point, position, end in zip(points, positions, [*positions[1:], 100.0], strict=True):
        if point.bound is not None:
            top = 100 * (SPACE + (1 - SPACE) * (point.bound - low) / span)
            parts.append(_box("planner-bound", left=position, bottom=top, width=end - position))
    for count, (position, height) in enumerate(zip(positions, heights, strict=True)):
        end = positions[count + 1] if count + 1 < len(points) else 100.0
        parts.append(_box("planner-level", left=position, bottom=height, width=end - position))
        if count:
            before = heights[count - 1]
            parts.append(
                _box("planner-rise", left=position, bottom=min(before, height), height=abs(height - before))
            )
    for count, (position, height) in enumerate(zip(positions, heights, strict=True)):
        kind = "planner-chosen" if count == selected else "planner-point"
        parts.append(_box(kind, left=position, bottom=height))
    top, bottom = 100.0, 100 * SPACE
    beside, below = "right:calc(100% + 6px)", "top:calc(100% + 3px)"
    scale = [
        _text(short_number(high, 4), f"{beside};bottom:calc({top:.2f}% - 8px)"),
        _text(short_number(low, 4), f"{beside};bottom:calc({bottom:.2f}% - 8px)"),
        _text("0", f"left:0;{below}"),
        _text(across, f"left:35%;{below}"),
        _text(short_number(largest_cost, 4), f"right:0;{below}"),
    ]
    now = points[selected]
    about = escape(f"{up} by {across}; marked: {now.cost_words}, {now.reached}", quote=True)
    return (
        f"<div class='planner-dim'>{escape(up)}</div><div class='planner-curve'>"
        f"<div class='planner-plot' role='img' aria-label='{about}'>{''.join([*parts, *scale])}</div></div>"
    )


def _box(kind: str, **percents: float) -> str:
    style = ";".join(f"{name}:{value:.2f}%" for name, value in percents.items())
    return f"<span class='{kind}' style='{style}'></span>"


def _text(text: str, style: str) -> str:
    return f"<span class='planner-scale' style='{style}'>{escape(text)}</span>"
