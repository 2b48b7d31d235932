"""Layout of a user's table file: its dialect, sheet and columns in a scenario."""

from __future__ import annotations

import codecs
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

from planner.contract.columns import resolve_column
from planner.contract.units import find_units
from planner.errors import did_you_mean

if TYPE_CHECKING:
    from planner.contract.table import Table

DELIMITERS: Final = {",": "comma", ";": "semicolon", "\t": "tab", "|": "pipe"}
TableFormat = Literal["parquet", "csv", "csv.gz", "feather", "json", "xlsx"]
TABLE_FORMATS: Final[tuple[str, ...]] = get_args(TableFormat)
"""Formats in which tables are written; more are read."""
KEYS: Final = (
    "file",
    "delimiter",
    "decimal",
    "thousands",
    "encoding",
    "sheet",
    "header",
    "unit",
    "window",
    "ignore",
)


@dataclass(frozen=True, kw_only=True)
class Layout:
    """Layout of a table file; None fields are detected.

    file       its path, where it has another name than the table
    delimiter  between columns of a CSV file
    decimal    "." or ","
    thousands  between groups of three digits
    encoding   of a text file, such as "cp1252"
    sheet      of a workbook
    header     number of the row that names the columns
    unit       of the entries of a matrix, where it names none
    window     column with the window or time of each row, of a table over time
    ignore     columns to leave out
    columns    name in the file by our name
    key        where a scenario can say all this; None where it cannot, as for the tables of a plan
    advice     what the user can do where it cannot
    names      of nodes in other tables, which tell how a text with two of them is split; None: none yet
    option     option of a command that maps columns where a scenario cannot, such as --column
    """

    file: str | None = None
    delimiter: str | None = None
    decimal: str | None = None
    thousands: str | None = None
    encoding: str | None = None
    sheet: str | None = None
    header: int | None = None
    unit: str | None = None
    window: str | None = None
    ignore: tuple[str, ...] = ()
    columns: Mapping[str, str] = field(default_factory=dict)
    key: str | None = None
    advice: str = "save it as CSV in UTF-8 with commas and decimal points"
    names: frozenset[str] | None = None
    option: str | None = None

    @property
    def mapping_key(self) -> str | None:
        """Key of a scenario that maps the columns; None where it has none."""
        return None if self.key is None else self.key.replace("problem.tables.", "problem.columns.", 1)

    def advise(self, setting: str) -> str:
        """Return advice for a file that does not decide alone."""
        return f"say [{self.key}] {setting}" if self.key else self.advice

    def advise_reading(self, table: str, name: str, other: str, column: str) -> str:
        """Return advice to say whether a column is `name` or `other`, which both are our names."""
        if self.mapping_key is not None:
            return f'write [{self.mapping_key}] {other} = "{column}" or {name} = "{column}"'
        if self.option is not None:
            return f"say {self.option} '{table}.{other}={column}' or {self.option} '{table}.{name}={column}'"
        return f"call it {other}, or add a column {other} (1 in every row is the default)"


@dataclass(frozen=True, kw_only=True)
class TableFile:
    """A file that holds a table, and its layout."""

    path: Path
    layout: Layout = field(default_factory=Layout)

    @property
    def name(self) -> str:
        """The file's name in error lines, with the sheet of a workbook."""
        return self.path.name + (f" sheet {self.layout.sheet}" if self.layout.sheet else "")


