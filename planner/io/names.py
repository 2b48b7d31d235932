"""Names of files from users: plain, so that no path leaves the folder asked for, and of the right ending."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from planner.errors import InputError

PLAIN: Final = re.compile(r"\w(?:[\w .+-]*[\w+-])?")
MAX_BYTES: Final = 120
"""Bytes of a name in UTF-8; file systems take 255, and suffixes follow."""


def name_fault(name: str) -> str | None:
    """Return why a text cannot be a name of a file or folder; None where it can."""
    if not PLAIN.fullmatch(name):
        return "must be a plain name: letters, digits, '_', '-', '+', '.' and spaces, a letter or digit first"
    if len(name.encode()) > MAX_BYTES:
        return f"has {len(name):,} letters, must be a short name"
    return None


def require_html_name(path: Path) -> Path:
    """Return the path; raise InputError where its ending is of another format than HTML."""
    if path.suffix.lower() not in (".html", ".htm"):
        raise InputError(f"{path}: a report is a web page, its name must end in .html")
    return path
