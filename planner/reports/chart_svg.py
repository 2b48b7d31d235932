"""Charts of drawings as SVG text, for documents: bars, lines, points and distributions.

Lengths are in points of the document that shows the chart in its own size. A text is escaped, and thus
never markup.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from planner.contract.drawing import Curve, Distribution, Points
from planner.formatting import heading_with_unit, number, printable, short_number
from planner.reports.colours import COLOURS

TEXT: Final = "#1b2530"
DIM: Final = "#5d6975"
GRID: Final = "#dfe4e9"
LIMIT: Final = "#8f0d2b"
FONT: Final = "Libertinus Serif, Source Serif, Georgia, serif"
SIZE: Final = 8.5
"""Of texts, points."""
LETTER: Final = 0.47
"""Mean width of a letter, as a share of its size."""
PLOT: Final = 96.0
"""Height of the plot of lines and points."""
LEFT: Final = 34.0
"""Left end of the plot."""
DOT: Final = 3.2
"""Radius of a dot with a name."""
MOST_BARS: Final = 40
MOST_LINES: Final = 12
"""Most lines of a chart, which readers still distinguish; the title says how many are not drawn."""
MOST_DOTS: Final = 30
"""Points of a line up to which each has a dot."""
MOST_STEPS: Final = 300
"""Points of a distribution's curve."""
DASHES: Final = ("", "5 2", "1.5 2", "6 2 1.5 2")


@dataclass
class Canvas:
    """An SVG picture that grows by its shapes."""

    width: float
    height: float
    shapes: list[str] = field(default_factory=list)

    def text(
        self, x: float, y: float, text: str, *, anchor: str = "start", colour: str = TEXT, bold: bool = False,
        size: float = SIZE,
    ) -> None:  # fmt: skip
        """Write a text with its baseline at y."""
        weight = ' font-weight="600"' if bold else ""
        self.shapes.append(
            f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size:g}" text-anchor="{anchor}" fill="{colour}"'
            f"{weight}>{escape(_plain(text))}</text>"
        )

    def line(
        self,
        x: float,
        y: float,
        to_x: float,
        to_y: float,
        colour: str = GRID,
        dash: str = "",
        wide: float = 0.6,
    ) -> None:
        """Draw a straight line."""
        self.path([(x, y), (to_x, to_y)], colour, dash, wide)

    def path(
        self, points: Sequence[tuple[float, float]], colour: str, dash: str = "", wide: float = 1.4
    ) -> None:
        """Draw a line through points."""
        positions = " ".join(f"{x:.2f},{y:.2f}" for x, y in points)
        dashes = f' stroke-dasharray="{dash}"' if dash else ""
        self.shapes.append(
            f'<polyline points="{positions}" fill="none" stroke="{colour}" stroke-width="{wide:g}"'
            f' stroke-linejoin="round"{dashes}/>'
        )

    def rectangle(self, x: float, y: float, width: float, height: float, colour: str) -> None:
        """Draw a filled rectangle; a negative width reaches to the left."""
        left_edge = min(x, x + width)
        self.shapes.append(
            f'<rect x="{left_edge:.2f}" y="{y:.2f}" width="{abs(width):.2f}" height="{height:.2f}"'
            f' fill="{colour}"/>'
        )

    def dot(self, x: float, y: float, colour: str, radius: float = 2.2) -> None:
        """Draw a filled circle with a white rim."""
        self.shapes.append(
            f'<circle cx="{x:.2f}" cy="{y:.2f}" r="{radius:g}" fill="{colour}" stroke="#ffffff"'
            ' stroke-width="0.6"/>'
        )

    def svg(self) -> str:
        """Return the picture."""
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{self.width:g}" height="{self.height:g}"'
            f' viewBox="0 0 {self.width:g} {self.height:g}" font-family="{FONT}">'
            f"{''.join(self.shapes)}</svg>"
        )


def chart_svg(drawing: Curve | Points | Distribution, width: float = 232.0) -> str:
    """Return the chart of a drawing as SVG text, `width` points wide."""
    match drawing:
        case Curve(bars=True):
            return _bars(drawing, width)
        case Curve():
            return _lines(drawing, width)
        case Points():
            return _points(drawing, width)
        case Distribution():
            return _distribution(drawing, width)


# --- bars ---------------------------------------------------------------------------------


