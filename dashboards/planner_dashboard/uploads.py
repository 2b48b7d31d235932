"""Tables from a user's disk: taken by what they hold, never by what they are called.

A file is given to the table of the system that it fits, under a name of ours, in a folder of the
session. Nothing in it is executed, and what a spreadsheet or a page might run is refused.
"""

from __future__ import annotations

import csv
import hashlib
import io
import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pandas as pd

from planner.catalogue import find_system
from planner.errors import InputError, did_you_mean
from planner.system import System
from planner.table_files import read_table
from planner.tables import few

MOST_MB: Final = 50
SUFFIXES: Final = (".csv", ".parquet")
MOST_COLUMNS: Final = 200
MOST_ROWS: Final = 10_000_000
"""Of a Parquet file, whose rows may take no place at all."""
MOST_DECODED_MB: Final = 256
LONGEST: Final = 1_000
"""Letters of a name."""
ACTIVE: Final = re.compile(r"^\s*[=+@\t＝＋－＠]|^\s*-(?!\d+(?:\.\d+)?$)|<\s*[A-Za-z!/]")
"""A cell that a spreadsheet would compute, or a page would take for its own text."""


@dataclass(frozen=True, kw_only=True)
class Sent:
    """A file as a browser sent it, and the table that its sender says it is."""

    name: str
    table: str
    content: bytes

    @property
    def shown(self) -> str:
        """Its name as faults tell it: without the folders that a name may pretend."""
        return Path(self.name.replace("\\", "/")).name[:60]


def keep(system_name: str, given: Sequence[Sent], home: Path) -> tuple[Path, str]:
    """Validate uploaded files as tables of a system and keep them; returns their folder and digest.

    raises  InputError with every fault; then nothing is kept
    """
    system = find_system(system_name)
    faults: list[str] = []
    if len({sent.table for sent in given}) != len(given):
        faults.append("two files are given for the same table")
    mark = hashlib.sha256(system.name.encode())
    for sent in sorted(given, key=lambda sent: sent.table):
        mark.update(sent.table.encode() + b"\0" + sent.content)
    digest = mark.hexdigest()[:16]
    folder, partial = home / digest, home / f".{digest}.partial"
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    try:
        for sent in given:
            faults += _one(system, sent, partial)
        if faults:
            raise InputError(*faults)
        shutil.rmtree(folder, ignore_errors=True)
        partial.rename(folder)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return folder, digest


def guess(system: System, file_name: str) -> str | None:
    """The table that a file is by its name, if it is one's."""
    stem = Path(file_name.replace("\\", "/")).stem.lower()
    return next((table.name for table in system.tables if table.name == stem), None)


def _one(system: System, sent: Sent, folder: Path) -> list[str]:
    """Keep one file; its faults."""
    tables = {table.name: table for table in system.tables}
    if sent.table not in tables:
        return [f"{sent.shown}: which table is it?" + did_you_mean(sent.table, tables)]
    suffix = Path(sent.shown).suffix.lower()
    if suffix not in SUFFIXES:
        return [f"{sent.shown}: must end in {' or '.join(SUFFIXES)}"]
    if len(sent.content) > MOST_MB << 20:
        return [f"{sent.shown}: has {len(sent.content) >> 20} MB, at most {MOST_MB} can be uploaded"]
    path = folder / f"{sent.table}{suffix}"
    path.write_bytes(sent.content)
    if fault := _too_large(path):
        return [f"{path.name}: {fault}"]
    try:
        frame = read_table(tables[sent.table], path)
    except InputError as error:
        return [fault.replace(f"{folder}/", "") for fault in error.faults]
    return _active(frame, path.name)


def _too_large(path: Path) -> str | None:
    """Why a file is not read at all, though it is small: what it holds may be large."""
    if path.suffix == ".csv":
        with path.open("rb") as file:
            columns = file.readline(1 << 20).count(b",") + 1
        return None if columns <= MOST_COLUMNS else f"has over {MOST_COLUMNS} columns"
    from pyarrow import ArrowException, parquet

    try:
        held = parquet.read_metadata(path)
    except (ArrowException, OSError, ValueError):
        return None  # what is wrong with it is said where it is read
    if held.num_columns > MOST_COLUMNS:
        return f"has {held.num_columns:,} columns, at most {MOST_COLUMNS} can be uploaded"
    if held.num_rows > MOST_ROWS:
        return f"has {held.num_rows:,} rows, at most {MOST_ROWS:,} can be uploaded"
    decoded = sum(held.row_group(place).total_byte_size for place in range(held.num_row_groups)) >> 20
    return None if decoded <= MOST_DECODED_MB else f"unpacks to {decoded:,} MB, at most {MOST_DECODED_MB}"


def _active(frame: pd.DataFrame, name: str) -> list[str]:
    """A fault for each cell that might do something where it is shown."""
    faults = []
    for column in frame:
        if pd.api.types.is_numeric_dtype(frame[column]):
            continue
        texts = frame[column].astype(str)
        faults += [
            f"{name} row {int(row) + 2}: {column} is '{texts[row][:40]}', must be a plain name"
            for row in texts.index[texts.str.contains(ACTIVE)]
        ]
        faults += [
            f"{name} row {int(row) + 2}: {column} has {len(texts[row]):,} letters, at most {LONGEST:,}"
            for row in texts.index[texts.str.len() > LONGEST]
        ]
    return few(faults, name, "cells with formulas or markup")


# --- faults, at the cell ------------------------------------------------------------------

FAULT: Final = re.compile(r"^(?P<file>[\w.-]+) row (?P<row>\d+): (?P<column>\w+) ")


def marked(faults: Sequence[str], given: Sequence[Sent]) -> dict[str, pd.DataFrame]:
    """The rows of uploaded CSV files that faults speak of, with a column `fault`, by table."""
    found: dict[str, pd.DataFrame] = {}
    for sent in given:
        rows: dict[int, list[str]] = {}
        for fault in faults:
            match = FAULT.match(fault)
            if match and Path(match["file"]).stem == sent.table:
                rows.setdefault(int(match["row"]), []).append(fault.partition(": ")[2])
        if not rows or not sent.name.lower().endswith(".csv"):
            continue
        lines = list(csv.reader(io.StringIO(sent.content.decode("utf-8-sig", errors="replace"))))
        heads = lines[0] if lines else []
        table = [
            {"row": row, **dict(zip(heads, lines[row - 1], strict=False)), "fault": "; ".join(said)}
            for row, said in sorted(rows.items())
            if row <= len(lines)
        ]
        if table:
            found[sent.table] = pd.DataFrame(table)
    return found
