"""CSV files of any dialect: encoding, delimiter and way to write numbers are found, and said where not plain.

A plain file (UTF-8, commas, decimal points) is read as it is. Any other is copied as UTF-8 first.
The delimiter is the one that shows the most columns of the table; `csv.Sniffer` knows no columns and
takes letters for delimiters in short files.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import itertools
import re
import tempfile
import warnings
import zlib
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd

from planner.contract.columns import ColumnMatch, match_columns
from planner.contract.table import Table
from planner.errors import InputError
from planner.formatting import counted
from planner.io.layout import DELIMITERS, TableFile
from planner.io.raw_table import (
    MAX_COLUMNS,
    MAX_TITLE_ROWS,
    RawTable,
    find_columns,
    find_header,
    likely_headers,
    name_columns,
    number_columns,
    place_notes,
    require_header,
    shorten_error,
    title_notes,
    with_numbers,
)
from planner.io.sheet_rows import add_units, drop_other_rows
from planner.io.text_files import MAX_LINE_BYTES, open_as_utf8, require_file

MAX_UNPACKED: Final = 1 << 30
"""Bytes of a compressed file when unpacked."""
MAX_HEADER_LETTERS: Final = 1 << 16
"""Letters of a header with line ends within quotes."""
SAMPLE_BYTES: Final = 1 << 16
"""Bytes that are read of a file to find its columns."""
COMMENT: Final = "#"
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
            traits = () if encoding == "utf-8" else (f"encoding {encoding}",)
            return _read_text(table, file, text, traits, Path(folder))


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
            headers = _headers_by_delimiter(file, path)
    several = [header for header in headers if len(header) > 1]
    return [name_columns(header) for header in several or headers[:1]]


def _headers_by_delimiter(file: TableFile, path: Path) -> list[list[str]]:
    """Return the distinct headers by each delimiter, or by the one that the file or its layout names."""
    lines = _first_lines(path)
    named = SEPARATOR_LINE.fullmatch(lines[0].strip("\r\n")) if lines else None
    skipped = int(named is not None and named[1] in DELIMITERS)
    stated = named[1] if named and skipped else file.layout.delimiter
    headers: list[list[str]] = []
    for delimiter in [stated] if stated else DELIMITERS:
        rows = [_split(line, delimiter) for line in lines[skipped:]]
        for index in likely_headers(rows) or [0]:
            header, _ = _header(file, path, delimiter, skipped + index)
            if header not in headers:
                headers.append(header)
    return headers


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


def _read_text(table: Table, file: TableFile, path: Path, traits: tuple[str, ...], folder: Path) -> RawTable:
    delimiter, skipped = _find_delimiter(table, file, path)
    _require_short_rows(file, path, delimiter)
    header, has_units = _header(file, path, delimiter, skipped)
    titles = title_notes(
        [[line] for line in _first_lines(path)[:skipped] if not _names_separator(line)], file.name, skipped
    )
    path, comments = _without_comments(path, delimiter, skipped + 1, len(header), folder)
    names = name_columns(header)
    match = find_columns(table, file, names, file.name)
    left_out = [*range(skipped), *([skipped + 1] if has_units else [])]
    first_row = 2 + len(left_out)
    is_plain = delimiter == "," and file.layout.decimal is None and file.layout.thousands is None
    numbers = number_columns(table, match)
    types = _types_of_texts(table, names, match, numbers)
    if is_plain:
        frame = _parse(file, path, delimiter, names, types, left_out)
        is_plain = all(pd.api.types.is_numeric_dtype(frame[name]) for name in numbers)
    if not is_plain:  # one number with a comma tells how to read all of them
        frame = _parse(file, path, delimiter, names, types | dict.fromkeys(numbers, str), left_out)
    if comments:
        traits = (f"{counted(comments, 'lines of comments')} left out", *traits)
    if delimiter != ",":
        traits = (f"separated by {DELIMITERS[delimiter]}s", *traits)
    frame, others = drop_other_rows(table, frame, match, first_row)
    notes = (*titles, *place_notes(others, file.name))
    raw = RawTable(frame=frame, match=match, first_row=first_row, traits=traits, notes=notes)
    return raw if is_plain else with_numbers(table, file, raw, point_is_decimal=delimiter == ",")


def _types_of_texts(
    table: Table, names: Sequence[str], match: ColumnMatch, numbers: Collection[str]
) -> dict[str, Any]:
    """Return the types of the columns that are no numbers: categories where a compact table reads them."""
    kind: Any = "category" if table.compact else str
    types: dict[str, Any] = {name: str for name in names if name not in numbers}
    return types | {name: kind for name in match.names.values() if name not in numbers}


def _require_short_rows(file: TableFile, path: Path, delimiter: str) -> None:
    """Raise InputError where a text within quotes goes on over many lines, as after a quote that is open.

    Reads the file in blocks. Quotes are counted first; where they leave a row of over a line's limit open,
    the rows are read one by one, since a quote within a field has no meaning.
    """
    quotes, start, offset = 0, 0, 0
    with path.open("rb") as source:
        while block := source.read(1 << 18):
            letters = np.frombuffer(block, dtype=np.uint8)
            ends, marks = np.flatnonzero(letters == ord("\n")), np.flatnonzero(letters == ord('"'))
            closed = ends[(quotes + np.searchsorted(marks, ends)) % 2 == 0] + offset
            rows = np.concatenate([[start], closed, [offset + len(block)]])
            if np.diff(rows).max() > MAX_LINE_BYTES + 1:
                break
            quotes, start, offset = quotes + len(marks), int(rows[-2]), offset + len(block)
        else:
            return
    with path.open(encoding="utf-8-sig", newline="") as opened:
        reader = csv.reader(opened, delimiter=delimiter)
        row = 1
        try:
            for _ in reader:
                row = reader.line_num + 1
        except csv.Error as error:
            raise InputError(f"{file.name} row {row}: {error}; is a quote open?") from None


def _find_delimiter(table: Table, file: TableFile, path: Path) -> tuple[str, int]:
    """Return the delimiter of a file, and the number of lines before the header."""
    lines = _first_lines(path)
    first = lines[0] if lines else ""
    before = (file.layout.header or 0) - 1
    if _names_separator(first):
        named = SEPARATOR_LINE.fullmatch(first.strip("\r\n"))
        assert named is not None
        delimiter = file.layout.delimiter or named[1]
        return delimiter, before if before >= 0 else 1 + _find_start(table, file, lines[1:], delimiter)
    if file.layout.delimiter is not None:
        delimiter = file.layout.delimiter
        return delimiter, before if before >= 0 else _find_start(table, file, lines, delimiter)
    if before < 0 and set(table.required_columns) <= set(_split(first, ",")):
        return ",", 0
    shown: dict[str, tuple[int, int]] = {}
    starts: dict[str, int] = {}
    for delimiter in DELIMITERS:
        start = before if before >= 0 else _find_start(table, file, lines, delimiter)
        header = _split(lines[start], delimiter) if start < len(lines) else []
        if len(header) > 1:
            match = match_columns(
                table,
                name_columns(header[:MAX_COLUMNS]),
                where=file.name,
                mapping=file.layout.columns,
                ignore=file.layout.ignore,
            )
            shown[delimiter], starts[delimiter] = (len(match.names), len(header)), start
    if not shown:
        return ",", before if before >= 0 else _find_start(table, file, lines, ",")
    largest = max(count for count, _ in shown.values())
    best = [delimiter for delimiter, (count, _) in shown.items() if count == largest]
    if len(best) > 1 and largest > 0:
        words = " or ".join(DELIMITERS[item] for item in best)
        raise InputError(
            f"{file.name}: columns may be separated by {words}: " + file.layout.advise("delimiter")
        )
    selected = max(shown, key=lambda item: shown[item])
    return selected, starts[selected]


def _find_start(table: Table, file: TableFile, lines: Sequence[str], delimiter: str) -> int:
    """Return the number of lines before the header: titles, comments and empty lines."""
    return find_header(table, file, [_split(line, delimiter) for line in lines])


def _names_separator(line: str) -> bool:
    named = SEPARATOR_LINE.fullmatch(line.strip("\r\n"))
    return named is not None and named[1] in DELIMITERS


def _split(line: str, delimiter: str) -> list[str]:
    """Return the fields of a line; a mark of comments before them is left out."""
    try:
        fields = next(csv.reader([line], delimiter=delimiter), [])
    except csv.Error:
        return []
    return [fields[0].removeprefix(COMMENT).strip(), *fields[1:]] if line.startswith(COMMENT) else fields


def _first_lines(path: Path) -> list[str]:
    """Return the first lines of a file; the first may have line ends within quotes."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        text = first = file.readline()
        lines, is_open, size = [first], first.count('"') % 2 == 1, len(first)
        while is_open and size <= MAX_HEADER_LETTERS and (more := file.readline()):
            lines.append(more)
            is_open, size = is_open ^ (more.count('"') % 2 == 1), size + len(more)
        if not is_open:
            text = "".join(lines)
        elif len(lines) > 1:  # a quote that nothing closes: the lines stand for themselves
            return lines[:MAX_TITLE_ROWS]
        return [text, *itertools.islice(file, MAX_TITLE_ROWS - 1)] if text else []


