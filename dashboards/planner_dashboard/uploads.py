"""Uploaded tables: validated by their content and stored under names of ours in the session's folder.

Nothing in a file is executed. Cells that a spreadsheet or a page might execute are refused.
"""

from __future__ import annotations

import csv
import hashlib
import io
import re
import shutil
import tempfile
import zipfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import pandas as pd

from planner.contract.system import System
from planner.contract.tables import shorten_faults
from planner.contract.units import plain
from planner.errors import InputError, did_you_mean
from planner.io import workbooks
from planner.io.table_files import read_table
from planner.scenarios.catalogue import find_system

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
ALL_SHEETS: Final = "every sheet"
"""In place of a table: each sheet of a workbook is the table of its name."""
MAX_COLUMNS: Final = 200
MAX_ROWS: Final = 10_000_000
"""Rows of a Parquet file; compressed rows may take almost no bytes."""
MAX_DECODED_MB: Final = 256
MAX_LETTERS: Final = 1_000
ACTIVE: Final = re.compile(r"^\s*[=+@\t＝＋－＠]|^\s*-(?!\d+(?:\.\d+)?$)|<\s*[A-Za-z!/]")
"""A cell that a spreadsheet would compute, or a page would treat as markup."""


@dataclass(frozen=True, kw_only=True)
class UploadedFile:
    """A file as a browser sent it, and the table that the user assigned it to."""

    name: str
    table: str
    content: bytes

    @property
    def display_name(self) -> str:
        """The name for error lines: without folders, at most 60 letters."""
        return Path(self.name.replace("\\", "/")).name[:60]


def store_tables(system_name: str, files: Sequence[UploadedFile], root: Path) -> tuple[Path, str]:
    """Validate uploaded files as tables of a system and store them; return their folder and digest.

    raises  InputError with every fault; then nothing is stored
    """
    system = find_system(system_name)
    faults: list[str] = []
    files, more = _split_workbooks(system, files)
    faults += more
    if len({file.table for file in files}) != len(files):
        faults.append("two files are given for the same table")
    whole = hashlib.sha256(system.name.encode())
    for file in sorted(files, key=lambda file: file.table):
        whole.update(file.table.encode() + b"\0" + file.content)
    digest = whole.hexdigest()[:16]
    folder, partial = root / digest, root / f".{digest}.partial"
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    try:
        for file in files:
            faults += _store_file(system, file, partial)
        if faults:
            raise InputError(*faults)
        shutil.rmtree(folder, ignore_errors=True)
        partial.rename(folder)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return folder, digest


def tables_to_choose(tables: Sequence[str], file_name: str) -> list[str]:
    """Return what a file may hold: one table, or every sheet of a workbook; empty text for no choice yet."""
    is_book = file_name.lower().endswith(workbooks.SUFFIXES)
    return ["", *([ALL_SHEETS] if is_book else []), *tables]


def guess_table(tables: Sequence[str], file_name: str) -> str:
    """Return the table with the name of a file, every sheet of a workbook, or nothing where there is none."""
    stem = Path(file_name.replace("\\", "/")).stem.lower()
    if stem in tables:
        return stem
    return ALL_SHEETS if ALL_SHEETS in tables_to_choose(tables, file_name) else ""


def _split_workbooks(system: System, files: Sequence[UploadedFile]) -> tuple[list[UploadedFile], list[str]]:
    """Return the files with a workbook of every sheet once for each table that it has, and the faults."""
    tables = {plain(table.name): table.name for table in system.problem.tables}
    found: list[UploadedFile] = []
    faults: list[str] = []
    for file in files:
        if file.table != ALL_SHEETS:
            found.append(file)
            continue
        suffix = Path(file.display_name).suffix.lower()
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, f"workbook{suffix if suffix in workbooks.SUFFIXES else '.xlsx'}")
            path.write_bytes(file.content)
            try:
                sheets = workbooks.sheet_names(path)
            except InputError as error:
                faults += [fault.replace(path.name, file.display_name) for fault in error.faults]
                continue
        own = [tables[plain(sheet)] for sheet in sheets if plain(sheet) in tables]
        if not own:
            names = ", ".join(tables.values())
            faults.append(f"{file.display_name}: no sheet has the name of a table: {names}")
        found += [replace(file, table=table) for table in own]
    return found, faults


