"""Native tables on slides, each on as many slides as it needs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from planner.formatting import printable
from planner.reports.document import Table, Text
from planner.reports.slide_deck import (
    BODY,
    COLOUR,
    DIM,
    HAIR,
    LEFT,
    LETTER,
    LINE,
    TOP,
    Box,
    Deck,
    inches,
    lines_of,
    take_fitting_lines,
    write_text,
)
from planner.reports.storyline import split_columns

ROW: Final = 0.3
"""Height of a table's row with one line, inches."""
TABLE_SIZE: Final = 12
MOST_LETTERS: Final = 138
"""Across a table."""


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
