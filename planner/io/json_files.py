"""Tables in JSON files: records, one record a line, or the output of pandas.

Rows of JSON tables: lists of records, and the orients in which `pandas.DataFrame.to_json` writes a frame.

Source: pandas' reference of `DataFrame.to_json` and `DataFrame.to_dict`.
"""

from __future__ import annotations

import contextlib
import json
import tempfile
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import pandas as pd

from planner.contract.columns import match_columns
from planner.contract.table import Table
from planner.contract.tables import abbreviate
from planner.errors import InputError
from planner.io.json_texts import parse_json, refuse_faults, require_unicode
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


def read_json(table: Table, file: TableFile) -> RawTable:
    """Read records, one a line, or the output of `DataFrame.to_json`; or such under the table's name."""
    text, encoding = _read_text(file)
    content = _parse(file, text)
    if isinstance(content, dict) and table.name in content and table.name not in table.columns:
        content = content[table.name]
    records, orient = rows_of(content, file.name, table)
    for row, record in enumerate(records, start=1):
        _require_values(record, f"{file.name} row {row}")
    # a list without records has no names of columns either
    names = names_in(file.name, records) or list(table.columns)
    require_header(file.name, names)
    match = find_columns(table, file, names, file.name)
    frame = _frame_of(records, names, set(match.names.values()) - set(number_columns(table, match)))
    traits = [] if encoding == "utf-8" else [f"encoding {encoding}"]
    traits += [f'orient "{orient}" of pandas'] if orient else []
    order = f"assumed: {file.name}: values are {', '.join(names)}, in this order"
    notes = (order,) if orient == "values" else ()
    raw = RawTable(frame=frame, match=match, first_row=1, traits=tuple(traits), notes=notes)
    return with_numbers(table, file, raw, point_is_decimal=True)


def _frame_of(records: Sequence[Any], names: Sequence[str], labels: Collection[str]) -> pd.DataFrame:
    """Return records as a frame of objects, in which the values of labels are texts."""
    columns = {name: pd.Series([record.get(name) for record in records], dtype=object) for name in names}
    for name in labels:
        columns[name] = columns[name].map(lambda value: None if value is None else str(value))
    return pd.DataFrame(columns)


def _require_values(record: object, where: str) -> None:
    """Raise InputError where a record is no object, or has lists, objects or long texts as values."""
    if not isinstance(record, dict):
        raise InputError(f"{where}: is '{abbreviate(record)}', must be an object {{...}}")
    for name, value in record.items():
        if isinstance(value, list | dict):
            raise InputError(
                f"{where}: {abbreviate(name)} is a list or an object, must be a value; "
                'pandas writes plain rows by to_json(orient="records")'
            )
        if isinstance(value, str) and len(value) > MAX_LINE_BYTES:
            limit = f"must have at most {MAX_LINE_BYTES:,}"
            raise InputError(f"{where}: {abbreviate(name)} has {len(value):,} letters, {limit}")


def json_columns(file: TableFile) -> dict[str, list[str]]:
    """Return the names of the columns of a JSON file by table; "" where the file does not name its tables."""
    text, _ = _read_text(file)
    content = _parse(file, text)
    parts = content if isinstance(content, dict) and holds_tables(content) else {"": content}
    columns_of = {}
    for name, content_part in parts.items():
        rows, _ = rows_of(content_part, file.name)
        columns_of[name] = names_in(file.name, (row for row in rows if isinstance(row, dict)))
    return columns_of


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
    records = _parse_lines(file, text)
    if records is None:
        return parse_json(file.name, text)
    require_unicode(file.name, text, records)
    return records


def _parse_lines(file: TableFile, text: str) -> list[Any] | None:
    """Return the records of a file with one on each line; None where it is one value over several lines."""
    if text.lstrip()[:1] != "{" or "\n" not in text.strip():
        return None
    with refuse_faults(file.name), contextlib.suppress(json.JSONDecodeError):
        return [json.loads(line) for line in text.split("\n") if line.strip()]
    return None


