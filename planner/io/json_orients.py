"""Rows of JSON tables: lists of records, and the orients in which `pandas.DataFrame.to_json` writes a frame.

Source: pandas' reference of `DataFrame.to_json` and `DataFrame.to_dict`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from planner.contract.columns import match_columns
from planner.errors import InputError
from planner.io.raw_table import require_header

if TYPE_CHECKING:
    from planner.contract.table import Table


def holds_tables(content: Mapping[str, Any]) -> bool:
    """Return whether each entry of an object is a table: rows, or what pandas writes of a frame."""
    if not content or find_orient(content):
        return False
    return all(
        (isinstance(part, list) and all(isinstance(row, dict) for row in part))
        or (isinstance(part, dict) and find_orient(part) != "")
        for part in content.values()
    )


def find_orient(content: Mapping[str, Any]) -> str:
    """Return the orient that an object has; "nested" for columns or index, "" for none."""
    if isinstance(content.get("data"), list):
        if isinstance(content.get("columns"), list):
            return "split"
        if isinstance(content.get("schema"), dict):
            return "table"
    for kind, orient in ((dict, "nested"), (list, "list")):
        if content and all(isinstance(value, kind) and value for value in content.values()):
            leaves = [
                leaf for value in content.values() for leaf in (value.values() if kind is dict else value)
            ]
            return "" if any(isinstance(leaf, list | dict) for leaf in leaves) else orient
    return ""


def rows_of(content: Any, where: str, table: Table | None = None) -> tuple[list[Any], str]:
    """Return rows, and the orient in which pandas wrote them; "" for records.

    table   whose columns tell rows from columns
    raises  InputError for other content, for columns of different lengths, and for rows without names
    """
    if isinstance(content, list):
        if content and all(isinstance(row, list) for row in content):
            raise InputError(
                f'{where}: its rows have no names of columns; pandas writes them by to_json(orient="records")'
            )
        return content, ""
    if not isinstance(content, dict):
        raise InputError(f"{where}: must be a list of objects, one a row")
    match orient := find_orient(content):
        case "split":
            return _split_rows(content, where), orient
        case "table":
            return content["data"], orient
        case "list":
            if len({len(values) for values in content.values()}) > 1:
                raise InputError(f"{where}: has columns of different lengths")
            rows = zip(*content.values(), strict=True)
            return [dict(zip(content, row, strict=True)) for row in rows], orient
        case "nested":
            return _unnest(content, table)
        case _:
            return [content], ""


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
        known = [len(match_columns(table, names, where=table.name).names) for names in (outer, inner)]
        by_column = known[0] >= known[1]
    if by_column:
        return [{name: values.get(row) for name, values in content.items()} for row in inner], "columns"
    return list(content.values()), "index"