def _bars(curve: Curve, width: float) -> str:
    """Return horizontal bars with a name at left and a figure at right of each."""
    first, *series = (str(name) for name in curve.frame)
    frame = curve.frame.head(MOST_BARS)
    names = [str(name) for name in frame[first]]
    units = {curve.units.get(name, "") for name in series}
    unit = units.pop() if len(units) == 1 else ""
    title = _title_lines(curve.title, unit, len(curve.frame) - len(frame), width)
    thick = 11.0 if len(series) == 1 else 7.0
    step = thick * len(series) + 6.0
    canvas = Canvas(width, 0.0)
    top = _write_title(canvas, title) + (16.0 if len(series) > 1 else 2.0)
    canvas.height = top + step * len(names) + 2
    values = frame[series].to_numpy(dtype=float)
    texts = [[number(float(value)) for value in row] for row in values]
    left_margin = min(0.42 * width, max((_width(name) for name in names), default=0.0) + 8)
    right = max((_width(text) for row in texts for text in row), default=0.0) + 5
    low = min(0.0, float(np.nanmin(values, initial=0.0)))
    high = max(0.0, float(np.nanmax(values, initial=0.0)))
    span = (high - low) or 1.0
    scale = (width - left_margin - right) / span
    zero = left_margin - low * scale
    if len(series) > 1:
        _legend(canvas, [(name, COLOURS[index % len(COLOURS)]) for index, name in enumerate(series)], top - 8)
    for index, name in enumerate(names):
        y = top + index * step
        canvas.text(left_margin - 5, y + (step - 6) / 2 + 3, _cut(name, left_margin - 6), anchor="end")
        for position in range(len(series)):
            value = values[index, position]
            colour = COLOURS[(position if len(series) > 1 else 0) % len(COLOURS)]
            if not math.isnan(value):
                canvas.rectangle(zero, y + position * thick, value * scale, thick - 1, colour)
            end = zero + max(0.0, 0.0 if math.isnan(value) else value) * scale
            canvas.text(end + 4, y + position * thick + thick / 2 + 2.6, texts[index][position], colour=TEXT)
    canvas.line(zero, top - 2, zero, top + step * len(names) - 4, DIM)
    return canvas.svg()


