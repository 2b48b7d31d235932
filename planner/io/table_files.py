"""Tables in CSV and Parquet files: finding, reading with every fault, writing completely or not at all."""

from __future__ import annotations

import csv
import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import pandas as pd

from planner.contract.tables import Table, abbreviate, is_label, shorten_faults, validate
from planner.errors import InputError
from planner.io.file_replacement import replace_file
from planner.io.text_files import require_file, require_text

SUFFIXES: Final = (".csv", ".parquet")
MAX_COLUMNS: Final = 1_000
NUMBER: Final = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")


def read_tables(tables: Iterable[Table], files: Mapping[str, Path]) -> dict[str, pd.DataFrame]:
    """Read and validate the tables of `files`, by table name; raise InputError with the faults of all."""
    read: dict[str, pd.DataFrame] = {}
    faults: list[str] = []
    for table in tables:
        if table.name not in files:
            continue
        try:
            read[table.name] = read_table(table, files[table.name])
        except InputError as error:
            faults += error.faults
    if faults:
        raise InputError(*faults)
    return read


def read_table(table: Table, path: Path) -> pd.DataFrame:
    """Read and validate the table in a CSV or Parquet file; raise InputError with every fault."""
    if path.suffix == ".parquet":
        frame, first_row = _read_parquet(table, path), 1
    else:
        frame, first_row = _read_csv(table, path), 2
    try:
        frame = validate(table, frame, where=path.name, first_row=first_row)
    except UnicodeDecodeError:  # Parquet may hold any bytes as names
        raise InputError(f"{path.name}: has names that are not UTF-8 text") from None
    frame.attrs |= {"where": path.name, "first_row": first_row}
    return frame


def find_tables(tables: Iterable[Table], folder: Path, optional: Sequence[str] = ()) -> dict[str, Path]:
    """Return the file of each table in a folder, `<table>.csv` or `<table>.parquet`, by table name."""
    if not folder.is_dir():
        raise InputError(
            f"{folder}: " + ("is a file, must be a folder" if folder.exists() else "no such folder")
        )
    files: dict[str, Path] = {}
    faults: list[str] = []
    for table in tables:
        candidates = [folder / (table.name + suffix) for suffix in SUFFIXES]
        present = [path for path in candidates if path.exists()]
        if len(present) > 1:
            faults.append(f"{folder}: has both {present[0].name} and {present[1].name}; keep one")
        elif present:
            files[table.name] = present[0]
        elif table.name not in optional:
            faults.append(f"{folder}: has no {candidates[0].name} (nor {candidates[1].name})")
    if faults:
        raise InputError(*faults)
    return files


def _read_csv(table: Table, path: Path) -> pd.DataFrame:
    require_text(path)
    with path.open(encoding="utf-8-sig", newline="") as file:
        try:
            header = next(csv.reader(file), [])
        except csv.Error as error:
            raise InputError(f"{path.name} row 1: {error}") from None
    if not header:
        raise InputError(f"{path.name}: is empty, must begin with a line of column names")
    if len(header) > MAX_COLUMNS:
        raise InputError(f"{path.name}: has {len(header):,} columns, must have at most {MAX_COLUMNS:,}")
    twice = [name for name, count in Counter(header).items() if count > 1]
    if twice:
        faults = [f"{path.name}: column '{abbreviate(name)}' occurs twice" for name in twice]
        raise InputError(*shorten_faults(faults, path.name, "of column names that occur twice"))
    kind: Any = "category" if table.compact else str
    labels = {name: kind for name, column in table.columns.items() if is_label(column)}
    try:
        with warnings.catch_warnings():
            # pandas only warns where a row has more fields than the header
            warnings.simplefilter("error", pd.errors.ParserWarning)
            read = pd.read_csv(
                path,
                dtype=labels,
                # only an empty field is missing: a node may be called "NA"
                keep_default_na=False,
                na_values=[""],
                skip_blank_lines=False,
                encoding="utf-8-sig",
                index_col=False,
                low_memory=False,
            )
        return _unquote_formulas(read)
    except (pd.errors.ParserError, pd.errors.ParserWarning, ValueError) as error:
        raise InputError(
            _csv_fault(path, len(header)) or f"{path.name}: is no CSV table ({_shorten(error)})"
        ) from None


