"""Limits of files from a browser, and cells that a spreadsheet or a page might execute."""

from __future__ import annotations

import lzma
import re
import zipfile
from pathlib import Path
from typing import Final

import pandas as pd

from planner.contract.tables import shorten_faults
from planner.errors import InputError
from planner.io.arrow_files import measure_arrow
from planner.io.formulas import may_be_formula

MAX_FILE_MB: Final = 50
SUFFIXES: Final = (
    ".csv",
    ".tsv",
    ".txt",
    ".parquet",
    ".feather",
    ".xlsx",
    ".xls",
    ".ods",
    ".json",
    ".jsonl",
)
MAX_COLUMNS: Final = 200
MAX_ROWS: Final = 10_000_000
"""Rows of a Parquet or Feather file; compressed rows may take almost no bytes."""
MAX_DECODED_MB: Final = 256
MAX_LETTERS: Final = 1_000
MARKUP: Final = re.compile(r"<\s*[A-Za-z!/]")
"""Start of what a page would treat as markup."""


def size_fault(path: Path) -> str | None:
    """Return the reason for which a file is too large; a small compressed file may have a large content."""
    if path.suffix in (".xlsx", ".ods"):
        return _unpacked_fault(path)
    if path.suffix not in (".parquet", ".feather"):
        with path.open("rb") as opened:
            line = opened.readline(1 << 20)
        columns = max(line.count(mark) for mark in (b",", b";", b"\t", b"|")) + 1
        is_text = path.suffix in (".csv", ".tsv", ".txt")
        return f"has over {MAX_COLUMNS} columns" if is_text and columns > MAX_COLUMNS else None
    try:
        size = measure_arrow(path)
    except InputError:
        return None  # reading it reports the fault
    if size.columns > MAX_COLUMNS:
        return f"has {size.columns:,} columns, at most {MAX_COLUMNS} can be uploaded"
    if size.rows > MAX_ROWS:
        return f"has {size.rows:,} rows, at most {MAX_ROWS:,} can be uploaded"
    decoded = size.decoded >> 20
    return None if decoded <= MAX_DECODED_MB else f"unpacks to {decoded:,} MB, at most {MAX_DECODED_MB}"


def _unpacked_fault(path: Path) -> str | None:
    """Return the reason for which a zipped workbook is too large to be read."""
    try:
        with zipfile.ZipFile(path) as parts:
            unpacked = sum(entry.file_size for entry in parts.infolist()) >> 20
    except (zipfile.BadZipFile, lzma.LZMAError, OSError, ValueError, NotImplementedError):
        return None  # reading it reports the fault
    return None if unpacked <= MAX_DECODED_MB else f"unpacks to {unpacked:,} MB, at most {MAX_DECODED_MB}"


def _is_active(text: str) -> bool:
    """Return whether a spreadsheet would compute a text, or a page would treat it as markup."""
    return may_be_formula(text) or MARKUP.search(text) is not None


def active_cells(frame: pd.DataFrame, name: str) -> list[str]:
    """Return a fault for each cell that a spreadsheet or a page might execute, and for each long one."""
    faults, first = [], int(frame.attrs.get("first_row", 2))
    for column in frame:
        if pd.api.types.is_numeric_dtype(frame[column]):
            continue
        texts = frame[column].dropna().astype(str)
        faults += [
            f"{name} row {int(row) + first}: {column} is '{texts[row][:40]}', must be a plain name"
            for row in texts.index[texts.map(_is_active).to_numpy(bool)]
        ]
        faults += [
            f"{name} row {int(row) + first}: {column} has {len(texts[row]):,} letters, "
            f"at most {MAX_LETTERS:,}"
            for row in texts.index[texts.str.len() > MAX_LETTERS]
        ]
    return shorten_faults(faults, name, "cells with formulas or markup")
