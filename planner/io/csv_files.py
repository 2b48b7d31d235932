"""CSV files of any dialect: encoding, delimiter and way to write numbers are found, and said where not plain.

A plain file (UTF-8, commas, decimal points) is read as it is. Any other is copied as UTF-8 first.
The delimiter is the one that shows the most columns of the table; `csv.Sniffer` knows no columns and
takes letters for delimiters in short files.
"""

from __future__ import annotations

import codecs
import contextlib
import csv
import gzip
import re
import tempfile
import warnings
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import pandas as pd

from planner.contract.columns import match_columns
from planner.contract.tables import Table
from planner.errors import InputError
from planner.io.layout import DELIMITERS, TableFile
from planner.io.raw_table import (
    MAX_COLUMNS,
    RawTable,
    find_columns,
    name_columns,
    number_columns,
    require_header,
    shorten_error,
    with_numbers,
)
from planner.io.text_files import open_as_utf8, require_file

MAX_UNPACKED: Final = 1 << 30
"""Bytes of a compressed file when unpacked."""
SAMPLE_BYTES: Final = 1 << 16
"""Bytes that are read of a file to find its columns."""
SEPARATOR_LINE: Final = re.compile(r"sep=(.)")
"""First line with which a spreadsheet program names the delimiter."""


def read_csv(table: Table, file: TableFile) -> RawTable:
    """Read a CSV file, plain or compressed with gzip; raise InputError with every fault."""
    require_file(file.path)
    with tempfile.TemporaryDirectory(prefix="planner-") as folder:
        path = file.path
        if path.suffix.lower() == ".gz":
            path = Path(folder, "unpacked.csv")
            _unpack(file.path, path)
        with open_as_utf8(
            path,
            file.layout.encoding,
            name=file.name,
            hint=file.layout.advise("encoding"),
            folder=Path(folder),
        ) as (text, encoding):
            return _read_text(table, file, text, () if encoding == "utf-8" else (f"encoding {encoding}",))


def possible_columns(file: TableFile) -> list[list[str]]:
    """Return the names of the columns of a CSV file by each delimiter that shows more than one.

    Reads the beginning of the file only.

    raises  InputError where it is no text, or has no header
    """
    require_file(file.path)
    with tempfile.TemporaryDirectory(prefix="planner-") as folder:
        sample = Path(folder, "sample.csv")
        sample.write_bytes(_beginning(file.path))
        with open_as_utf8(
            sample,
            file.layout.encoding,
            name=file.name,
            hint=file.layout.advise("encoding"),
            folder=Path(folder),
        ) as (path, _):
            named = SEPARATOR_LINE.fullmatch(_first_line(path).strip("\r\n"))
            skipped = int(named is not None and named[1] in DELIMITERS)
            given = named[1] if named and skipped else file.layout.delimiter
            found = []
            for delimiter in [given] if given else DELIMITERS:
                header = _header(file, path, delimiter, skipped)
                if header not in found:
                    found.append(header)
    several = [header for header in found if len(header) > 1]
    return [name_columns(header) for header in several or found[:1]]


def _beginning(path: Path) -> bytes:
    """Return the first whole lines of a file, plain or compressed, of at most SAMPLE_BYTES."""
    try:
        with gzip.open(path) if path.suffix.lower() == ".gz" else path.open("rb") as file:
            content = file.read(SAMPLE_BYTES + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"{path.name}: cannot be unpacked ({shorten_error(error)})") from None
    if len(content) <= SAMPLE_BYTES:
        return content
    end = b"\n\0" if content.startswith(codecs.BOM_UTF16_LE) else b"\n"
    last = content.rfind(end)
    return content[: last + len(end)] if last >= 0 else content[:SAMPLE_BYTES]


def _unpack(path: Path, into: Path) -> None:
    try:
        with gzip.open(path) as packed, into.open("wb") as out:
            size = 0
            while block := packed.read(1 << 20):
                size += len(block)
                if size > MAX_UNPACKED:
                    raise InputError(f"{path.name}: unpacks to over {MAX_UNPACKED >> 20:,} MiB")
                if (
                    b"\0" in block
                    and not block.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
                    and size <= 1 << 20
                ):
                    raise InputError(f"{path.name}: is a binary file, must be text")
                out.write(block)
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"{path.name}: cannot be unpacked ({shorten_error(error)})") from None


