"""Writes the report of a page into a file, in the format of the file's ending."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Final

from planner.errors import InputError
from planner.extras import needed_by
from planner.io.file_replacement import replace_file
from planner.io.names import report_format
from planner.reports.document import Page
from planner.runs.files import make_folder

PACKAGES: Final[Mapping[str, tuple[tuple[str, str], ...]]] = {
    "html": (),
    "pdf": (("typst", "PDF"),),
    "pptx": (("pptx", "PowerPoint"), ("typst", "PowerPoint")),
}
"""Optional packages that a format needs, each with the feature in words."""


def require_packages(file_format: str) -> None:
    """Raise MissingPackage where an optional package of a report's format is not installed."""
    for module, feature in PACKAGES[file_format]:
        with needed_by(feature):
            import_module(module)


def write(page: Page, path: Path) -> None:
    """Write the report of a page.

    raises  InputError for an ending that is none of a report, and where the file cannot be written;
            MissingPackage without the packages of the format
    """
    file_format = report_format(path)
    require_packages(file_format)
    if file_format == "html":
        from planner.reports import html

        html.write(page, path)
        return
    if path.is_dir():
        raise InputError(f"{path}: is a folder, must be a file")
    content = content_of(page, file_format)
    make_folder(path.parent)
    try:
        with replace_file(path) as partial:
            partial.write_bytes(content)
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror})") from None


def content_of(page: Page, file_format: str) -> bytes:
    """Return the report of a page as a PDF or PowerPoint file."""
    from planner.reports import pdf, slides

    makers: Mapping[str, Callable[[Page], bytes]] = {"pdf": pdf.pdf, "pptx": slides.pptx}
    return makers[file_format](page)
