"""Formats of a workbook that change its view: hidden sheets, rows and columns, cells in percent, formulas.

Runs in the child process of `workbook_child`. Parts without any such mark are searched as bytes only.

Sources: ECMA-376 part 1, 18.3.1 (worksheets) and 18.8.30 (number formats); OpenDocument 1.3 part 3, 9.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any, Final
from xml.etree import ElementTree

Formats = dict[str, dict[str, Any]]
"""By sheet: `hidden` (bool), `rows` and `columns` hidden (from 1), `percent` (rows by column, from 1), and
`typed` (bool): whether cells of an xlsx sheet may be formulas or errors."""

BLOCK: Final = 1 << 20
PERCENT_FORMATS: Final = frozenset({9, 10})
"""Numbers of the built-in formats 0% and 0.00%."""
TYPED: Final = rb"""<(?:\w+:)?f[\s/>]|\st\s*=\s*["']e["']|\A(?:\xff\xfe|\xfe\xff)"""
"""A formula or an error of an xlsx sheet, or its beginning in UTF-16, in which no search finds either."""
MAX_REPEATED: Final = 10_000
"""Repeated cells and rows of an OpenDocument sheet that are listed; more are empty ones."""


def read_formats(path: str, _: list[str]) -> Formats:
    """Return the formats of each sheet of an xlsx or OpenDocument workbook; of other formats, nothing."""
    suffix = Path(path).suffix.lower()
    if suffix == ".xls":
        return {}
    with zipfile.ZipFile(path) as parts:
        return _of_ods(parts) if suffix == ".ods" else _of_xlsx(parts)


def _name(tag: str) -> str:
    """Return a name without its namespace."""
    return tag.rpartition("}")[2]


def _attributes(element: ElementTree.Element) -> dict[str, str]:
    return {_name(key): value for key, value in element.attrib.items()}


def _elements(parts: zipfile.ZipFile, name: str) -> Iterator[ElementTree.Element]:
    """Yield the elements of a part as they end, in little memory."""
    with parts.open(name) as file:
        for _, element in ElementTree.iterparse(file, events=("end",)):
            yield element


def _mentions(parts: zipfile.ZipFile, name: str, pattern: bytes) -> bool:
    """Return whether a part has a pattern, which has at most 200 bytes."""
    expression, before = re.compile(pattern), b""
    with parts.open(name) as file:
        while block := file.read(BLOCK):
            if expression.search(before + block):
                return True
            before = block[-200:]
    return False


# --- xlsx ---------------------------------------------------------------------------------


def _of_xlsx(parts: zipfile.ZipFile) -> Formats:
    book = _find_part(parts, "xl/workbook.xml")
    if book is None:
        return {}
    targets = _relation_targets(parts)
    percent = _percent_styles(parts)
    formats_of: Formats = {}
    for element in _elements(parts, book):
        if _name(element.tag) != "sheet":
            continue
        attributes = _attributes(element)
        formats = {
            "hidden": attributes.get("state", "visible") != "visible",
            "rows": [],
            "columns": [],
            "percent": {},
            "typed": True,
        }
        member = targets.get(attributes.get("id"))
        if member in parts.namelist():
            formats["typed"] = _mentions(parts, member, TYPED)
            _read_sheet(parts, member, percent, formats)
        formats_of[attributes.get("name", "")] = formats
    return formats_of


def _find_part(parts: zipfile.ZipFile, name: str) -> str | None:
    """Return the part of a name in small letters, as the workbook writes it; None where it has none."""
    return next((member for member in parts.namelist() if member.lower() == name), None)


def _relation_targets(parts: zipfile.ZipFile) -> dict[str | None, str]:
    """Return the part of each sheet, by the identifier of its relation to the workbook."""
    relations = _find_part(parts, "xl/_rels/workbook.xml.rels")
    targets = {}
    for element in _elements(parts, relations) if relations else ():
        if _name(element.tag) == "Relationship":
            attributes = _attributes(element)
            target = attributes.get("Target", "")
            targets[attributes.get("Id")] = (
                target[1:] if target.startswith("/") else f"xl/{PurePosixPath(target)}"
            )
    return targets


def _percent_styles(parts: zipfile.ZipFile) -> frozenset[str]:
    """Return the numbers of the styles of cells that are shown in percent."""
    member = next((name for name in parts.namelist() if name.lower() == "xl/styles.xml"), None)
    if member is None:
        return frozenset()
    formats, styles = set(PERCENT_FORMATS), []
    for element in _elements(parts, member):
        attributes = _attributes(element)
        if _name(element.tag) == "numFmt" and "%" in re.sub(
            r'"[^"]*"|\\.', "", attributes.get("formatCode", "")
        ):
            formats.add(int(attributes.get("numFmtId", "0")))
        elif _name(element.tag) == "cellXfs":
            styles = [int(style.attrib.get("numFmtId", "0")) for style in element]
    return frozenset(str(index) for index, number in enumerate(styles) if number in formats)


def _read_sheet(
    parts: zipfile.ZipFile, member: str, percent: frozenset[str], formats: dict[str, Any]
) -> None:
    styles = "|".join(sorted(percent)).encode()
    marks = rb'hidden="(?:1|true)"' + (
        rb'|\ss="(?:' + styles + rb')"' if percent and len(styles) < 150 else b""
    )
    if (not percent or len(styles) < 150) and not _mentions(parts, member, marks):
        return
    row = 0
    for element in _elements(parts, member):
        name = _name(element.tag)
        if name == "col" and element.attrib.get("hidden") in ("1", "true"):
            low, high = int(element.attrib.get("min", "1")), int(element.attrib.get("max", "1"))
            formats["columns"] += range(low, min(high, low + MAX_REPEATED) + 1)
        elif name == "row":
            row = int(element.attrib.get("r", row + 1))
            _read_row(element, row, percent, formats)
            element.clear()


def _read_row(
    element: ElementTree.Element, row: int, percent: frozenset[str], formats: dict[str, Any]
) -> None:
    """Note a row that is hidden, and its cells in percent."""
    if element.attrib.get("hidden") in ("1", "true"):
        formats["rows"].append(row)
    for column, cell in enumerate(element, start=1):
        if cell.attrib.get("s") in percent and len(cell):
            column_of_cell = _column_of(cell.attrib.get("r")) or column
            formats["percent"].setdefault(column_of_cell, []).append(row)


def _column_of(reference: str | None) -> int | None:
    """Return the column of a reference such as `AB12`, from 1."""
    number = 0
    for letter in reference or "":
        if not letter.isalpha():
            break
        number = number * 26 + ord(letter.upper()) - 64
    return number or None


# --- OpenDocument -------------------------------------------------------------------------


def _of_ods(parts: zipfile.ZipFile) -> Formats:
    member = "content.xml"
    if member not in parts.namelist() or not _mentions(
        parts, member, rb'visibility="(?:collapse|filter)"|value-type="percentage"|display="false"'
    ):
        return {}
    hidden_styles, formats_of = set(), {}
    for element in _elements(parts, member):
        name, attributes = _name(element.tag), _attributes(element)
        if name == "style" and any(_attributes(child).get("display") == "false" for child in element):
            hidden_styles.add(attributes.get("name"))
        elif name == "table":
            formats_of[attributes.get("name", "")] = _read_ods_table(
                element, attributes.get("style-name") in hidden_styles
            )
            element.clear()
    return formats_of


def _read_ods_table(table: ElementTree.Element, is_hidden: bool) -> dict[str, Any]:
    formats: dict[str, Any] = {"hidden": is_hidden, "rows": [], "columns": [], "percent": {}}
    row = column = 0
    for element in table.iter():
        name, attributes = _name(element.tag), _attributes(element)
        if name == "table-column":
            repeated = int(attributes.get("number-columns-repeated", "1"))
            if attributes.get("visibility") in ("collapse", "filter"):
                formats["columns"] += range(column + 1, column + 1 + min(repeated, MAX_REPEATED))
            column += repeated
        elif name == "table-row":
            repeated = int(attributes.get("number-rows-repeated", "1"))
            if attributes.get("visibility") in ("collapse", "filter"):
                formats["rows"] += range(row + 1, row + 1 + min(repeated, MAX_REPEATED))
            _read_ods_cells(element, row + 1, min(repeated, MAX_REPEATED), formats["percent"])
            row += repeated
    return formats


def _read_ods_cells(row: ElementTree.Element, number: int, count: int, percent: dict[int, list[int]]) -> None:
    column = 0
    for cell in row:
        attributes = _attributes(cell)
        repeated = int(attributes.get("number-columns-repeated", "1"))
        if attributes.get("value-type") == "percentage":
            for own_column in range(column + 1, column + 1 + min(repeated, MAX_REPEATED)):
                percent.setdefault(own_column, []).extend(range(number, number + count))
        column += repeated
