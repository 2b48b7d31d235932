"""Renders pages as PowerPoint slides, 16:9: native titles, tables and charts, which can be edited."""

from __future__ import annotations

import io
import math
from typing import Final

from planner.extras import needed_by
from planner.formatting import printable
from planner.reports.document import Page, Part, Text
from planner.reports.slide_charts import add_chart
from planner.reports.slide_deck import (
    BODY,
    BOTTOM,
    LEFT,
    RIGHT,
    TOP,
    Box,
    Deck,
    find_fitting_size,
    take_fitting_lines,
    text_height,
)
from planner.reports.slide_tables import add_table
from planner.reports.storyline import Section, Storyline, storyline
from planner.version import __version__

CHARTS_OF_SLIDE: Final = 6
LEAST_CHART: Final = 2.1
"""Height of the smallest chart, inches."""


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
