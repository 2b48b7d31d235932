"""Renders pages as PDF in A4, and pictures as PNG, with typst: no browser, and no font of the machine.

Texts reach typst as data, so that none is read as its markup.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.resources import files
from typing import Any, Final, Literal

from planner.contract.drawing import Drawing
from planner.errors import PlannerError
from planner.extras import needed_by
from planner.formatting import printable
from planner.reports.document import Page, Part, Table, Text
from planner.reports.drawing_svg import drawing_svg
from planner.reports.storyline import Section, split_columns, storyline
from planner.version import __version__

FONT: Final = "Libertinus Serif"
"""Comes with typst."""
MOST_LETTERS: Final = 118
"""Across a table in A4."""
WIDE: Final = 480
"""Width of a map or timeline, in pixels of its SVG text."""
MONO_LETTERS: Final = 104
"""Letters in a line of code."""
FONT_FAMILY: Final = re.compile(r"font-family\s*([:=])\s*(\"[^\"]*\"|[^;\"}]*)")
UNCOVERED: Final = re.compile("[\u0590-\u1dff\u2c00-\ua7ff\uaa00-\ufeff\U0001f000-\U0003ffff]")
"""Letters that the fonts of typst lack; only for them does it look for a font of the machine."""


def pdf(page: Page) -> bytes:
    """Return a page as PDF.

    raises  MissingPackage without typst
    """
    return _compile("document", {"story": json.dumps(_story(page))}, "pdf")


def png(svg: str, width: int = 2000) -> bytes:
    """Return a picture of SVG text as PNG, `width` pixels wide.

    raises  MissingPackage without typst
    """
    return _compile("picture", {"svg": _with_own_font(svg)}, "png", ppi=width / 10)


def _compile(
    template: str, inputs: dict[str, str], file_format: Literal["pdf", "png"], ppi: float | None = None
) -> bytes:
    with needed_by("PDF, PowerPoint and PNG"):
        import typst
    source = (files("planner.reports") / "templates" / f"{template}.typ").read_bytes()
    has_all_letters = not any(
        map(UNCOVERED.search, (json.dumps(text, ensure_ascii=False) for text in inputs.values()))
    )
    try:
        made = typst.compile(
            source, format=file_format, ppi=ppi, sys_inputs=inputs, ignore_system_fonts=has_all_letters
        )
    except typst.TypstError as error:
        raise PlannerError(f"the document could not be made: {error}") from None
    return bytes(made[0] if isinstance(made, list) else made)


# --- data of the template -----------------------------------------------------------------


def _story(page: Page) -> dict[str, Any]:
    story = storyline(page)
    picture = None if story.picture is None else _picture(story.picture[1], story.picture[0])
    return {
        "title": printable(story.title),
        "question": printable(story.question),
        "verdict": printable(story.verdict),
        "reasons": printable(story.reasons),
        "warnings": [printable(line) for line in story.warnings],
        "highlights": [
            {"label": printable(highlight.label), "value": highlight.value, "note": _text(highlight.note)}
            for highlight in story.highlights
        ],
        "picture": picture,
        "picture_height": 100,
        "sections": [_section(section) for section in story.sections],
        "assumptions": None if story.assumptions is None else _assumptions(story.assumptions),
        "appendix": [_section(section) for section in story.appendix],
        "footer": f"planner {__version__}, {today()}",
        "fonts": [FONT, "DejaVu Sans Mono"],
    }


def today() -> str:
    """Return the date in words: `22 November 2026`."""
    now = datetime.now(UTC).astimezone()
    return f"{now.day} {now:%B %Y}"


def _section(section: Section) -> dict[str, Any]:
    return {
        "title": printable(section.title),
        "sentences": [_line(sentence) for sentence in section.sentences],
        "tables": [_table(piece) for table in section.tables for piece in split_columns(table, MOST_LETTERS)],
        "notes": [_line(note) for note in section.notes],
        "pictures": [_picture(picture, picture.title) for picture in section.pictures],
        "charts": [_picture(chart, chart.title) for chart in section.charts],
        "texts": [_code(text) for text in section.texts],
    }


def _assumptions(section: Part) -> dict[str, Any]:
    return {
        "title": section.title,
        "tables": [_table(table, fill_last=True) for table in section.tables],
        "texts": [_code(text) for text in section.texts],
    }


def _table(table: Table, *, fill_last: bool = False) -> dict[str, Any]:
    last = len(table.columns) - 1
    return {
        "title": printable(table.title),
        "caption": printable(table.caption),
        "has_header": any(column.label or column.unit for column in table.columns),
        "columns": [
            {
                "label": printable(column.label),
                "unit": column.unit,
                "numeric": column.numeric,
                "fill": fill_last and index == last,
            }
            for index, column in enumerate(table.columns)
        ],
        "rows": [[_text(cell) for cell in row] for row in table.cells()],
        "lines": sorted(table.lines_after),
    }


def _text(text: Text) -> dict[str, str]:
    return {"text": printable(text.text), "kind": text.kind}


def _line(text: Text) -> dict[str, Any]:
    is_item = text.text.startswith("- ")
    return {"text": printable(text.text[2:] if is_item else text.text), "kind": text.kind, "item": is_item}


def _picture(drawing: Drawing, title: str) -> dict[str, str]:
    return {"svg": _with_own_font(drawing_svg(drawing, WIDE)), "title": printable(title)}


def _with_own_font(svg: str) -> str:
    """Return SVG text with the document's font in its texts."""
    return FONT_FAMILY.sub(
        lambda match: f'font-family="{FONT}"' if match[1] == "=" else f"font-family: {FONT}", svg
    )


def _code(text: str) -> str:
    """Return code with lines that fit; a longer one is broken at spaces and commas."""
    return "\n".join(piece for line in printable(text).split("\n") for piece in _broken(line))


def _broken(line: str) -> Sequence[str]:
    parts = []
    while len(line) > MONO_LETTERS:
        cut = max(line.rfind(" ", 0, MONO_LETTERS), line.rfind(",", 0, MONO_LETTERS)) + 1 or MONO_LETTERS
        parts.append(line[:cut])
        line = "    " + line[cut:]
    return [*parts, line]
