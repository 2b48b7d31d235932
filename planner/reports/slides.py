"""Renders pages as PowerPoint slides, 16:9: native titles, tables and charts, which can be edited."""

from __future__ import annotations

import io
import math
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pandas as pd

from planner import __version__
from planner.contract.drawing import Curve, Distribution, Drawing, NetworkMap, Points, Timeline
from planner.extras import needed_by
from planner.formatting import heading, heading_with_unit, printable
from planner.reports.chart_style import COLOURS
from planner.reports.document import Kind, Page, Part, Table, Text
from planner.reports.drawing_svg import drawing_svg
from planner.reports.pdf import png, today
from planner.reports.storyline import Section, Storyline, split_columns, storyline

WIDTH, HEIGHT = 13.333, 7.5
"""Of a slide, inches."""
LEFT, RIGHT = 0.6, 12.733
TOP: Final = 1.55
"""Of what is below the title."""
BOTTOM: Final = 6.85
INK, DIM, HAIR = "1B2530", "5D6975", "D5DBE1"
COLOUR: Final[dict[Kind, str]] = {
    "": INK, "best": INK, "strong": INK, "good": "1A6B36", "bad": "A3162F", "warning": "8A5A00", "dim": DIM,
}  # fmt: skip
LETTER: Final = 0.52
"""Mean width of a letter, as a share of its size."""
LINE: Final = 1.22
"""Height of a line, as a share of the size of its letters."""
ROW: Final = 0.3
"""Height of a table's row with one line, inches."""
TABLE_SIZE: Final = 12
MOST_LETTERS: Final = 138
"""Across a table."""
MOST_CATEGORIES: Final = 30
"""Bars of a chart."""
MOST_POINTS: Final = 200
"""Of a line of a chart."""
CHARTS_OF_SLIDE: Final = 6
LEAST_CHART: Final = 2.1
"""Height of the smallest chart, inches."""
CODE_FONT: Final = "Consolas"


def pptx(page: Page) -> bytes:
    """Return a page as a PowerPoint file.

    raises  MissingPackage without python-pptx or typst
    """
    with needed_by("PowerPoint"):
        import pptx as library
    story = storyline(page)
    deck = _Deck(library.Presentation())
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


@dataclass(frozen=True)
class Box:
    """A place on a slide, in inches."""

    left: float
    top: float
    width: float
    height: float

    def columns(self, count: int, gap: float = 0.35) -> list[Box]:
        """Return places beside each other."""
        wide = (self.width - gap * (count - 1)) / count
        return [Box(self.left + at * (wide + gap), self.top, wide, self.height) for at in range(count)]

    def rows(self, count: int, gap: float = 0.2) -> list[Box]:
        """Return places below each other."""
        tall = (self.height - gap * (count - 1)) / count
        return [Box(self.left, self.top + at * (tall + gap), self.width, tall) for at in range(count)]


BODY: Final = Box(LEFT, TOP, RIGHT - LEFT, BOTTOM - TOP)