# --- axes ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Scale:
    """An axis: values from `low` to `high` at lengths from `start` to `end`."""

    low: float
    high: float
    start: float
    end: float
    is_log: bool = False

    def at(self, value: float) -> float:
        """Return the length of a value."""
        low, high, position = (
            math.log10(end) if self.is_log else end for end in (self.low, self.high, value)
        )
        return self.start + (position - low) / (high - low or 1.0) * (self.end - self.start)

    def ticks(self) -> list[float]:
        """Return four to seven round values."""
        if self.is_log:
            first, last = math.ceil(math.log10(self.low) - 1e-9), math.floor(math.log10(self.high) + 1e-9)
            step = max(1, (last - first) // 5)
            powers = [10.0**power for power in range(first, last + 1, step)]
            return powers if len(powers) > 1 else [self.low, self.high]
        span = self.high - self.low
        rough = span / 5 or 1.0
        size = 10.0 ** math.floor(math.log10(rough))
        wide = next(factor * size for factor in (1, 2, 2.5, 5, 10) if factor * size >= rough)
        first_step = math.ceil(self.low / wide - 1e-9)
        return [index * wide for index in range(first_step, math.floor(self.high / wide + 1e-9) + 1)]


def _scale(values: Any, start: float, end: float, *, is_log: bool = False, margin: float = 0.04) -> Scale:
    """Return an axis for values, with a margin; a logarithmic one for the positive ones."""
    finite = np.asarray(values, dtype=float)
    finite = finite[np.isfinite(finite)]
    is_log = is_log and bool((finite > 0).any())
    if is_log:
        finite = finite[finite > 0]
        low, high = float(finite.min()), float(finite.max())
        return Scale(low, high if high > low else 10 * low, start, end, is_log=True)
    low, high = (float(finite.min()), float(finite.max())) if len(finite) else (0.0, 1.0)
    if high == low:
        low, high = low - 0.5 * (abs(low) or 1.0), high + 0.5 * (abs(high) or 1.0)
    margin *= high - low
    return Scale(low - margin, high + margin, start, end)


def _axes(canvas: Canvas, across: Scale, up: Scale, across_name: str, up_name: str) -> None:
    """Draw grid, figures and names of two axes."""
    for value in up.ticks():
        y = up.at(value)
        canvas.line(across.start, y, across.end, y)
        canvas.text(across.start - 4, y + 2.7, _tick(value), anchor="end", colour=DIM, size=7.5)
    for value in across.ticks():
        x = across.at(value)
        canvas.line(x, up.start, x, up.start + 3, DIM)
        canvas.text(x, up.start + 11, _tick(value), anchor="middle", colour=DIM, size=7.5)
    canvas.line(across.start, up.start, across.end, up.start, DIM)
    canvas.text((across.start + across.end) / 2, up.start + 22, across_name, anchor="middle", colour=DIM)
    if up_name:
        canvas.text(across.start, up.end - 5, up_name, colour=DIM, size=7.5)


# --- lines, points, distributions ---------------------------------------------------------


def _lines(curve: Curve, width: float) -> str:
    """Return lines over a number, with their names below."""
    first, *series = (str(name) for name in curve.frame)
    drawn = series[:MOST_LINES]
    x_values = pd.to_numeric(curve.frame[first], errors="coerce").to_numpy(dtype=float)
    y_values = {name: curve.frame[name].to_numpy(dtype=float) for name in drawn}
    units = {curve.units.get(name, "") for name in drawn}
    unit = units.pop() if len(units) == 1 else ""
    entries = [
        (name, COLOURS[index % len(COLOURS)], DASHES[index // len(COLOURS) % len(DASHES)])
        for index, name in enumerate(drawn)
    ]
    rows = _legend_rows(entries, width) if len(drawn) > 1 else []
    canvas = Canvas(width, 0.0)
    top = _write_title(canvas, _title_lines(curve.title, unit, len(series) - len(drawn), width))
    canvas.height = top + PLOT + 30 + 11 * len(rows)
    across = _scale(x_values, LEFT, width - 8, is_log=curve.log_x)
    every = np.concatenate(list(y_values.values())) if y_values else np.zeros(1)
    up = _scale(every, top + PLOT, top + 4, is_log=curve.log_y)
    _axes(canvas, across, up, heading_with_unit(first, curve.units.get(first, "")), "")
    for name, colour, dash in entries:
        points = _points_on(across, up, x_values, y_values[name])
        canvas.path(points, colour, dash)
        if len(points) <= MOST_DOTS:
            for x, y in points:
                canvas.dot(x, y, colour)
    _draw_legend_rows(canvas, rows, top + PLOT + 36)
    return canvas.svg()


def _points_on(
    across: Scale, up: Scale, x_values: NDArray[np.float64], y_values: NDArray[np.float64]
) -> list[tuple[float, float]]:
    """Return the points of a line on two scales, without those that are unknown or have no logarithm."""
    is_drawn = np.isfinite(x_values) & np.isfinite(y_values)
    if across.is_log:
        is_drawn &= x_values > 0
    if up.is_log:
        is_drawn &= y_values > 0
    return [(across.at(x), up.at(y)) for x, y in zip(x_values[is_drawn], y_values[is_drawn], strict=True)]


def _points(points: Points, width: float) -> str:
    """Return dots with their names."""
    across_name, up_name = (str(column) for column in points.frame.columns[1:3])
    canvas = Canvas(width, 0.0)
    top = _write_title(canvas, _title_lines(points.title, "", 0, width)) + 10
    canvas.height = top + PLOT + 30
    across = _scale(points.frame[across_name], LEFT, width - 8, margin=0.1)
    up = _scale(points.frame[up_name], top + PLOT, top + 4, margin=0.15)
    _axes(
        canvas,
        across,
        up,
        heading_with_unit(across_name, points.units.get(across_name, "")),
        heading_with_unit(up_name, points.units.get(up_name, "")),
    )
    dots = [(across.at(float(row[1])), up.at(float(row[2]))) for row in points.frame.itertuples(index=False)]
    for index, (x, y) in enumerate(dots):
        canvas.dot(x, y, COLOURS[index % len(COLOURS)], DOT)
    taken: list[tuple[float, float, float]] = []
    for dot, text in zip(dots, points.labels(), strict=True):
        if text and (start := _place_label(dot, _width(text), dots, taken, width)) is not None:
            taken.append(start)
            canvas.text(start[0], start[2], text)
    return canvas.svg()


def _overlaps(label: tuple[float, float, float], other: tuple[float, float, float]) -> bool:
    """Return whether two labels, each with its left end, right end and baseline, overlap."""
    start, end, base = label
    other_start, other_end, other_base = other
    return abs(base - other_base) <= SIZE and start <= other_end and end >= other_start


def _covers(label: tuple[float, float, float], dot: tuple[float, float]) -> bool:
    """Return whether a label covers a dot."""
    start, end, base = label
    x, y = dot
    return start - DOT < x < end + DOT and base - SIZE < y + 0.5 < base + DOT


def _place_label(
    dot: tuple[float, float],
    wide: float,
    dots: Sequence[tuple[float, float]],
    taken: Sequence[tuple[float, float, float]],
    width: float,
) -> tuple[float, float, float] | None:
    """Return the left end, right end and baseline of a dot's label; None where it would cover others.

    The label is to the right or left of its dot, as near as possible; it covers no other dot if it can.

    dots   places of all dots
    taken  left end, right end and baseline of the labels that are placed already
    """
    x, y = dot
    positions = [
        (start, start + wide, y + shift)
        for shift in (2.8, -6.0, 11.0, -14.0, 19.0)
        for start in (x + 6, x - 6 - wide)
        if start >= LEFT and start + wide <= width - 4
    ]
    free = [label for label in positions if not any(_overlaps(label, other) for other in taken)]
    clear = [label for label in free if not any(_covers(label, other) for other in dots)]
    return next(iter(clear or free), None)


def _distribution(drawing: Distribution, width: float) -> str:
    """Return cumulative distributions as steps, with their names below."""
    series = {
        name: np.sort(values.dropna().to_numpy(float))
        for name, values in drawing.values.items()
        if len(values)
    }
    drawn = dict(list(series.items())[:MOST_LINES])
    entries = [(name, COLOURS[index % len(COLOURS)], "") for index, name in enumerate(drawn)]
    rows = _legend_rows(entries, width) if len(drawn) > 1 else []
    canvas = Canvas(width, 0.0)
    top = _write_title(canvas, _title_lines(drawing.title, "", len(series) - len(drawn), width)) + 10
    canvas.height = top + PLOT + 30 + 11 * len(rows)
    every = np.concatenate(
        [*drawn.values(), np.zeros(0 if drawing.limit is None else 1) + (drawing.limit or 0)]
    )
    across = _scale(every, LEFT, width - 8, is_log=drawing.log_x)
    up = Scale(0.0, 100.0, top + PLOT, top + 4)
    what = f"{drawing.what} ({drawing.unit})" if drawing.unit else drawing.what
    _axes(canvas, across, up, what, "% at most so large")
    for name, colour, dash in entries:
        canvas.path(_cumulative_steps(across, up, drawn[name]), colour, dash)
    if drawing.limit is not None:
        x = across.at(drawing.limit)
        canvas.line(x, up.start, x, up.end, LIMIT, "2 2", 0.9)
    _draw_legend_rows(canvas, rows, top + PLOT + 36)
    return canvas.svg()


def _cumulative_steps(across: Scale, up: Scale, ordered: NDArray[np.float64]) -> list[tuple[float, float]]:
    """Return the corners of the cumulative distribution of values in ascending order, in percent."""
    indices = np.unique(np.linspace(0, len(ordered) - 1, min(MOST_STEPS, len(ordered))).astype(int))
    points: list[tuple[float, float]] = []
    for index in indices:
        value = float(ordered[index])
        if across.is_log and value <= 0:
            continue
        x, y = across.at(value), up.at(100 * (index + 1) / len(ordered))
        points += [(x, points[-1][1] if points else up.at(0)), (x, y)]
    return points


# --- texts --------------------------------------------------------------------------------


def _title_lines(title: str, unit: str, left_out: int, width: float) -> list[str]:
    """Return a title with the unit, and the number of entries not drawn, in at most two lines."""
    more = f" ({left_out} more are not drawn)" if left_out > 0 else ""
    words = _plain(title) + (f" [{unit}]" if unit else "") + more
    return (textwrap.wrap(words, max(8, int(width / (9 * LETTER)))) or [""])[:2]


def _write_title(canvas: Canvas, rows: Sequence[str]) -> float:
    """Write a title; return the height that it takes."""
    for index, row in enumerate(rows):
        canvas.text(0, 10 + 11 * index, row, bold=True, size=9)
    return 8.0 + 11 * len(rows)


def _legend(canvas: Canvas, entries: Sequence[tuple[str, str]], y: float) -> None:
    rows = _legend_rows([(name, colour, "") for name, colour in entries], canvas.width)
    _draw_legend_rows(canvas, rows[:1], y)


def _legend_rows(
    entries: Sequence[tuple[str, str, str]], width: float
) -> list[list[tuple[float, str, str, str]]]:
    """Return names with colours and dashes in rows, each with its place across."""
    rows: list[list[tuple[float, str, str, str]]] = []
    x = 0.0
    for name, colour, dash in entries:
        text = _cut(name, width - 20)
        wide = _width(text) + 26
        if not rows or x + wide > width:
            rows.append([])
            x = 0.0
        rows[-1].append((x, text, colour, dash))
        x += wide
    return rows


def _draw_legend_rows(
    canvas: Canvas, rows: Sequence[Sequence[tuple[float, str, str, str]]], y: float
) -> None:
    for index, row in enumerate(rows):
        for x, text, colour, dash in row:
            baseline = y + 11 * index
            canvas.line(x, baseline - 2.7, x + 13, baseline - 2.7, colour, dash, 1.8)
            canvas.text(x + 16, baseline, text)


def _tick(value: float) -> str:
    text = short_number(value, 3) if abs(value) >= 1e4 else f"{value:,.4g}"
    return text.replace("-", "−")


def _plain(text: str) -> str:
    return printable(" ".join(text.replace("<br>", " ").split()))


def _width(text: str, size: float = SIZE) -> float:
    """Return the estimated width of a text."""
    return len(text) * size * LETTER


def _cut(text: str, width: float) -> str:
    """Return a text that is no wider than `width`."""
    limit = max(4, int(width / (SIZE * LETTER)))
    return text if len(text) <= limit else f"{text[: limit - 1]}…"
