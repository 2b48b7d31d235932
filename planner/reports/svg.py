"""SVG text: a document, a text in it, and its width."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any, Final

from planner.formatting import printable

FONT: Final = "'Source Sans 3', 'Source Sans Pro', Inter, system-ui, Helvetica, Arial, sans-serif"
WIDE, NARROW = "mwMWGOQD@%", "iljtfrI.,:;'|()[] -"

Palette = dict[str, Any]


def document(width: float, height: float, name: str, parts: Sequence[str]) -> str:
    """Return an SVG document of its parts, in pixels; `name` describes it to those who cannot see it."""
    size = f'viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" height="{height:.0f}"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="{FONT}" role="img" '
        f'aria-label="{escape_text(name)}">{"".join(parts)}</svg>'
    )


def text_element(
    x: float, y: float, text: str, size: float, colour: str, *, weight: int = 400, anchor: str = "start"
) -> str:
    """Return the element of a text at a place, in pixels."""
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size:g}" fill="{colour}" font-weight="{weight}" '
        f'text-anchor="{anchor}">{escape_text(text)}</text>'
    )


def escape_text(text: str) -> str:
    """Return a text without markup; control characters, which no SVG may hold, are shown as their escapes."""
    return escape(printable(text))


def text_width(text: str, size: float) -> float:
    """Return the estimated width of a text in half-bold letters."""
    letters = sum(0.86 if letter in WIDE else 0.31 if letter in NARROW else 0.6 for letter in text)
    return size * letters