class _Deck:
    """A file of slides with its master set to 16:9."""

    def __init__(self, file: Any) -> None:
        from pptx.util import Inches

        self.file = file
        file.slide_width, file.slide_height = Inches(WIDTH), Inches(HEIGHT)
        self.layout = next(one for one in file.slide_layouts if one.name == "Title Only")
        for owner in (file.slide_master, self.layout):
            for shape in list(owner.placeholders):
                if shape.placeholder_format.type is not None and shape.placeholder_format.idx == 0:
                    shape.left, shape.top = Inches(LEFT), Inches(0.58)
                    shape.width, shape.height = Inches(RIGHT - LEFT), Inches(0.95)
                elif owner is self.layout:
                    shape._element.getparent().remove(shape._element)

    def add(self, title: str) -> Any:
        """Return a new slide with a title, the date and its number."""
        slide = self.file.slides.add_slide(self.layout)
        place = slide.shapes.title
        size = _fitting_size(title, RIGHT - LEFT, 0.95, (26, 24, 20, 17, 14))
        frame = place.text_frame
        _prepare(frame, anchor="middle")
        (shown,) = _fitting_lines([Text(printable(title))], RIGHT - LEFT, 1.0, size) or [Text("")]
        _write(frame.paragraphs[0], shown.text, size, bold=True)
        number = len(self.file.slides)
        footer = Box(LEFT, 7.0, RIGHT - LEFT - 1.1, 0.3)
        self.text(slide, footer, [Text(f"planner {__version__}, {today()}", "dim")], 10)
        end = Box(RIGHT - 1, 7.0, 1, 0.3)
        self.text(slide, end, [Text(str(number), "dim")], 10, align="right")
        return slide

    def text(
        self, slide: Any, box: Box, lines: Iterable[Text], size: float, *, align: str = "left",
        code: bool = False,
    ) -> None:  # fmt: skip
        """Write lines of text in a box, each a paragraph."""
        frame = slide.shapes.add_textbox(*_inches(box)).text_frame
        _prepare(frame)
        for place, line in enumerate(lines):
            paragraph = frame.paragraphs[0] if place == 0 else frame.add_paragraph()
            text = printable(line.text)
            is_item = text.startswith("- ")
            bold = line.kind in ("strong", "best")
            _write(paragraph, f"• {text[2:]}" if is_item else text, size, COLOUR[line.kind], bold, code)
            if align == "right":
                from pptx.enum.text import PP_ALIGN

                paragraph.alignment = PP_ALIGN.RIGHT

    def picture(self, slide: Any, box: Box, drawing: Drawing, title: str) -> None:
        """Show a map or timeline as large as the box allows, with its text alternative."""
        content = png(drawing_svg(drawing, 680), 1600)
        shape = slide.shapes.add_picture(io.BytesIO(content), 0, 0)
        scale = min(box.width / shape.width, box.height / shape.height)
        wide, tall = shape.width * scale, shape.height * scale
        place = Box(box.left + (box.width - wide) / 2, box.top + (box.height - tall) / 2, wide, tall)
        shape.left, shape.top, shape.width, shape.height = _inches(place)
        shape._element.nvPicPr.cNvPr.set("descr", printable(title))


def _inches(box: Box) -> tuple[int, int, int, int]:
    from pptx.util import Inches

    return Inches(box.left), Inches(box.top), Inches(box.width), Inches(box.height)


def _prepare(frame: Any, anchor: str = "top") -> None:
    """Let a text begin at the edge of its box and break into lines."""
    from pptx.enum.text import MSO_ANCHOR, MSO_AUTO_SIZE

    frame.word_wrap, frame.auto_size = True, MSO_AUTO_SIZE.NONE
    frame.margin_left = frame.margin_right = frame.margin_top = frame.margin_bottom = 0
    frame.vertical_anchor = MSO_ANCHOR.MIDDLE if anchor == "middle" else MSO_ANCHOR.TOP


def _write(
    paragraph: Any, text: str, size: float, colour: str = INK, bold: bool = False, code: bool = False
) -> None:
    """Set the text of a paragraph and its style."""
    from pptx.dml.color import RGBColor
    from pptx.enum.text import PP_ALIGN
    from pptx.util import Pt

    paragraph.alignment = PP_ALIGN.LEFT
    run = paragraph.add_run()
    run.text = text
    run.font.size, run.font.bold = Pt(size), bold
    run.font.color.rgb = RGBColor.from_string(colour)
    if code:
        run.font.name = CODE_FONT
    paragraph.space_after = Pt(size * 0.35)


# --- whether texts fit --------------------------------------------------------------------


def lines_of(text: str, width: float, size: float) -> int:
    """Return the estimated number of lines of a text in a width in inches, at a size in points."""
    letters = max(4, int(width * 72 / (size * LETTER)))
    return sum(len(textwrap.wrap(line, letters)) or 1 for line in text.split("\n"))


