"""Kinds of files by their content, for errors of files with the ending of another kind.

Sources: the signatures of ZIP (APPNOTE 4.3.7), OLE compound files (MS-CFB 2.2), gzip (RFC 1952), Parquet,
Arrow, PDF and SQLite; OpenDocument 1.3 part 2, 3.3 for the part `mimetype`.
"""

from __future__ import annotations

import re
import zipfile
from pathlib import Path
from typing import Final, NamedTuple

from planner.formatting import printable

START_BYTES: Final = 1 << 12
MAX_PARTS: Final = 10_000
"""Parts of an archive, among whose names those of a workbook are looked for."""
RESAVE: Final = "open it in a spreadsheet, and save it as xlsx or CSV"


class Kind(NamedTuple):
    """Kind of a file, by its content.

    name     in errors, such as "an Excel workbook (xlsx)"
    endings  of names of such files that are read; none where they are not
    advice   what to do where they are not
    """

    name: str
    endings: tuple[str, ...] = ()
    advice: str = RESAVE


XLSX: Final = Kind("an Excel workbook (xlsx)", (".xlsx", ".xlsm"))
XLS: Final = Kind("an Excel 97 workbook (xls)", (".xls",))
ODS: Final = Kind("an OpenDocument spreadsheet (ods)", (".ods",))
WORKBOOKS: Final = (".xlsx", ".xlsm", ".xls", ".ods")
TEXT: Final = re.compile(rb"[\t\r\n\x20-\x7e\x80-\xff]+")
SIGNATURES: Final = (
    (re.compile(rb"\x1f\x8b\x08"), Kind("a file in gzip", (".csv.gz",))),
    (re.compile(rb"PAR1\x15"), Kind("a Parquet file", (".parquet",))),
    (re.compile(rb"ARROW1\0\0|FEA1\0"), Kind("a Feather file", (".feather",))),
    (re.compile(rb"%PDF-"), Kind("a PDF", advice="export the table as CSV where it comes from")),
    (re.compile(rb"SQLite format 3\0"), Kind("an SQLite database", advice="export the table as CSV")),
    (re.compile(rb"BZh[1-9]1AY&SY|\xfd7zXZ\0|\x28\xb5\x2f\xfd"), Kind("an archive", advice="unpack it")),
    (re.compile(rb"\s*<(?:!doctype\s+html|html|head|meta|table)\b", re.I), Kind("an HTML page")),
    (re.compile(rb"\s*<.*urn:schemas-microsoft-com:office:spreadsheet", re.S), Kind("XML of Excel 2003")),
    (re.compile(rb"\{\\rtf\d"), Kind("a text document (RTF)")),
)  # fmt: skip


def describe_other_kind(path: Path) -> str | None:
    """Return the kind of a file and advice, if its content is of a known kind and its name of another."""
    kind = find_kind(path)
    name = path.name.lower()
    if kind is None or any(name.endswith(ending) for ending in kind.endings):
        return None
    advice = f"name it with the ending {kind.endings[0]}" if kind.endings else kind.advice
    return f"{printable(path.name)}: is {kind.name}; {advice}"


def find_kind(path: Path) -> Kind | None:
    """Return the kind of a file by its first bytes, and of an archive by the names of its parts.

    None for what is no regular file, such as a pipe, whose reading would wait for a writer.
    """
    if not path.is_file():
        return None
    try:
        with path.open("rb") as file:
            start = file.read(START_BYTES)
        if start.startswith(b"PK\x03\x04"):
            return _kind_of_archive(path)
        if start.startswith(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"):
            return _kind_of_compound_file(path)
    except (OSError, zipfile.BadZipFile, ValueError, NotImplementedError):
        return None
    start = start.removeprefix(b"\xef\xbb\xbf")
    kind_found = next((kind for pattern, kind in SIGNATURES if pattern.match(start)), None)
    if kind_found is None and path.suffix.lower() in WORKBOOKS and TEXT.fullmatch(start):
        return Kind("text", (".json",) if start.lstrip()[:1] in b"[{" else (".csv", ".tsv", ".txt"))
    return kind_found


def _kind_of_archive(path: Path) -> Kind:
    with zipfile.ZipFile(path) as archive:
        parts = {entry.filename.lower() for entry in archive.infolist()[:MAX_PARTS]}
    if "xl/workbook.xml" in parts:
        return XLSX
    if "xl/workbook.bin" in parts:
        return Kind("a binary Excel workbook (xlsb)")
    if {"mimetype", "content.xml"} <= parts:
        return ODS
    if "index/document.iwa" in parts:
        return Kind("a Numbers document", advice="export it as CSV or Excel")
    if "word/document.xml" in parts:
        return Kind("a Word document")
    return Kind("a zip archive", advice="unpack it")


def _kind_of_compound_file(path: Path) -> Kind:
    """Return the kind of a compound file: Excel puts a workbook with a password into one too."""
    with path.open("rb") as file:
        is_encrypted = "EncryptedPackage".encode("utf-16-le") in file.read(1 << 20)
    return Kind("a workbook with a password", advice="save it without one") if is_encrypted else XLS