def _csv_fault(path: Path, fields: int) -> str | None:
    """Return the fault of the first row that does not fit the header; None where all do."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        reader = csv.reader(file, strict=True)
        try:
            for row in reader:
                if len(row) > fields:
                    return (
                        f"{path.name} row {reader.line_num}: has {len(row)} fields, the header has {fields}"
                    )
        except csv.Error as error:
            return f"{path.name} row {reader.line_num}: {error}"
    return None


def _read_parquet(table: Table, path: Path) -> pd.DataFrame:
    import pyarrow

    require_file(path)
    labels = [name for name, column in table.columns.items() if is_label(column)]
    try:
        if table.compact:  # reads each name once per row group, not once per row
            return pd.read_parquet(path, engine="pyarrow", read_dictionary=labels)
        return pd.read_parquet(path)
    except (pyarrow.ArrowException, OSError, ValueError) as error:
        raise InputError(f"{path.name}: is no Parquet file ({_shorten(error)})") from None


def _shorten(error: BaseException) -> str:
    text = " ".join(str(error).split()).removeprefix("Error tokenizing data. C error: ")
    return abbreviate(text) if len(text) > 160 else text


def write_table(frame: pd.DataFrame, path: Path, *, suffix: str | None = None) -> None:
    """Write a table as CSV or Parquet, completely or not at all.

    suffix  ".parquet", or CSV for any other; default: the suffix of the path
    raises  OSError
    """
    with replace_file(path) as partial:
        if (suffix or path.suffix) == ".parquet":
            frame.to_parquet(partial, index=False)
        else:
            _quote_formulas(frame).to_csv(partial, index=False)


def _quote_formulas(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the frame with an apostrophe before each text that a spreadsheet would take for a formula."""
    return _map_texts(frame, r"'*[=+\-@\t\r]", lambda text: text if NUMBER.fullmatch(text) else f"'{text}")


def _unquote_formulas(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the frame without the apostrophes of `_quote_formulas`."""
    return _map_texts(frame, r"'+[=+\-@\t\r]", lambda text: text[1:])


def _map_texts(frame: pd.DataFrame, pattern: str, change: Callable[[str], str]) -> pd.DataFrame:
    """Return the frame with texts that begin with a pattern changed; frames without any stay as they are."""
    expression = re.compile(pattern)

    def map_one(value: Any) -> Any:
        return change(value) if isinstance(value, str) and expression.match(value) else value

    changed = {}
    for name in frame:
        column = frame[name]
        if isinstance(column.dtype, pd.CategoricalDtype):
            if any(isinstance(one, str) and expression.match(one) for one in column.cat.categories):
                changed[name] = column.cat.rename_categories([map_one(one) for one in column.cat.categories])
        elif not pd.api.types.is_numeric_dtype(column):
            texts = column.map(map_one)
            if not texts.equals(column):
                changed[name] = texts.astype(column.dtype)
    return frame.assign(**{str(name): column for name, column in changed.items()}) if changed else frame


def export_table(frame: pd.DataFrame, path: Path, suffix: str) -> None:
    """Write a frame of any columns to a user's path; raise InputError where it cannot be written."""
    if path.is_dir():
        raise InputError(f"{path}: is a folder, must be a file")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_table(_with_text_columns(frame), path, suffix=suffix)
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror or error})") from None


def _with_text_columns(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the frame with columns of both numbers and text, as of a parameter `integer | any`, as text."""
    mixed = [
        str(name)
        for name in frame
        if frame[name].dtype == object and len({isinstance(value, str) for value in frame[name].dropna()}) > 1
    ]
    text = {name: frame[name].map(lambda value: None if value is None else str(value)) for name in mixed}
    return frame.assign(**text) if text else frame
