"""Native charts on slides, which can be edited: bars, lines, points and distributions."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np
import pandas as pd

from planner.contract.drawing import Curve, Distribution, Drawing, NetworkMap, Points, Timeline
from planner.formatting import heading, heading_with_unit, printable
from planner.reports.colours import COLOURS
from planner.reports.slide_deck import DIM, HAIR, INK, Box, inches, write_text

MOST_CATEGORIES: Final = 30
"""Bars of a chart."""
MOST_POINTS: Final = 200
"""Of a line of a chart."""


def add_chart(slide: Any, box: Box, drawing: Drawing) -> None:
    """Add a native chart of bars, lines, points or a distribution."""
    from pptx.chart.data import CategoryChartData, XyChartData
    from pptx.enum.chart import XL_CHART_TYPE

    position = inches(box)
    data: Any
    match drawing:
        case NetworkMap() | Timeline():  # shown as pictures
            return
        case Curve(bars=True):
            first, *series = (str(name) for name in drawing.frame)
            frame = drawing.frame.head(MOST_CATEGORIES)
            data = CategoryChartData()
            data.categories = [printable(str(name)) for name in frame[first]]
            for name in series:
                data.add_series(printable(heading(name)), [_known(value) for value in frame[name]])
            shape = slide.shapes.add_chart(XL_CHART_TYPE.BAR_CLUSTERED, *position, data)
            unit = {drawing.units.get(name, "") for name in series}
            _style_chart(shape.chart, drawing.title, unit.pop() if len(unit) == 1 else "", "", len(series))
            _style_bars(shape.chart)
        case Curve():
            first, *series = (str(name) for name in drawing.frame)
            x_values = pd.to_numeric(drawing.frame[first], errors="coerce").to_numpy(dtype=float)
            data = XyChartData()
            for name in series:
                _add_points(data, name, x_values, drawing.frame[name].to_numpy(dtype=float))
            shape = slide.shapes.add_chart(XL_CHART_TYPE.XY_SCATTER_LINES_NO_MARKERS, *position, data)
            unit = {drawing.units.get(name, "") for name in series}
            across = heading_with_unit(first, drawing.units.get(first, ""))
            _style_chart(
                shape.chart, drawing.title, unit.pop() if len(unit) == 1 else "", across, len(series)
            )
        case Points():
            across = str(drawing.frame.columns[1])
            data = XyChartData()
            for row in drawing.frame.itertuples(index=False):
                _add_points(data, str(row[0]), np.array([float(row[1])]), np.array([float(row[2])]))
            shape = slide.shapes.add_chart(XL_CHART_TYPE.XY_SCATTER, *position, data)
            name = heading_with_unit(across, drawing.units.get(across, ""))
            _style_chart(shape.chart, drawing.title, "", name, len(drawing.frame))
        case Distribution():
            data = XyChartData()
            for name, values in drawing.values.items():
                ordered = np.sort(values.dropna().to_numpy(float))
                shares = 100 * (np.arange(len(ordered)) + 1) / max(1, len(ordered))
                _add_points(data, name, ordered, shares)
            shape = slide.shapes.add_chart(XL_CHART_TYPE.XY_SCATTER_LINES_NO_MARKERS, *position, data)
            across = heading_with_unit(drawing.what, drawing.unit)
            _style_chart(shape.chart, f"{drawing.title}: % at most so large", "", across, len(drawing.values))
    shape._element.nvGraphicFramePr.cNvPr.set("descr", printable(drawing.title))


def _add_points(data: Any, name: str, x_values: Any, y_values: Any) -> None:
    """Add a series of known points, thinned out where there are many."""
    series = data.add_series(printable(name))
    finite = np.flatnonzero(np.isfinite(x_values) & np.isfinite(y_values))
    if len(finite) > MOST_POINTS:
        finite = finite[np.unique(np.linspace(0, len(finite) - 1, MOST_POINTS).astype(int))]
    for index in finite:
        series.add_data_point(float(x_values[index]), float(y_values[index]))


def _style_chart(chart: Any, title: str, unit: str, across: str, count: int) -> None:
    """Set a chart's title, colours, axes and legend."""
    from pptx.dml.color import RGBColor
    from pptx.enum.chart import XL_LEGEND_POSITION, XL_MARKER_STYLE
    from pptx.util import Pt

    words = printable(title.replace("<br>", " ")) + (f" [{unit}]" if unit else "")
    chart.has_title = True
    write_text(chart.chart_title.text_frame.paragraphs[0], words, 12, INK, bold=True)
    chart.font.size, chart.font.color.rgb = Pt(11), RGBColor.from_string(DIM)
    chart.has_legend = count > 1
    if count > 1:
        chart.legend.position, chart.legend.include_in_layout = XL_LEGEND_POSITION.BOTTOM, False
    for index, series in enumerate(chart.plots[0].series):
        colour = RGBColor.from_string(COLOURS[index % len(COLOURS)].removeprefix("#"))
        if hasattr(series, "marker"):
            is_point = len(list(series.values)) == 1
            series.marker.style = XL_MARKER_STYLE.CIRCLE if is_point else XL_MARKER_STYLE.NONE
            series.marker.size = 9
            series.marker.format.fill.solid()
            series.marker.format.fill.fore_color.rgb = colour
            series.smooth = False
            if is_point:
                series.format.line.fill.background()
            else:
                series.format.line.color.rgb, series.format.line.width = colour, Pt(1.75)
        else:
            series.format.fill.solid()
            series.format.fill.fore_color.rgb = colour
    chart.value_axis.major_gridlines.format.line.color.rgb = RGBColor.from_string(HAIR)
    chart.value_axis.format.line.fill.background()
    if across:
        axis = chart.category_axis
        axis.has_title = True
        write_text(axis.axis_title.text_frame.paragraphs[0], printable(across), 11, DIM)
        axis.has_major_gridlines = False


def _style_bars(chart: Any) -> None:
    """Write the figures at the bars in place of an axis, the first bar on top."""
    plot = chart.plots[0]
    plot.gap_width, plot.has_data_labels = 45, True
    plot.data_labels.number_format, plot.data_labels.number_format_is_linked = "#,##0.####", False
    plot.data_labels.show_value = True
    chart.value_axis.visible = chart.value_axis.has_major_gridlines = False
    chart.category_axis.reverse_order = True
    chart.category_axis.format.line.fill.background()


def _known(value: Any) -> float | None:
    """Return a figure with four digits; None for unknown."""
    number = float(value)
    return float(f"{number:.4g}") if math.isfinite(number) else None
