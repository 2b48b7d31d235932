"""Slides of a page of results, for PowerPoint: titles, charts that stay editable, and tables."""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pandas as pd

from planner.contract.drawing import Curve, Distribution, Drawing, NetworkMap, Points, Timeline
from planner.extras import needed_by
from planner.formatting import heading, heading_with_unit, printable
from planner.reports.colours import COLOURS
from planner.reports.document import Page, Part, Table, Text
from planner.reports.slide_deck import (
    BODY,
    BOTTOM,
    COLOUR,
    DIM,
    HAIR,
    INK,
    LEFT,
    LETTER,
    LINE,
    RIGHT,
    TOP,
    Box,
    Deck,
    find_fitting_size,
    inches,
    lines_of,
    take_fitting_lines,
    text_height,
    write_text,
)
from planner.reports.storyline import Section, Storyline, split_columns, storyline
from planner.version import __version__

CHARTS_OF_SLIDE: Final = 6
LEAST_CHART: Final = 2.1
"""Height of the smallest chart, inches."""
MOST_CATEGORIES: Final = 30
"""Bars of a chart."""
MOST_POINTS: Final = 200
"""Of a line of a chart."""
ROW: Final = 0.3
"""Height of a table's row with one line, inches."""
TABLE_SIZE: Final = 12
MOST_LETTERS: Final = 138
"""Across a table."""


def pptx(page: Page) -> bytes:
    """Return a page as a PowerPoint file.

    raises  MissingPackage without python-pptx or typst
    """
    with needed_by("PowerPoint"):
        import pptx as library
    story = storyline(page)
    deck = Deck(library.Presentation())
    _add_answer(deck, story)
    for section in story.sections:
        _add_section(deck, section)
    if story.assumptions is not None:
        _add_assumptions(deck, story.assumptions)
    content = io.BytesIO()
    deck.file.core_properties.title = printable(story.verdict)[:250]
    deck.file.core_properties.author = f"planner {__version__}"
    deck.file.save(content)
    return content.getvalue()


# --- slides -------------------------------------------------------------------------------


def _add_answer(deck: Deck, story: Storyline) -> None:
    """Add the slide of question, verdict, figures and picture."""
    slide = deck.add(story.verdict)
    question = Box(LEFT, 0.16, RIGHT - LEFT, 0.4)
    about = f"{story.title}. {story.question}"
    fit = take_fitting_lines([Text(about, "dim")], question.width, 0.45, 11)
    deck.text(slide, question, fit, 11)
    has_picture = story.picture is not None
    left_box = Box(LEFT, TOP, 4.0 if has_picture else RIGHT - LEFT, BOTTOM - TOP)
    top = left_box.top
    for highlight in story.highlights:
        box = Box(left_box.left, top, left_box.width, 0.92)
        size = find_fitting_size(highlight.value, left_box.width, 0.55, (24, 20, 16))
        label = take_fitting_lines([Text(highlight.label, "dim")], left_box.width, 0.25, 11)
        deck.text(slide, Box(box.left, top, box.width, 0.22), label, 11)
        value = take_fitting_lines([Text(highlight.value, "strong")], box.width, 0.5, size)
        deck.text(slide, Box(box.left, top + 0.22, box.width, 0.45), value, size)
        deck.text(slide, Box(box.left, top + 0.67, box.width, 0.24), [highlight.note], 11)
        top += 1.0
    reasons = [Text(story.reasons), *(Text(line, "bad") for line in story.warnings)]
    remaining_box = Box(
        left_box.left, top + 0.05, left_box.width, left_box.top + left_box.height - top - 0.05
    )
    said = [line for line in reasons if line.text]
    size = next(
        (
            size_
            for size_ in (16, 14, 12)
            if text_height([line.text for line in said], remaining_box.width, size_) <= remaining_box.height
        ),
        12,
    )
    deck.text(
        slide, remaining_box, take_fitting_lines(said, remaining_box.width, remaining_box.height, size), size
    )
    if story.picture is not None:
        title, drawing = story.picture
        box = Box(4.95, TOP, RIGHT - 4.95, BOTTOM - TOP - 0.3)
        deck.picture(slide, box, drawing, title)
        caption = Box(box.left, BOTTOM - 0.25, box.width, 0.25)
        deck.text(slide, caption, take_fitting_lines([Text(title, "dim")], box.width, 0.3, 11), 11)
    slide.notes_slide.notes_text_frame.text = printable(
        f"{story.title}\n{story.question}\n{story.verdict} {story.reasons}"
    )