def _read_text(table: Table, file: TableFile, path: Path, traits: tuple[str, ...]) -> RawTable:
    delimiter, skipped = _find_delimiter(table, file, path)
    header = _header(file, path, delimiter, skipped)
    names = name_columns(header)
    match = find_columns(table, file, names, file.name)
    is_plain = delimiter == "," and file.layout.decimal is None and file.layout.thousands is None
    numbers = number_columns(table, match)
    kind: Any = "category" if table.compact else str
    types: dict[str, Any] = {name: str for name in names if name not in numbers}
    types |= {given: kind for given in match.names.values() if given not in numbers}
    if is_plain:
        frame = _parse(file, path, delimiter, names, types, skipped)
        is_plain = all(pd.api.types.is_numeric_dtype(frame[name]) for name in numbers)
    if not is_plain:  # one number with a comma tells how to read all of them
        frame = _parse(file, path, delimiter, names, types | dict.fromkeys(numbers, str), skipped)
    if delimiter != ",":
        traits = (f"separated by {DELIMITERS[delimiter]}s", *traits)
    raw = RawTable(frame=frame, match=match, first_row=2 + skipped, traits=traits)
    return raw if is_plain else with_numbers(table, file, raw, point_is_decimal=delimiter == ",")


def _find_delimiter(table: Table, file: TableFile, path: Path) -> tuple[str, int]:
    """Return the delimiter of a file, and how many lines are before the header."""
    line = _first_line(path)
    skipped = 0
    named = SEPARATOR_LINE.fullmatch(line.strip("\r\n"))
    if named and named[1] in DELIMITERS:
        return file.layout.delimiter or named[1], 1
    if file.layout.delimiter is not None:
        return file.layout.delimiter, skipped
    shown = {}
    for delimiter in DELIMITERS:
        with contextlib.suppress(csv.Error):
            header = next(csv.reader([line], delimiter=delimiter), [])
            if delimiter == "," and set(table.required_columns) <= set(header):
                return delimiter, skipped
            if len(header) > 1:
                match = match_columns(
                    table,
                    name_columns(header[:MAX_COLUMNS]),
                    where=file.name,
                    mapping=file.layout.columns,
                    ignore=file.layout.ignore,
                )
                shown[delimiter] = (len(match.names), len(header))
    if not shown:
        return ",", skipped
    most = max(known for known, _ in shown.values())
    best = [delimiter for delimiter, (known, _) in shown.items() if known == most]
    if len(best) > 1 and most > 0:
        words = " or ".join(DELIMITERS[one] for one in best)
        raise InputError(
            f"{file.name}: columns may be separated by {words}: " + file.layout.advise("delimiter")
        )
    return max(shown, key=lambda one: shown[one]), skipped


def _first_line(path: Path) -> str:
    """Return the first record of a file, which may have line ends within quotes."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        text = file.readline()
        while text.count('"') % 2 and (more := file.readline()):
            text += more
    return text


def _header(file: TableFile, path: Path, delimiter: str, skipped: int) -> list[str]:
    with path.open(encoding="utf-8-sig", newline="") as opened:
        for _ in range(skipped):
            opened.readline()
        try:
            header = next(csv.reader(opened, delimiter=delimiter), [])
        except csv.Error as error:
            raise InputError(f"{file.name} row {1 + skipped}: {error}") from None
    require_header(file.name, header)
    return header


def _parse(
    file: TableFile, path: Path, delimiter: str, names: Sequence[str], types: Mapping[str, Any], skipped: int
) -> pd.DataFrame:
    try:
        with warnings.catch_warnings():
            # pandas only warns where a row has more fields than the header
            warnings.simplefilter("error", pd.errors.ParserWarning)
            return pd.read_csv(
                path,
                sep=delimiter,
                header=0,
                names=list(names),
                skiprows=skipped,
                dtype=dict(types),
                # only an empty field is missing: a node may be called "NA"
                keep_default_na=False,
                na_values=[""],
                skip_blank_lines=False,
                encoding="utf-8-sig",
                index_col=False,
                low_memory=False,
            )
    except (pd.errors.ParserError, pd.errors.ParserWarning, ValueError) as error:
        raise InputError(
            _csv_fault(file, path, delimiter, len(names))
            or f"{file.name}: is no CSV table ({shorten_error(error)})"
        ) from None


def _csv_fault(file: TableFile, path: Path, delimiter: str, fields: int) -> str | None:
    """Return the fault of the first row that does not fit the header; None where all do."""
    with path.open(encoding="utf-8-sig", newline="") as opened:
        reader = csv.reader(opened, strict=True, delimiter=delimiter)
        try:
            for row in reader:
                if len(row) > fields:
                    return (
                        f"{file.name} row {reader.line_num}: has {len(row)} fields, the header has {fields}"
                    )
        except csv.Error as error:
            return f"{file.name} row {reader.line_num}: {error}"
    return None