def text_height(texts: Iterable[str], width: float, size: float) -> float:
    """Return the estimated height of paragraphs, inches."""
    return sum(lines_of(text, width, size) * size * LINE + size * 0.35 for text in texts) / 72


def _fitting_size(text: str, width: float, height: float, sizes: Sequence[int]) -> int:
    """Return the largest size at which a text fits; the smallest where none does."""
    return next((size for size in sizes if text_height([text], width, size) <= height), sizes[-1])


def _fitting_lines(lines: Sequence[Text], width: float, height: float, size: float) -> list[Text]:
    """Return the first lines that fit, the last one shortened where more would follow."""
    shown: list[Text] = []
    for line in lines:
        before = [one.text for one in shown]
        if text_height([*before, line.text], width, size) <= height:
            shown.append(line)
            continue
        words = line.text.split()
        while words and text_height([*before, " ".join([*words, "…"])], width, size) > height:
            words.pop()
        return [*shown, *(Text(" ".join([*words, "…"]), line.kind) for _ in words[:1])]
    return shown


# --- slides -------------------------------------------------------------------------------


def _add_answer(deck: _Deck, story: Storyline) -> None:
    """Add the slide of question, verdict, figures and picture."""
    slide = deck.add(story.verdict)
    question = Box(LEFT, 0.16, RIGHT - LEFT, 0.4)
    about = f"{story.title}. {story.question}"
    fit = _fitting_lines([Text(about, "dim")], question.width, 0.45, 11)
    deck.text(slide, question, fit, 11)
    has_picture = story.picture is not None
    left = Box(LEFT, TOP, 4.0 if has_picture else RIGHT - LEFT, BOTTOM - TOP)
    top = left.top
    for one in story.highlights:
        box = Box(left.left, top, left.width, 0.92)
        size = _fitting_size(one.value, left.width, 0.55, (24, 20, 16))
        label = _fitting_lines([Text(one.label, "dim")], left.width, 0.25, 11)
        deck.text(slide, Box(box.left, top, box.width, 0.22), label, 11)
        deck.text(slide, Box(box.left, top + 0.22, box.width, 0.45), [Text(one.value, "strong")], size)
        deck.text(slide, Box(box.left, top + 0.67, box.width, 0.24), [one.note], 11)
        top += 1.0
    reasons = [Text(story.reasons), *(Text(line, "bad") for line in story.warnings)]
    rest = Box(left.left, top + 0.05, left.width, left.top + left.height - top - 0.05)
    said = [line for line in reasons if line.text]
    size = next(
        (
            one
            for one in (16, 14, 12)
            if text_height([line.text for line in said], rest.width, one) <= rest.height
        ),
        12,
    )
    deck.text(slide, rest, _fitting_lines(said, rest.width, rest.height, size), size)
    if story.picture is not None:
        title, drawing = story.picture
        box = Box(4.95, TOP, RIGHT - 4.95, BOTTOM - TOP - 0.3)
        deck.picture(slide, box, drawing, title)
        caption = Box(box.left, BOTTOM - 0.25, box.width, 0.25)
        deck.text(slide, caption, _fitting_lines([Text(title, "dim")], box.width, 0.3, 11), 11)
    slide.notes_slide.notes_text_frame.text = printable(
        f"{story.title}\n{story.question}\n{story.verdict} {story.reasons}"
    )


def _add_section(deck: _Deck, section: Section) -> None:
    """Add the slides of a part: tables, then sentences beside a picture or charts, then the other charts."""
    title = section.title or "Details"
    for table in section.tables:
        _add_table(deck, title, table)
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
                _add_chart(slide, below, charts.pop(0))
                text = Box(LEFT, TOP, text.width, BODY.height - LEAST_CHART - 0.2)
        elif charts:
            beside = charts[:2]
            del charts[:2]
            for box, drawing in zip(right.rows(len(beside)), beside, strict=True):
                _add_chart(slide, box, drawing)
        deck.text(slide, text, _fitting_lines(said, text.width, text.height, 13), 13)
    for drawing in pictures:
        deck.picture(deck.add(drawing.title), BODY, drawing, drawing.title)
    for start in range(0, len(charts), CHARTS_OF_SLIDE):
        chosen = charts[start : start + CHARTS_OF_SLIDE]
        slide = deck.add(title if start == 0 and not section.tables and not said else f"{title}: charts")
        across = 1 if len(chosen) == 1 else 2 if len(chosen) in (2, 4) else 3
        rows = BODY.rows(math.ceil(len(chosen) / across))
        boxes = [box for row in rows for box in row.columns(across)]
        for box, drawing in zip(boxes, chosen, strict=False):
            _add_chart(slide, box, drawing)