def _add_section(deck: Deck, section: Section) -> None:
    """Add the slides of a part: tables, then sentences beside a picture or charts, then the other charts."""
    title = section.title or "Details"
    for table in section.tables:
        add_table(deck, title, table)
    pictures, charts = list(section.pictures), list(section.charts)
    said = [*section.sentences, *section.notes]
    if section.sentences or (said and not section.tables) or pictures:
        slide = deck.add(title)
        has_drawing = bool(pictures or charts)
        text = Box(LEFT, TOP, 4.1 if has_drawing else BODY.width, BODY.height)
        right = Box(LEFT + 4.45, TOP, BODY.width - 4.45, BODY.height)
        left_over = BODY.height - text_height([line.text for line in said], text.width, 13)
        if pictures:
            first = pictures.pop(0)
            deck.picture(slide, right, first, first.title)
            if charts and left_over > LEAST_CHART + 0.2:
                below = Box(LEFT, TOP + BODY.height - LEAST_CHART, text.width, LEAST_CHART)
                add_chart(slide, below, charts.pop(0))
                text = Box(LEFT, TOP, text.width, BODY.height - LEAST_CHART - 0.2)
        elif charts:
            beside = charts[:2]
            del charts[:2]
            for box, drawing in zip(right.rows(len(beside)), beside, strict=True):
                add_chart(slide, box, drawing)
        deck.text(slide, text, take_fitting_lines(said, text.width, text.height, 13), 13)
    for drawing in pictures:
        deck.picture(deck.add(drawing.title), BODY, drawing, drawing.title)
    for start in range(0, len(charts), CHARTS_OF_SLIDE):
        batch = charts[start : start + CHARTS_OF_SLIDE]
        slide = deck.add(title if start == 0 and not section.tables and not said else f"{title}: charts")
        across = 1 if len(batch) == 1 else 2 if len(batch) in (2, 4) else 3
        rows = BODY.rows(math.ceil(len(batch) / across))
        boxes = [box for row in rows for box in row.columns(across)]
        for box, drawing in zip(boxes, batch, strict=False):
            add_chart(slide, box, drawing)


def _add_assumptions(deck: Deck, section: Part) -> None:
    for table in section.tables:
        add_table(deck, section.title, table)
    if section.texts:
        slide = deck.add("The same result from the command line and in Python")
        lines = [Text(line or " ") for text in section.texts for line in [*text.split("\n"), ""]]
        deck.text(slide, BODY, take_fitting_lines(lines, BODY.width, BODY.height, 12), 12, code=True)


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


def _row_height(row: Sequence[Text], widths: Sequence[float]) -> float:
    """Return the height of a row of cells in columns of these widths, inches."""
    lines = [lines_of(cell.text, wide - 0.16, TABLE_SIZE) for cell, wide in zip(row, widths, strict=True)]
    return max(lines) * (TABLE_SIZE * LINE / 72) + 0.1


