"""Names of files from users: plain, so that no path leaves the folder asked for, and of the right ending."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from planner.errors import InputError

PLAIN: Final = re.compile(r"\w(?:[\w .+-]*[\w+-])?")
MAX_BYTES: Final = 120
"""Bytes of a name in UTF-8; file systems take 255, and suffixes follow."""


def name_fault(name: str) -> str | None:
    """Return the error of a text as a name of a file or folder; None for a valid name."""
    if not PLAIN.fullmatch(name):
        return "must be a plain name: letters, digits, '_', '-', '+', '.' and spaces, a letter or digit first"
    if len(name.encode()) > MAX_BYTES:
        return f"has {len(name):,} letters, must be a short name"
    return None


REPORT_ENDINGS: Final[Mapping[str, tuple[str, ...]]] = {
    "html": (".html", ".htm"),
    "pdf": (".pdf",),
    "pptx": (".pptx",),
}
"""Endings of the files of reports, by format."""


def report_format(path: Path) -> str:
    """Return the format of a report by its file's ending; raise InputError for any other ending."""
    for name, endings in REPORT_ENDINGS.items():
        if path.suffix.lower() in endings:
            return name
    raise InputError(
        f"{path}: a report is a web page, a PDF or a PowerPoint file: "
        "its name must end in .html, .pdf or .pptx"
    )


def require_report_name(path: Path, file_format: str) -> Path:
    """Return the path; raise InputError where its ending is not that of the format."""
    endings = REPORT_ENDINGS[file_format]
    if path.suffix.lower() not in endings:
        raise InputError(
            f"{path}: a report is {REPORT_WORDS[file_format]}, its name must end in {endings[0]}"
        )
    return path


REPORT_WORDS: Final = {"html": "a web page", "pdf": "a PDF file", "pptx": "a PowerPoint file"}