def _add_assumptions(deck: _Deck, part: Part) -> None:
    for table in part.tables:
        _add_table(deck, part.title, table)
    if part.texts:
        slide = deck.add("The same result from the command line and in Python")
        lines = [Text(line or " ") for text in part.texts for line in [*text.split("\n"), ""]]
        deck.text(slide, BODY, _fitting_lines(lines, BODY.width, BODY.height, 12), 12, code=True)


# --- tables -------------------------------------------------------------------------------


def _add_table(deck: _Deck, title: str, table: Table) -> None:
    """Add a table on as many slides as it needs."""
    pieces = list(split_columns(table, MOST_LETTERS))
    for piece in pieces:
        widths = _column_widths(piece)
        heights = [
            max(lines_of(cell.text, wide - 0.16, TABLE_SIZE) for cell, wide in zip(row, widths, strict=True))
            * (TABLE_SIZE * LINE / 72)
            + 0.1
            for row in piece.cells()
        ]
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
                deck.text(slide, box, _fitting_lines([Text(piece.caption, "dim")], box.width, 0.3, 10), 10)
            start = end
            if not heights:
                break


def _column_widths(table: Table) -> list[float]:
    """Return the width of each column, inches: as wide as its words, and no wider than the slide together."""
    cells = table.cells()
    letters = []
    for place, column in enumerate(table.columns):
        texts = [f"{column.label} {column.unit}", *(row[place].text for row in cells)]
        letters.append(max(len(line) for text in texts for line in text.split("\n")))
    wanted = [count * TABLE_SIZE * LETTER / 72 + 0.25 for count in letters]
    over = sum(wanted) - BODY.width
    if over > 0:  # the widest columns give way
        most = max(wanted)
        while over > 1e-6 and most > 1.0:
            most -= 0.1
            wanted = [min(one, most) for one in wanted]
            over = sum(wanted) - BODY.width
        wanted = [one * min(1.0, BODY.width / sum(wanted)) for one in wanted]
    return wanted


def _draw_table(
    slide: Any, table: Table, rows: range, widths: Sequence[float], heights: Sequence[float]
) -> None:
    from pptx.enum.text import PP_ALIGN
    from pptx.util import Inches, Pt

    cells = table.cells()
    has_header = any(column.label or column.unit for column in table.columns)
    first = int(has_header)
    tall = first * ROW + sum(heights[row] for row in rows)
    frame = slide.shapes.add_table(
        first + len(rows), len(widths), *_inches(Box(LEFT, TOP, sum(widths), tall))
    )
    shown = frame.table
    _clear_style(frame)
    shown.first_row, shown.horz_banding = has_header, False
    for place, wide in enumerate(widths):
        shown.columns[place].width = Inches(wide)
    head = [Text(f"{column.label} {column.unit}".strip(), "strong") for column in table.columns]
    content = [*([head] if has_header else []), *(cells[row] for row in rows)]
    for at, row in enumerate(content):
        shown.rows[at].height = Inches(ROW if has_header and at == 0 else heights[rows[at - first]])
        for place, cell in enumerate(row):
            target = shown.cell(at, place)
            target.margin_left = target.margin_right = Inches(0.06)
            target.margin_top = target.margin_bottom = Inches(0.03)
            paragraph = target.text_frame.paragraphs[0]
            bold = cell.kind in ("strong", "best")
            _write(paragraph, printable(cell.text), TABLE_SIZE, COLOUR[cell.kind], bold)
            paragraph.space_after = Pt(0)
            if table.columns[place].numeric:
                paragraph.alignment = PP_ALIGN.RIGHT
            is_strong = (has_header and at == 0) or (at >= first and rows[at - first] in table.lines_after)
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


