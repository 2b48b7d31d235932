"""Faults of what planner prints: control characters, tracebacks, warnings, too many or too long lines."""

from __future__ import annotations

import unicodedata
from typing import Final

MAX_LINES: Final = 60
MAX_LINE: Final = 2_000
MAX_OUTPUT: Final = 5_000


def find_control_characters(text: str) -> list[str]:
    """Return the control characters that a text would send to a terminal."""
    ordered = sorted({letter for letter in text if unicodedata.category(letter) == "Cc" and letter != "\n"})
    return [f"control characters {ordered} in {text[:200]!r}"] if ordered else []


def find_text_faults(text: str, upper: int = MAX_LINES) -> list[str]:
    """Return what no message may have: tracebacks, warnings of libraries, pages of lines, endless lines."""
    faults = []
    if "Traceback (most recent call last)" in text or "Warning:" in text:
        faults.append(f"a traceback or warning: {text[-400:]!r}")
    lines = text.splitlines()
    if len(lines) > upper:
        faults.append(f"{len(lines)} lines")
    longest = max(lines, key=len, default="")
    if len(longest) > MAX_LINE and upper == MAX_LINES:
        faults.append(f"a line of {len(longest)} letters: {longest[:100]!r}")
    return faults