def _without_comments(path: Path, delimiter: str, start: int, fields: int, folder: Path) -> tuple[Path, int]:
    """Return a file with emptied lines of comments below the header, and their number.

    A line that begins with # and has as many fields as the header is a row, unless a space follows the mark.
    """
    with path.open("rb") as file:
        tail = b""
        while block := file.read(1 << 20):
            if b"\n#" in tail + block:
                break
            tail = block[-1:]
        else:
            return path, 0
    copy, count, is_quoted = folder / "without_comments.csv", 0, False
    with (
        path.open(encoding="utf-8-sig", newline="") as source,
        copy.open("w", encoding="utf-8", newline="") as out,
    ):
        for number, line in enumerate(source):
            is_comment = number >= start and not is_quoted and line.startswith(COMMENT)
            if is_comment and (line.startswith(f"{COMMENT} ") or len(_split(line, delimiter)) != fields):
                out.write("\n")
                count += 1
                continue
            is_quoted ^= line.count('"') % 2 == 1
            out.write(line)
    return copy, count


def _header(file: TableFile, path: Path, delimiter: str, skipped: int) -> tuple[list[str], bool]:
    """Return the names of the columns, and whether the line below them says their units."""
    with path.open(encoding="utf-8-sig", newline="") as opened:
        for _ in range(skipped):
            opened.readline()
        reader = csv.reader(opened, delimiter=delimiter)
        try:
            header = next(reader, [])
        except csv.Error as error:
            raise InputError(f"{file.name} row {1 + skipped}: {error}") from None
        lines = reader.line_num
        try:
            below = [next(reader, []), next(reader, [])]
        except csv.Error:
            below = [[], []]
    if header and header[0].startswith(COMMENT):
        header[0] = header[0].removeprefix(COMMENT).strip()
    require_header(file.name, header)
    with_units = add_units(header, *below) if lines == 1 else None
    return (header, False) if with_units is None else (with_units, True)


def _parse(
    file: TableFile,
    path: Path,
    delimiter: str,
    names: Sequence[str],
    types: Mapping[str, Any],
    skipped: Sequence[int],
) -> pd.DataFrame:
    """Return the cells below the header.

    skipped  indices of the lines above the header, and of that with units below it
    """
    try:
        with warnings.catch_warnings():
            # pandas only warns where a row has more fields than the header
            warnings.simplefilter("error", pd.errors.ParserWarning)
            return pd.read_csv(
                path,
                sep=delimiter,
                header=0,
                names=list(names),
                skiprows=skipped or None,
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