def _store_file(system: System, file: UploadedFile, folder: Path) -> list[str]:
    """Store one file; return its faults."""
    tables = {table.name: table for table in system.problem.tables}
    if file.table not in tables:
        return [f"{file.display_name}: which table is it?" + did_you_mean(file.table, tables)]
    suffix = Path(file.display_name).suffix.lower()
    if suffix not in SUFFIXES:
        return [f"{file.display_name}: must end in {', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]}"]
    if len(file.content) > MAX_FILE_MB << 20:
        return [
            f"{file.display_name}: has {len(file.content) >> 20} MB, at most {MAX_FILE_MB} can be uploaded"
        ]
    path = folder / f"{file.table}{suffix}"
    path.write_bytes(file.content)
    if fault := size_fault(path):
        return [f"{path.name}: {fault}"]
    try:
        frame = read_table(tables[file.table], path)
    except InputError as error:
        return [fault.replace(f"{folder}/", "") for fault in error.faults]
    return active_cells(frame, path.name)


def size_fault(path: Path) -> str | None:
    """Return why a file is too large to be read; a small compressed file may have a large content."""
    if path.suffix in (".xlsx", ".ods"):
        return _unpacked_fault(path)
    if path.suffix != ".parquet":
        with path.open("rb") as opened:
            line = opened.readline(1 << 20)
        columns = max(line.count(mark) for mark in (b",", b";", b"\t", b"|")) + 1
        is_text = path.suffix in (".csv", ".tsv", ".txt")
        return f"has over {MAX_COLUMNS} columns" if is_text and columns > MAX_COLUMNS else None
    from pyarrow import ArrowException, parquet

    try:
        metadata = parquet.read_metadata(path)
    except (ArrowException, OSError, ValueError):
        return None  # reading it reports the fault
    if metadata.num_columns > MAX_COLUMNS:
        return f"has {metadata.num_columns:,} columns, at most {MAX_COLUMNS} can be uploaded"
    if metadata.num_rows > MAX_ROWS:
        return f"has {metadata.num_rows:,} rows, at most {MAX_ROWS:,} can be uploaded"
    decoded = sum(metadata.row_group(place).total_byte_size for place in range(metadata.num_row_groups)) >> 20
    return None if decoded <= MAX_DECODED_MB else f"unpacks to {decoded:,} MB, at most {MAX_DECODED_MB}"


def _unpacked_fault(path: Path) -> str | None:
    """Return why a zipped workbook is too large to be read."""
    try:
        with zipfile.ZipFile(path) as parts:
            unpacked = sum(part.file_size for part in parts.infolist()) >> 20
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError):
        return None  # reading it reports the fault
    return None if unpacked <= MAX_DECODED_MB else f"unpacks to {unpacked:,} MB, at most {MAX_DECODED_MB}"


def active_cells(frame: pd.DataFrame, name: str) -> list[str]:
    """Return a fault for each cell that a spreadsheet or a page might execute, and for each long one."""
    faults, first = [], int(frame.attrs.get("first_row", 2))
    for column in frame:
        if pd.api.types.is_numeric_dtype(frame[column]):
            continue
        texts = frame[column].astype(str)
        faults += [
            f"{name} row {int(row) + first}: {column} is '{texts[row][:40]}', must be a plain name"
            for row in texts.index[texts.str.contains(ACTIVE)]
        ]
        faults += [
            f"{name} row {int(row) + first}: {column} has {len(texts[row]):,} letters, "
            f"at most {MAX_LETTERS:,}"
            for row in texts.index[texts.str.len() > MAX_LETTERS]
        ]
    return shorten_faults(faults, name, "cells with formulas or markup")


# --- faults at their cells ----------------------------------------------------------------

FAULT: Final = re.compile(r"^(?P<file>[\w.-]+) row (?P<row>\d+): (?P<column>\w+) ")


def faulty_rows(faults: Sequence[str], files: Sequence[UploadedFile]) -> dict[str, pd.DataFrame]:
    """Return the rows of uploaded CSV files that faults name, with a column `fault`, by table."""
    found: dict[str, pd.DataFrame] = {}
    for file in files:
        rows: dict[int, list[str]] = {}
        for fault in faults:
            match = FAULT.match(fault)
            if match and Path(match["file"]).stem == file.table:
                rows.setdefault(int(match["row"]), []).append(fault.partition(": ")[2])
        if not rows or not file.name.lower().endswith((".csv", ".tsv", ".txt")):
            continue
        lines = _lines(file.content)
        header = lines[0] if lines else []
        table = [
            {"row": row, **dict(zip(header, lines[row - 1], strict=False)), "fault": "; ".join(texts)}
            for row, texts in sorted(rows.items())
            if row <= len(lines)
        ]
        if table:
            found[file.table] = pd.DataFrame(table)
    return found


def _lines(content: bytes) -> list[list[str]]:
    """Return the fields of the lines of a CSV file, up to the first line that is none."""
    lines = []
    with suppress(csv.Error):
        text = content.decode("utf-8-sig", errors="replace")
        header = text.partition("\n")[0]
        delimiter = max(",;\t|", key=header.count)
        for line in csv.reader(io.StringIO(text), delimiter=delimiter):
            lines.append(line)  # noqa: PERF402 - keeps those before a fault
    return lines