def parse_layouts(
    tables: Mapping[str, Table], layouts_given: Any, columns: Any
) -> tuple[dict[str, Layout], list[str]]:
    """Return the layout of each table in `[problem.tables]` and `[problem.columns]`, and the faults."""
    layouts = {name: Layout(key=f"problem.tables.{name}") for name in tables}
    faults = [*_section_faults(tables, "tables", layouts_given), *_section_faults(tables, "columns", columns)]
    if faults:
        return layouts, faults
    for name in dict.fromkeys([*layouts_given, *columns]):
        own_settings, more = _parse_layout(f"problem.tables.{name}", layouts_given.get(name, {}))
        faults += more
        for ours, theirs in columns.get(name, {}).items():
            where = f"problem.columns.{name}.{ours}"
            if resolve_column(tables[name], ours) is None:
                faults.append(f"{where}: no such column" + did_you_mean(ours, tables[name].columns))
            elif not isinstance(theirs, str):
                faults.append(f"{where} is {theirs}, must be the name of a column in the file")
        layouts[name] = Layout(**own_settings, columns=columns.get(name, {}), key=f"problem.tables.{name}")
    return layouts, faults


def _section_faults(tables: Collection[str], section: str, content: Any) -> list[str]:
    if not isinstance(content, dict):
        return [f"problem.{section} must be a table: write [problem.{section}.NAME]"]
    faults = []
    for name, entry in content.items():
        where = f"problem.{section}.{name}"
        if name not in tables:
            faults.append(f"{where}: no such table" + did_you_mean(name, tables))
        elif not isinstance(entry, dict):
            faults.append(f"{where} must be a table: write [{where}]")
    return faults


def _parse_layout(where: str, settings: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    faults = [f"{where}.{key}: no such key" + did_you_mean(key, KEYS) for key in settings if key not in KEYS]
    own_settings = {key: value for key, value in settings.items() if key in KEYS}
    ignore = _read_ignore(where, own_settings.pop("ignore", []), faults)
    header = _read_header(where, own_settings.pop("header", None), faults)
    wrong = {key: fault for key, value in own_settings.items() if (fault := _find_fault(key, value))}
    faults += [f"{where}.{key} is {fault}" for key, fault in wrong.items()]
    own_settings = {key: value for key, value in own_settings.items() if key not in wrong}
    decimal = own_settings.get("decimal")
    if decimal is not None and decimal == own_settings.get("thousands"):
        faults.append(f"{where}: decimal and thousands are both '{decimal}', must differ")
    return {**own_settings, "header": header, "ignore": ignore}, faults


def _read_ignore(where: str, value: Any, faults: list[str]) -> tuple[str, ...]:
    """Return the names of columns to ignore; none, with a fault added, for anything but a list of texts."""
    if isinstance(value, list) and all(isinstance(name, str) for name in value):
        return tuple(value)
    faults.append(f"{where}.ignore must be a list of names of columns")
    return ()


def _read_header(where: str, value: Any, faults: list[str]) -> int | None:
    """Return the number of the row with the names of columns; None, with a fault added, for no number."""
    if value is None or (isinstance(value, int) and not isinstance(value, bool) and value >= 1):
        return value
    faults.append(f"{where}.header is {value!r}, must be the number of a row, from 1")
    return None


def _find_fault(key: str, value: Any) -> str:
    """Return the value of a setting with the rule that it breaks, as text; "" where it is valid."""
    allowed: dict[str, tuple[tuple[str, ...], str]] = {
        "delimiter": (tuple(DELIMITERS), "one of ',', ';', '\\t' and '|'"),
        "decimal": ((".", ","), "'.' or ','"),
        "thousands": ((".", ",", " ", "'"), "one of '.', ',', ' ' and \"'\""),
    }
    if not isinstance(value, str):
        return f"{value}, must be text"
    if key in allowed and value not in allowed[key][0]:
        return f"'{value}', must be {allowed[key][1]}"
    if key == "unit" and len(find_units(value)) != 1:
        return f"'{value}', must be a unit such as Gbit/s"
    if key == "encoding" and not _is_text_encoding(value):
        return f"'{value}', must be an encoding such as utf-8, cp1252, utf-16"
    return ""


def _is_text_encoding(name: str) -> bool:
    try:
        return bool(codecs.lookup(name)._is_text_encoding)
    except (LookupError, ValueError):
        return False