# --- charts -------------------------------------------------------------------------------


def _add_chart(slide: Any, box: Box, drawing: Drawing) -> None:
    """Add a native chart of bars, lines, points or a distribution."""
    from pptx.chart.data import CategoryChartData, XyChartData
    from pptx.enum.chart import XL_CHART_TYPE

    place = _inches(box)
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
            shape = slide.shapes.add_chart(XL_CHART_TYPE.BAR_CLUSTERED, *place, data)
            unit = {drawing.units.get(name, "") for name in series}
            _style_chart(shape.chart, drawing.title, unit.pop() if len(unit) == 1 else "", "", len(series))
            _style_bars(shape.chart)
        case Curve():
            first, *series = (str(name) for name in drawing.frame)
            x_values = pd.to_numeric(drawing.frame[first], errors="coerce").to_numpy(dtype=float)
            data = XyChartData()
            for name in series:
                _add_points(data, name, x_values, drawing.frame[name].to_numpy(dtype=float))
            shape = slide.shapes.add_chart(XL_CHART_TYPE.XY_SCATTER_LINES_NO_MARKERS, *place, data)
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
            shape = slide.shapes.add_chart(XL_CHART_TYPE.XY_SCATTER, *place, data)
            name = heading_with_unit(across, drawing.units.get(across, ""))
            _style_chart(shape.chart, drawing.title, "", name, len(drawing.frame))
        case Distribution():
            data = XyChartData()
            for name, values in drawing.values.items():
                ordered = np.sort(values.dropna().to_numpy(float))
                shares = 100 * (np.arange(len(ordered)) + 1) / max(1, len(ordered))
                _add_points(data, name, ordered, shares)
            shape = slide.shapes.add_chart(XL_CHART_TYPE.XY_SCATTER_LINES_NO_MARKERS, *place, data)
            across = heading_with_unit(drawing.what, drawing.unit)
            _style_chart(shape.chart, f"{drawing.title}: % at most so large", "", across, len(drawing.values))
    shape._element.nvGraphicFramePr.cNvPr.set("descr", printable(drawing.title))


def _add_points(data: Any, name: str, x_values: Any, y_values: Any) -> None:
    """Add a series of known points, thinned out where there are many."""
    series = data.add_series(printable(name))
    known = np.flatnonzero(np.isfinite(x_values) & np.isfinite(y_values))
    if len(known) > MOST_POINTS:
        known = known[np.unique(np.linspace(0, len(known) - 1, MOST_POINTS).astype(int))]
    for at in known:
        series.add_data_point(float(x_values[at]), float(y_values[at]))


def _style_chart(chart: Any, title: str, unit: str, across: str, count: int) -> None:
    """Set a chart's title, colours, axes and legend."""
    from pptx.dml.color import RGBColor
    from pptx.enum.chart import XL_LEGEND_POSITION, XL_MARKER_STYLE
    from pptx.util import Pt

    words = printable(title.replace("<br>", " ")) + (f" [{unit}]" if unit else "")
    chart.has_title = True
    _write(chart.chart_title.text_frame.paragraphs[0], words, 12, INK, bold=True)
    chart.font.size, chart.font.color.rgb = Pt(11), RGBColor.from_string(DIM)
    chart.has_legend = count > 1
    if count > 1:
        chart.legend.position, chart.legend.include_in_layout = XL_LEGEND_POSITION.BOTTOM, False
    for place, series in enumerate(chart.plots[0].series):
        colour = RGBColor.from_string(COLOURS[place % len(COLOURS)].removeprefix("#"))
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
        _write(axis.axis_title.text_frame.paragraphs[0], printable(across), 11, DIM)
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
