"""The storyline of a page, as documents tell it: question, verdict, picture, table, assumptions."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from planner.contract.drawing import Drawing
from planner.reports.document import Highlight, Page, Part, Table, Text, lines
from planner.reports.drawing_svg import has_svg, is_wide

SENTENCE_END: Final = re.compile(r"(?<=[.!?]) (?=\S)")
MOST_DRAWINGS: Final = 12
"""Charts of a part that a document shows."""
WIDEST_COLUMN: Final = 28
"""Letters of a column's words before they are broken over lines."""


@dataclass(frozen=True, kw_only=True)
class Section:
    """A part of a page in a document.

    pictures  maps and timelines, as wide as the page
    charts    bars, lines, points and distributions, several beside each other
    """

    title: str
    sentences: Sequence[Text]
    tables: Sequence[Table]
    notes: Sequence[Text]
    pictures: Sequence[Drawing]
    charts: Sequence[Drawing]
    texts: Sequence[str]


@dataclass(frozen=True, kw_only=True)
class Storyline:
    """Contents of a document, in this order.

    verdict      one sentence
    reasons      the sentences after it
    picture      what it shows, and the drawing
    assumptions  what the result rests on: subjects and statements, and lines of code
    appendix     sections of preformatted text
    """

    title: str
    question: str
    verdict: str
    reasons: str
    warnings: Sequence[str]
    highlights: Sequence[Highlight]
    picture: tuple[str, Drawing] | None
    sections: Sequence[Section]
    assumptions: Part | None
    appendix: Sequence[Section]


def storyline(page: Page) -> Storyline:
    """Return the storyline of a page.

    The verdict is the page's first sentence. Details have their sentences and drawings, without their tables.
    """
    picture = page.picture() if page.picture is not None else None
    if picture is not None and not has_svg(picture[1]):
        picture = None
    said = next((line.text for page_part in page.parts for line in lines(page_part.sentences)), "")
    verdict, *reasons = SENTENCE_END.split(said, maxsplit=1) if said else [page.title]
    sections = list(filter(_has_content, (_section(page_part, said, picture) for page_part in page.parts)))
    return Storyline(
        title=page.title,
        question=page.about,
        verdict=verdict,
        reasons=" ".join(reasons),
        warnings=page.warnings,
        highlights=page.highlights,
        picture=picture,
        sections=[item for item in sections if not item.texts],
        assumptions=page.assumptions,
        appendix=[item for item in sections if item.texts],
    )


def _section(page_part: Part, verdict: str, picture: tuple[str, Drawing] | None) -> Section:
    """Return a part without the verdict and the picture, with which a document begins."""
    drawings = list(filter(has_svg, page_part.drawings()))[:MOST_DRAWINGS]
    wide = list(filter(is_wide, drawings))
    return Section(
        title=page_part.title,
        sentences=[line for line in lines(page_part.sentences) if line.text != verdict],
        tables=[] if page_part.detail else page_part.tables,
        notes=lines(page_part.notes),
        pictures=[drawing for drawing in wide if picture is None or not is_same(drawing, picture[1])],
        charts=[drawing for drawing in drawings if not is_wide(drawing)],
        texts=page_part.texts,
    )


def is_same(one: Drawing, other: Drawing) -> bool:
    """Return whether two drawings show the same."""
    return type(one) is type(other) and one.title == other.title and one.frame.equals(other.frame)


def _has_content(section: Section) -> bool:
    return any(
        (section.sentences, section.tables, section.notes, section.pictures, section.charts, section.texts)
    )


def split_columns(table: Table, most_letters: int) -> Iterator[Table]:
    """Yield a table in pieces of at most `most_letters` across; each repeats the leading columns."""
    cells = table.cells()
    widths = []
    for index, column in enumerate(table.columns):
        texts = [f"{column.label} {column.unit}".strip(), *(row[index].text for row in cells)]
        longest = max((max(map(len, text.split("\n"))) for text in texts), default=0)
        words = max((len(word) for text in texts for word in text.split()), default=0)
        can_wrap = column.wrap and not column.numeric
        widths.append(2 + (max(words, min(longest, WIDEST_COLUMN)) if can_wrap else longest))
    heads = list(range(table.row_headers))
    pieces: list[list[int]] = []
    for index in range(table.row_headers, len(table.columns)):
        if not pieces or sum(widths[index_] for index_ in (*heads, *pieces[-1], index)) > most_letters:
            pieces.append([])
        pieces[-1].append(index)
    for number, piece in enumerate(pieces):
        column_indices = [*heads, *piece]
        yield replace(
            table,
            columns=[table.columns[index] for index in column_indices],
            rows=[[row[index] for index in column_indices] for row in cells],
            title=table.title if number == 0 else "",
            caption=table.caption if number == len(pieces) - 1 else "",
        )
