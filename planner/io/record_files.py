"""Tables in JSON (records, or one record a line), Feather and Parquet files."""

from __future__ import annotations

import json
import re
import tempfile
from pathlib import Path
from typing import Any, Final

import pandas as pd

from planner.contract.tables import Table, abbreviate, is_label
from planner.errors import InputError
from planner.io.json_orients import holds_tables, rows_of
from planner.io.layout import TableFile
from planner.io.raw_table import (
    MAX_COLUMNS,
    RawTable,
    find_columns,
    number_columns,
    require_header,
    shorten_error,
    with_numbers,
)
from planner.io.text_files import open_as_utf8, require_file

MAX_JSON_BYTES: Final = 1 << 29
SURROGATE: Final = re.compile(r"\\u[dD][89a-fA-F]")
"""Escape of half of a character beyond the first 65,536; two of them are a whole one."""
MAX_ROWS: Final = 200_000_000
"""Rows of a Parquet or Feather file; compressed rows may take almost no bytes."""


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
    # a list without records has no names of columns either
    names = list(dict.fromkeys(name for record in records for name in record)) or list(table.columns)
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
        found[name] = list(dict.fromkeys(str(key) for row in rows if isinstance(row, dict) for key in row))
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


def arrow_columns(path: Path) -> list[str]:
    """Return the names of the columns of a Parquet or Feather file."""
    import pyarrow
    from pyarrow import feather

    require_file(path)
    is_parquet = path.suffix.lower() == ".parquet"
    try:
        if is_parquet:
            return _parquet_header(path)[0]
        return [str(name) for name in feather.read_table(path, memory_map=True).column_names]
    except (pyarrow.ArrowException, OSError, ValueError) as error:
        kind = "Parquet" if is_parquet else "Feather"
        raise InputError(f"{path.name}: is no {kind} file ({shorten_error(error)})") from None


def read_arrow(table: Table, file: TableFile) -> RawTable:
    """Read a Parquet or Feather file."""
    import pyarrow

    require_file(file.path)
    is_parquet = file.path.suffix.lower() == ".parquet"
    kind = "Parquet" if is_parquet else "Feather"
    try:
        names, rows = _parquet_header(file.path) if is_parquet else _feather_header(file.path)
        if len(names) > MAX_COLUMNS:
            raise InputError(f"{file.name}: has {len(names):,} columns, must have at most {MAX_COLUMNS:,}")
        if rows > MAX_ROWS:
            raise InputError(f"{file.name}: has {rows:,} rows, must have at most {MAX_ROWS:,}")
        if is_parquet and table.compact:  # reads each name once per row group, not once per row
            labels = [name for name, column in table.columns.items() if is_label(column)]
            frame = pd.read_parquet(file.path, engine="pyarrow", read_dictionary=labels)
        elif is_parquet:
            frame = pd.read_parquet(file.path)
        else:
            frame = pd.read_feather(file.path)
        frame.columns = [str(name) for name in frame.columns]
    except (pyarrow.ArrowException, OSError, ValueError) as error:
        if isinstance(error, UnicodeDecodeError):
            raise InputError(f"{file.name}: has names that are not UTF-8 text") from None
        raise InputError(f"{file.name}: is no {kind} file ({shorten_error(error)})") from None
    except (LookupError, TypeError, AttributeError):  # pyarrow trusts the description that pandas adds
        raise InputError(f"{file.name}: is no {kind} file (its pandas metadata is damaged)") from None
    match = find_columns(table, file, frame.columns, file.name)
    return RawTable(frame=frame, match=match, first_row=1)


def _parquet_header(path: Path) -> tuple[list[str], int]:
    from pyarrow import parquet

    metadata = parquet.read_metadata(path)
    return metadata.schema.names, metadata.num_rows


def _feather_header(path: Path) -> tuple[list[str], int]:
    """Return names of columns and the number of rows of a Feather file whose buffers fit together.

    Texts that begin or end outside of their buffer would end the process once pandas reads them.
    """
    from pyarrow import feather

    table = feather.read_table(path, memory_map=True)
    table.validate(full=True)
    return table.column_names, table.num_rows
