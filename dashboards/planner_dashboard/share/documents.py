"""Files of an answer, made by workers when they are asked for."""

from __future__ import annotations

import io
import shutil
import zipfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from planner.contract.drawing import Drawing
from planner.errors import InputError
from planner_dashboard import comparisons
from planner_dashboard.question import Question

if TYPE_CHECKING:
    from planner.reports.document import Page

UPLOADED_NAME: Final = "scenario.toml"
"""Name of the scenario of uploaded tables, in place of its path on the server."""


@dataclass(frozen=True)
class Format:
    """A file that an answer can be saved as."""

    key: str
    label: str
    ending: str
    mime: str


FORMATS: Final = (
    Format("pdf", "PDF", "pdf", "application/pdf"),
    Format(
        "pptx",
        "PowerPoint",
        "pptx",
        "application/vnd.openxmlformats-officedocument.presentationml.presentation",
    ),
    Format("png", "Picture (PNG)", "png", "image/png"),
    Format("svg", "Picture (SVG)", "svg", "image/svg+xml"),
    Format("html", "Web page", "html", "text/html"),
    Format("zip", "Plans and metrics (zip)", "zip", "application/zip"),
    Format("toml", "Scenario (TOML)", "toml", "application/toml"),
)


def make_file(folder: Path, question: Question, key: str, label: str) -> bytes:
    """Return an answer as a file of one of FORMATS.

    folder  of the stored comparison
    label   of the design whose plan the picture shows; "" for the best one
    """
    if key in ("zip", "toml"):
        return _plans(folder, key)
    if key in ("png", "svg"):
        from planner.reports import pdf
        from planner.reports.drawing_svg import drawing_svg

        svg = drawing_svg(_picture(folder, label), 1200, title=True)
        return svg.encode() if key == "svg" else pdf.png(svg)
    page = page_of(folder, question)
    if key == "html":
        from planner.reports import html

        path = folder / "report.html"
        html.write(page, path)
        return path.read_bytes()
    from planner.reports import report_files

    report_files.require_packages(key)
    return report_files.content_of(page, key)


def page_of(folder: Path, question: Question) -> Page:
    """Return the page of a stored comparison, without paths of the server."""
    from planner.reports import run_pages

    scenario = comparisons.load_scenario(folder)
    if question.upload:
        scenario = replace(scenario, name=UPLOADED_NAME)
    return run_pages.comparison_page(comparisons.load(folder), scenario)


def _picture(folder: Path, label: str) -> Drawing:
    """Return the picture of a design's plan; raise InputError where there is none."""
    from planner.reports.run_drawings import draw_whole, show_failures
    from planner.runs.verdict import best_run

    result = comparisons.load(folder)
    run = next((one for one in result.runs if one.label == label), None) or best_run(result.runs)
    draw = result.system.plan.draw
    drawings = [] if run is None or run.plan is None or draw is None else draw(run.problem, run.plan)
    if not drawings:
        raise InputError("there is no picture: no design has a plan, or the system draws none")
    return show_failures(drawings[0], draw_whole(comparisons.load_scenario(folder)))


def _plans(folder: Path, key: str) -> bytes:
    """Return the scenario, or a zip archive of the scenario, its uploaded tables and all plans."""
    out = folder / "files"
    comparisons.write_files(folder, out)
    try:
        if key == "toml":
            return (out / "scenario.toml").read_bytes()
        content = io.BytesIO()
        with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
            for path in sorted(out.rglob("*")):
                if path.is_file():
                    archive.write(path, path.relative_to(out))
        return content.getvalue()
    finally:
        shutil.rmtree(out, ignore_errors=True)