def add_table(deck: Deck, title: str, table: Table) -> None:
    """Add a table on as many slides as it needs."""
    pieces = list(split_columns(table, MOST_LETTERS))
    for piece in pieces:
        widths = _column_widths(piece)
        heights = [_row_height(row, widths) for row in piece.cells()]
        start = 0
        while start < len(heights) or start == 0:
            end, used = start, ROW
            while end < len(heights) and (end == start or used + heights[end] <= BODY.height - 0.35):
                used += heights[end]
                end += 1
            slide = deck.add(title if start == 0 else f"{title}, continued")
            _draw_table(slide, piece, range(start, end), widths, heights)
            if end == len(heights) and piece.caption:
                box = Box(LEFT, TOP + used + 0.08, BODY.width, 0.25)
                deck.text(
                    slide, box, take_fitting_lines([Text(piece.caption, "dim")], box.width, 0.3, 10), 10
                )
            start = end
            if not heights:
                break


def _column_widths(table: Table) -> list[float]:
    """Return the width of each column, inches: as wide as its words, and no wider than the slide together."""
    cells = table.cells()
    letters = []
    for index, column in enumerate(table.columns):
        texts = [f"{column.label} {column.unit}", *(row[index].text for row in cells)]
        letters.append(max(len(line) for text in texts for line in text.split("\n")))
    column_widths = [count * TABLE_SIZE * LETTER / 72 + 0.25 for count in letters]
    over = sum(column_widths) - BODY.width
    if over > 0:  # the widest columns give way
        widest = max(column_widths)
        while over > 1e-6 and widest > 1.0:
            widest -= 0.1
            column_widths = [min(wide, widest) for wide in column_widths]
            over = sum(column_widths) - BODY.width
        column_widths = [wide * min(1.0, BODY.width / sum(column_widths)) for wide in column_widths]
    return column_widths


def _draw_table(
    slide: Any, table: Table, rows: range, widths: Sequence[float], heights: Sequence[float]
) -> None:
    from pptx.enum.text import PP_ALIGN
    from pptx.util import Inches, Pt

    cells = table.cells()
    has_header = any(column.label or column.unit for column in table.columns)
    first = int(has_header)
    tall = first * ROW + sum(heights[row] for row in rows)
    frame = slide.shapes.add_table(first + len(rows), len(widths), *inches(Box(LEFT, TOP, sum(widths), tall)))
    shown = frame.table
    _clear_style(frame)
    shown.first_row, shown.horz_banding = has_header, False
    for index, wide in enumerate(widths):
        shown.columns[index].width = Inches(wide)
    head = [Text(f"{column.label} {column.unit}".strip(), "strong") for column in table.columns]
    content = [*([head] if has_header else []), *(cells[row] for row in rows)]
    for index, row in enumerate(content):
        shown.rows[index].height = Inches(ROW if has_header and index == 0 else heights[rows[index - first]])
        for position, cell in enumerate(row):
            target = shown.cell(index, position)
            target.margin_left = target.margin_right = Inches(0.06)
            target.margin_top = target.margin_bottom = Inches(0.03)
            paragraph = target.text_frame.paragraphs[0]
            bold = cell.kind in ("strong", "best")
            write_text(paragraph, printable(cell.text), TABLE_SIZE, COLOUR[cell.kind], bold)
            paragraph.space_after = Pt(0)
            if table.columns[position].numeric:
                paragraph.alignment = PP_ALIGN.RIGHT
            is_strong = (has_header and index == 0) or (
                index >= first and rows[index - first] in table.lines_after
            )
            _underline(target, DIM if is_strong else HAIR)


def _clear_style(frame: Any) -> None:
    """Give a table the style without fills and lines."""
    style = frame._element.graphic.graphicData.tbl.tblPr.find(
        "{http://schemas.openxmlformats.org/drawingml/2006/main}tableStyleId"
    )
    style.text = "{2D5ABB26-0587-4C30-8999-92F81FD0307C}"


def _underline(cell: Any, colour: str) -> None:
    """Draw the lower edge of a cell."""
    from pptx.oxml import parse_xml

    properties = cell._tc.get_or_add_tcPr()
    properties.insert(
        0,
        parse_xml(
            '<a:lnB xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main" w="6350"><a:solidFill>'
            f'<a:srgbClr val="{colour}"/></a:solidFill></a:lnB>'
        ),
    )
