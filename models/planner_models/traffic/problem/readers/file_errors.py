"""Faults of a network file, collected so that one error reports them all, one line each.

XML files are parsed by defusedxml only, since they may come from anywhere.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable
from decimal import Decimal
from pathlib import Path
from typing import Final
from xml.etree.ElementTree import Element, ParseError

import defusedxml
import defusedxml.ElementTree as Defused

from planner.contract.cell_units import is_unlimited
from planner.contract.tables import SHOWN_ROWS
from planner.errors import InputError, did_you_mean
from planner.io.text_files import require_file

MAX_VALUE_LENGTH = 60  # characters of a value that a fault shows
MAX_XML_BYTES: Final = 1 << 26  # its time grows faster than a long attribute
_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_ESCAPES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "\r": "&#13;", "\n": "&#10;", "\t": "&#9;"}


def printable(text: str) -> str:
    """Return `text` on one line, with line ends and other unprintable characters escaped."""
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)


def shorten(text: str) -> str:
    """Return the first characters of `text` on one line, as a fault shows it."""
    text = printable(text)
    return text if len(text) <= MAX_VALUE_LENGTH else text[: MAX_VALUE_LENGTH - 3] + "..."


def shift_decimal(text: str, exponent: int) -> float:
    """Return the decimal `text` times 10**exponent; ValueError where it is no number.

    The shift is decimal and precedes the rounding to binary: a rate written in another unit is read
    back exactly.
    """
    if exponent == 0:
        return float(text)
    try:
        return float(Decimal(text).scaleb(exponent))
    except ArithmeticError:
        raise ValueError(text) from None


class FileErrors:
    """Collection of the faults of one file; of each rule, only the first few are listed one by one."""

    def __init__(self, file: str) -> None:
        self.file = file
        self._lines: list[str] = []
        self._count: Counter[str] = Counter()

    def add(
        self,
        location: str,
        fault: str,
        *,
        rule: str | None = None,
        near: tuple[str, Iterable[str]] | None = None,
    ) -> None:
        """Add one fault.

        location  the file's name and the element, e.g. "net.xml: link 'L1'"
        fault  the fault there, with the punctuation before it
        rule   text that groups similar faults; default: the fault itself
        near   a wrong name and the valid ones, of which the nearest is proposed
        """
        rule = rule or fault.lstrip(": ")
        self._count[rule] += 1
        if self._count[rule] <= SHOWN_ROWS:  # the search for a near name is slow among many
            self._lines.append(printable(location + fault + (did_you_mean(*near) if near else "")))

    def number(
        self, location: str, field: str, text: str | None, *, exponent: int = 0, largest: float | None = None
    ) -> float:
        """Return `text` times 10**exponent; add a fault and return NaN where it is no finite number.

        largest  in our unit, which the fault advises where the text says that there is no limit
        """
        rule = f"{field} must be a number"
        if text is None or not text.strip():
            self.add(location, f": {field} is missing", rule=rule)
            return math.nan
        try:
            value = shift_decimal(text.strip(), exponent)
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            advice = ""
            if largest is not None and is_unlimited(text):
                advice = f"; for no limit write {largest / 10.0**exponent:g}"
            self.add(location, f": {field} is '{shorten(text.strip())}', must be a number{advice}", rule=rule)
            return math.nan
        return value

    @property
    def lines(self) -> list[str]:
        """All faults, one line each."""
        more = [
            f"{self.file}: {count - SHOWN_ROWS} more where {rule}"
            for rule, count in self._count.items()
            if count > SHOWN_ROWS
        ]
        return self._lines + more

    def raise_if_any(self) -> None:
        """Raise InputError with every fault found so far, if there is any."""
        if self._lines:
            raise InputError(*self.lines)


def parse(path: Path, root: str) -> Element:
    """Return the root element of an XML file, with tags without namespaces; InputError for anything else.

    The encoding is the one that the file declares; default: UTF-8.
    """
    require_file(path)
    if path.stat().st_size > MAX_XML_BYTES:
        size = f"{path.stat().st_size >> 20:,} MiB"
        raise InputError(f"{path.name}: has {size}, must have at most {MAX_XML_BYTES >> 20:,} as XML")
    content = path.read_bytes()
    if not content.strip():
        raise InputError(f"{path.name}: is empty, must be XML with root element '{root}'")
    try:
        element: Element = Defused.fromstring(content)
    except ParseError as error:
        raise InputError(f"{path.name}: is no well-formed XML ({error})") from None
    except defusedxml.DefusedXmlException as error:
        what = re.sub(r"(?<!^)([A-Z])", r" \1", type(error).__name__).lower()
        raise InputError(f"{path.name}: refused for safety: {what} in XML") from None
    except (ValueError, LookupError) as error:  # an encoding that the parser does not know
        raise InputError(f"{path.name}: cannot be decoded ({error})") from None
    for each in element.iter():
        each.tag = each.tag.rpartition("}")[2]
    if element.tag != root:
        raise InputError(f"{path.name}: root element is '{element.tag}', must be '{root}'")
    return element


def text_of(parent: Element, path: str) -> str | None:
    """Return the text of the first element at `path`: "" where it is empty, None where there is none."""
    element = parent.find(path)
    return None if element is None else element.text or ""


def escape(text: str) -> str:
    """Return `text` escaped for XML; InputError for a character that XML cannot represent."""
    bad = _NO_XML.search(text)
    if bad:
        raise InputError(f"{text!r}: character {bad[0]!r} has no place in XML")
    return "".join(_ESCAPES.get(character, character) for character in text)