def holds_tables(content: Mapping[str, Any]) -> bool:
    """Return whether each entry of an object is a table: rows, or a frame as pandas writes it."""
    if not content or find_orient(content):
        return False
    return all(
        (isinstance(content_part, list) and all(isinstance(row, dict) for row in content_part))
        or (isinstance(content_part, dict) and find_orient(content_part) != "")
        for content_part in content.values()
    )


def find_orient(content: Mapping[str, Any]) -> str:
    """Return the orient that an object has; "nested" for columns or index, "" for none."""
    if isinstance(content.get("data"), list):
        if isinstance(content.get("columns"), list):
            return "split"
        if isinstance(content.get("schema"), dict):
            return "table"
    if _holds_only(content, dict):
        leaves = [leaf for value in content.values() for leaf in value.values()]
        orient = "nested"
    elif _holds_only(content, list):
        leaves = [leaf for value in content.values() for leaf in value]
        orient = "list"
    else:
        return ""
    return "" if any(isinstance(leaf, list | dict) for leaf in leaves) else orient


def _holds_only(content: Mapping[str, Any], kind: type) -> bool:
    """Return whether an object has values, all of a kind and not empty."""
    return bool(content) and all(isinstance(value, kind) and value for value in content.values())


def rows_of(content: Any, where: str, table: Table | None = None) -> tuple[list[Any], str]:
    """Return rows, and the orient in which pandas wrote them; "" for records.

    table   whose columns tell rows from columns
    raises  InputError for other content, for columns of different lengths, and for rows without names
    """
    if isinstance(content, list):
        if content and all(isinstance(row, list) for row in content):
            return _name_values(content, where, table), "values"
        return content, ""
    if not isinstance(content, dict):
        raise InputError(f"{where}: must be a list of objects, one a row")
    match orient := find_orient(content):
        case "split":
            return _split_rows(content, where), orient
        case "table":
            return content["data"], orient
        case "list":
            return _join_columns(content, where), orient
        case "nested":
            return _unnest(content, table)
        case _:
            return [content], ""


def _join_columns(columns: Mapping[str, Sequence[Any]], where: str) -> list[dict[str, Any]]:
    """Return the rows of columns that are lists of one length."""
    if len({len(values) for values in columns.values()}) > 1:
        raise InputError(f"{where}: has columns of different lengths")
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _name_values(content: list[list[Any]], where: str, table: Table | None) -> list[dict[str, Any]]:
    """Return rows without names of columns, named in the order of a table's required columns.

    raises  InputError where they have another number of values
    """
    width = len(content[0])
    names = [f"column {index}" for index in range(1, width + 1)] if table is None else table.required_columns
    for number, row in enumerate(content, start=1):
        if len(row) != len(names):
            raise InputError(
                f"{where} row {number}: has {len(row)} values without names of columns, must have "
                f'{len(names)}: {", ".join(names)}; pandas writes names by to_json(orient="records")'
            )
    return [dict(zip(names, row, strict=True)) for row in content]


def _split_rows(content: Mapping[str, Any], where: str) -> list[dict[str, Any]]:
    names = [str(name) for name in content["columns"]]
    for number, row in enumerate(content["data"], start=1):
        if not isinstance(row, list) or len(row) != len(names):
            raise InputError(f"{where} row {number}: does not fit the {len(names)} columns")
    require_header(where, names)
    return [dict(zip(names, row, strict=True)) for row in content["data"]]


def _unnest(content: Mapping[str, Any], table: Table | None) -> tuple[list[Any], str]:
    """Return the rows of an object of objects: of columns, or of rows, by which names the table knows."""
    outer = list(content)
    inner = list(dict.fromkeys(key for value in content.values() for key in value))
    if table is None:
        by_column = all(key.lstrip("-").isdigit() for key in inner)
    else:
        counts = [len(match_columns(table, names, where=table.name).names) for names in (outer, inner)]
        by_column = counts[0] >= counts[1]
    if by_column:
        return [{name: values.get(row) for name, values in content.items()} for row in inner], "columns"
    return list(content.values()), "index"
