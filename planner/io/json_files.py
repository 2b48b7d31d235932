"""Tables in JSON files: records, one record a line, or what pandas writes."""

from __future__ import annotations

import json
import re
import tempfile
from pathlib import Path
from typing import Any, Final

import pandas as pd

from planner.contract.table import Table
from planner.contract.tables import abbreviate
from planner.errors import InputError
from planner.io.json_orients import holds_tables, rows_of
from planner.io.layout import TableFile
from planner.io.raw_table import (
    RawTable,
    find_columns,
    names_in,
    number_columns,
    require_header,
    with_numbers,
)
from planner.io.text_files import MAX_LINE_BYTES, open_as_utf8, require_file

MAX_JSON_BYTES: Final = 1 << 29
MAX_OBJECTS: Final = 10_000_000
"""Lists and objects of a file: an empty one takes three letters there, and 30 times as much in memory."""
SURROGATE: Final = re.compile(r"\\u[dD][89a-fA-F]")
"""Escape of half of a character beyond the first 65,536; two of them are a whole one."""


def read_json(table: Table, file: TableFile) -> RawTable:
    """Read records, one record a line, or what `DataFrame.to_json` writes; or such under the table's name."""
    text, encoding = _read_text(file)
    content = _parse(file, text)
    if isinstance(content, dict) and table.name in content and table.name not in table.columns:
        content = content[table.name]
    records, orient = rows_of(content, file.name, table)
    for row, record in enumerate(records, start=1):
        if not isinstance(record, dict):
            raise InputError(f"{file.name} row {row}: is '{abbreviate(record)}', must be an object {{...}}")
        for name, value in record.items():
            if isinstance(value, list | dict):
                raise InputError(
                    f"{file.name} row {row}: {abbreviate(name)} is a list or an object, must be a value; "
                    'pandas writes plain rows by to_json(orient="records")'
                )
            if isinstance(value, str) and len(value) > MAX_LINE_BYTES:
                limit = f"must have at most {MAX_LINE_BYTES:,}"
                raise InputError(
                    f"{file.name} row {row}: {abbreviate(name)} has {len(value):,} letters, {limit}"
                )
    # a list without records has no names of columns either
    names = names_in(file.name, records) or list(table.columns)
    require_header(file.name, names)
    match = find_columns(table, file, names, file.name)
    frame = pd.DataFrame(
        {name: pd.Series([record.get(name) for record in records], dtype=object) for name in names}
    )
    for given in match.names.values():
        if given not in number_columns(table, match):
            frame[given] = frame[given].map(lambda value: None if value is None else str(value))
    traits = [] if encoding == "utf-8" else [f"encoding {encoding}"]
    traits += [f'orient "{orient}" of pandas'] if orient else []
    raw = RawTable(frame=frame, match=match, first_row=1, traits=tuple(traits))
    return with_numbers(table, file, raw, point_is_decimal=True)


def json_columns(file: TableFile) -> dict[str, list[str]]:
    """Return the names of the columns of a JSON file by table; "" where the file does not name its tables."""
    text, _ = _read_text(file)
    content = _parse(file, text)
    parts = content if isinstance(content, dict) and holds_tables(content) else {"": content}
    found = {}
    for name, part in parts.items():
        rows, _ = rows_of(part, file.name)
        found[name] = names_in(file.name, (row for row in rows if isinstance(row, dict)))
    return found


def _read_text(file: TableFile) -> tuple[str, str]:
    """Return the text of a JSON file, and its encoding."""
    require_file(file.path)
    if file.path.stat().st_size > MAX_JSON_BYTES:
        raise InputError(f"{file.name}: has over {MAX_JSON_BYTES >> 20:,} MiB; use Parquet")
    with (
        tempfile.TemporaryDirectory(prefix="planner-") as folder,
        open_as_utf8(
            file.path,
            file.layout.encoding,
            name=file.name,
            hint=file.layout.advise("encoding"),
            folder=Path(folder),
            max_line_bytes=MAX_JSON_BYTES,
        ) as (path, encoding),
    ):
        return path.read_text(encoding="utf-8-sig"), encoding


def _parse(file: TableFile, text: str) -> Any:
    """Return the content of a JSON file; records, one on each line, as a list."""
    objects = text.count("{") + text.count("[")
    if objects > MAX_OBJECTS:
        limit = f"must have at most {MAX_OBJECTS:,}; use Parquet"
        raise InputError(f"{file.name}: has {objects:,} lists and objects, {limit}")
    content = _parse_text(file, text)
    if SURROGATE.search(text):
        _require_unicode(file, content)
    return content


def _require_unicode(file: TableFile, content: Any) -> None:
    """Raise InputError where a name, key or value has half a character, which no text file can hold."""
    records = content if isinstance(content, list) else [content]
    for row, record in enumerate(records, start=1):
        try:
            json.dumps(record, ensure_ascii=False).encode()
        except UnicodeEncodeError as error:
            half = error.object[error.start]
            where = f" row {row}" if isinstance(content, list) else ""
            raise InputError(
                f"{file.name}{where}: has half a character, \\u{ord(half):04x}, which is no text; was it cut?"
            ) from None


def _parse_text(file: TableFile, text: str) -> Any:
    try:
        if text.lstrip()[:1] == "{" and "\n" in text.strip():
            try:
                return [json.loads(line) for line in text.split("\n") if line.strip()]
            except json.JSONDecodeError:
                pass  # one object over several lines
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise InputError(f"{file.name} row {error.lineno}: is no JSON ({error.msg})") from None
    except RecursionError:
        raise InputError(f"{file.name}: is no table: its lists or objects are nested too deeply") from None
    except ValueError as error:  # Python refuses numbers of thousands of digits
        raise InputError(f"{file.name}: is no JSON: {str(error).partition(';')[0]}") from None
