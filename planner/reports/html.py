"""Renders pages as one self-contained HTML file: tables first, charts where scripts run."""

from __future__ import annotations

import json
import os
import re
from dataclasses import replace
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

import jinja2
from markupsafe import Markup

from planner.contract.drawing import Drawing
from planner.errors import InputError
from planner.extras import find_missing, needed_by
from planner.formatting import printable
from planner.io.file_replacement import replace_text
from planner.io.names import require_report_name
from planner.reports.document import Page, Part, Text, lines
from planner.reports.drawing_svg import drawing_svg, has_svg, is_wide
from planner.reports.storyline import is_same
from planner.runs.files import make_folder, slug
from planner.version import __version__

MOST_ROWS: Final = 30
"""Rows of a table in a notebook."""
MOST_NOTES: Final = 5
"""Notes below such a table."""
PICTURE_WIDTH: Final = 1080
"""Pixels of the picture of a plan."""


def write(page: Page, path: Path) -> None:
    """Write a page that needs nothing but itself; its charts are interactive where plotly is installed.

    raises  InputError where the file's ending is not of HTML, or it cannot be written
    """
    require_report_name(path, "html")
    if path.is_dir():
        raise InputError(f"{path}: is a folder, must be a file")
    figures: dict[str, Any] = {}
    parts = []
    missing = _missing_charts()
    made = page.picture() if page.picture is not None else None
    picture = None if made is None or not has_svg(made[1]) else made[1]
    for section in page.parts:
        names = []
        pictures, part_charts = _pictures_and_charts(section)
        for figure in part_charts:
            names.append(f"chart{len(figures)}")
            figures[names[-1]] = json.loads(figure.to_json())
        contents = {
            "sentences": lines(section.sentences),
            "notes": lines(section.notes),
            "names": names,
            "pictures": [
                _picture(item, item.title)
                for item in pictures
                if is_wide(item) and (picture is None or not is_same(item, picture))
            ],
            "stills": [Markup(drawing_svg(item, PICTURE_WIDTH)) for item in pictures if not is_wide(item)],
        }
        parts.append({**vars(section), **contents})
    text = _template("report").render(
        title=page.title,
        about=page.about,
        warnings=page.warnings,
        missing=missing,
        picture=None if made is None or picture is None else _picture(picture, made[0]),
        parts=parts,
        version=__version__,
        machine=f"{os.cpu_count()} cores",
        # a script element ends at the first "</" in it
        figures=Markup(json.dumps(figures).replace("</", "<\\/")) if figures else "",
        plotly=Markup(_plotlyjs()) if figures else "",
    )
    make_folder(path.parent)
    try:
        replace_text(path, text)
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror})") from None


def save_pictures(page: Page, folder: Path) -> int:
    """Write each of the page's charts as `folder/<title>.svg` and return their number.

    raises  NoBrowser where there is no browser to draw them with, and MissingPackage without kaleido
    """
    with needed_by("a picture"):
        import kaleido  # noqa: F401
    from planner.reports import charts

    make_folder(folder)
    count = 0

    def next_path(title: str) -> Path:
        nonlocal count
        count += 1
        return folder / f"{count:02}_{slug(title)}.svg"

    for section in page.parts:
        pictures, figures = section.pictures_and_charts
        for drawing in pictures:
            path = next_path(f"{section.title} {drawing.title}")
            path.write_text(drawing_svg(drawing, PICTURE_WIDTH, title=True), encoding="utf-8")
        for figure in figures if section.pictures is None else section.pictures():
            title = re.sub(r"<[^>]*>", " ", f"{section.title} {figure.layout.title.text}")
            charts.save_picture(figure, next_path(title))
    return count


def fragment(page: Page) -> str:
    """Return the essence of a page for a notebook: sentences, the first table and the first chart.

    The chart loads plotly.js from its public address, as plotly's own charts in a notebook do.
    """
    first = next(
        (section for section in page.parts if not section.folded and (section.sentences or section.tables)),
        Part(),
    )
    warnings = [Text(warning, "bad") for warning in page.warnings[:MOST_NOTES]]
    notes = [line for line in lines(first.notes) if line.kind != "dim"]
    return _template("fragment").render(
        sentences=[*lines(first.sentences), *lines(warnings)],
        tables=[replace(table, rows=table.rows[:MOST_ROWS]) for table in first.tables[:1]],
        notes=notes[:MOST_NOTES],
        chart=Markup(_first_chart(page)),
    )


def _first_chart(page: Page) -> str:
    """Return the first chart of a page: interactive, or a picture without plotly; "" where there is none."""
    if _missing_charts():
        drawings = [drawing for section in page.parts for drawing in section.drawings() if has_svg(drawing)]
        return drawing_svg(drawings[0], PICTURE_WIDTH, title=True) if drawings else ""
    figure = next((figure for section in page.parts for figure in section.charts), None)
    if figure is None:
        return ""
    chart: str = figure.to_html(full_html=False, include_plotlyjs="cdn", config={"displaylogo": False})
    return chart


def _missing_charts() -> str:
    """Return the sentence that says why charts are pictures; "" where they are interactive."""
    missing = find_missing("plotly", "an interactive chart")
    return "" if missing is None else f"Charts are pictures: {missing}"


def _pictures_and_charts(section: Part) -> tuple[list[Drawing], list[Any]]:
    """Return the drawings of a part that are shown as pictures, and its interactive charts."""
    if not _missing_charts():
        return section.pictures_and_charts
    return [drawing for drawing in section.drawings() if has_svg(drawing)], []


def _plotlyjs() -> str:
    """Return the script that draws charts."""
    from plotly.offline import get_plotlyjs

    script: str = get_plotlyjs()
    return script


def _picture(drawing: Drawing, title: str) -> dict[str, str | Markup]:
    """Return the title of a picture of a plan, and the picture on a light and on a dark ground."""
    light, dark = (Markup(drawing_svg(drawing, PICTURE_WIDTH, dark=is_dark)) for is_dark in (False, True))
    return {"title": title, "light": light, "dark": dark}


@cache
def _template(name: str) -> jinja2.Template:
    folder = files("planner.reports") / "templates"
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(lambda name_: (folder / name_).read_text(encoding="utf-8")),
        autoescape=True,
        finalize=lambda value: printable(value) if type(value) is str else value,  # Markup is drawn by us
        trim_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    return environment.get_template(f"{name}.html.j2")
