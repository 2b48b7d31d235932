"""The Pareto curve of upgrades, drawn with boxes: `st.html` shows no SVG."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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
    tops = [100 * (SPACE + (1 - SPACE) * (bound - low) / span) for bound in bounds]
    positions = [100 * point.cost / largest_cost for point in points]
    parts = [
        _box("planner-bound", left=position, bottom=top, width=end - position)
        for point, position, end, top in zip(points, positions, [*positions[1:], 100.0], tops, strict=True)
        if point.bound is not None
    ]
    parts += _draw_steps(positions, heights)
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


def _draw_steps(positions: Sequence[float], heights: Sequence[float]) -> Iterator[str]:
    """Yield the level from each cost to the next one, and the rise from the level before, in percent."""
    ends, before = [*positions[1:], 100.0], [None, *heights[:-1]]
    for position, height, end, last in zip(positions, heights, ends, before, strict=True):
        yield _box("planner-level", left=position, bottom=height, width=end - position)
        if last is not None:
            yield _box("planner-rise", left=position, bottom=min(last, height), height=abs(height - last))


def _box(kind: str, **percents: float) -> str:
    style = ";".join(f"{name}:{value:.2f}%" for name, value in percents.items())
    return f"<span class='{kind}' style='{style}'></span>"


def _text(text: str, style: str) -> str:
    return f"<span class='planner-scale' style='{style}'>{escape(text)}</span>"
