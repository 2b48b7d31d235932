"""Salvage of a damaged store: every row that can still be read, into a new file beside the old one."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from planner.errors import InputError
from planner.io.input_files import STORE_FILE, STORED_PLANS
from planner.store.database import Database
from planner.store.plan_folders import find_damage

PAGE_BYTES: Final = 4096
COUNT_AT: Final = 28
"""Place of the number of pages in the header; the free pages follow."""
MAX_RUNS: Final = 1 << 30
MAX_FAILURES: Final = 20_000
"""Attempts to read a table with a damaged root, of which nothing can be read."""
ROW_TABLES: Final = {"runs": "id", "names": "id", "requests": "run"}
DAMAGE: Final = (sqlite3.Error, UnicodeDecodeError)
"""Errors of damaged pages; SQLite's message about a damaged schema may be no text."""
PAIR_TABLES: Final = {"metrics": "name", "settings": "name"}


@dataclass(frozen=True, kw_only=True)
class Salvage:
    """The runs and plans of a salvaged store.

    runs           number of runs in the new file
    damaged_plans  number of these with a plan that is lost or damaged; a sweep makes them again
    kept           path of the old file
    """

    runs: int
    damaged_plans: int
    kept: Path


def salvage(path: str | Path) -> Salvage:
    """Write the readable content of a store into a new file in its place; the old one gets another name.

    raises  InputError where there is no store, or nothing of it can be read
    """
    store_path = Path(path)
    file = store_path if store_path.is_file() else store_path / STORE_FILE
    if not file.is_file():
        raise InputError(f"{path}: is no store: it has no {STORE_FILE}")
    with tempfile.TemporaryDirectory(dir=file.parent, prefix=".salvage-") as folder:
        made = Database(Path(folder) / "new", write=True)
        try:
            for source in _readable_copies(file, Path(folder)):
                with made.transaction():
                    _copy_rows(source, made)
                source.close()
                if made.fetch("SELECT count(*) FROM runs")[0][0]:
                    break
            count = int(made.fetch("SELECT count(*) FROM runs")[0][0])
            if not count:
                raise InputError(f"{path}: nothing of it can be read; it is kept as it is")
            plans = [row[0] for row in made.fetch("SELECT plan FROM runs WHERE plan IS NOT NULL")]
            made.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        finally:
            made.close()
        copy_path = file.with_name(f"{file.stem}-damaged-{time.strftime('%Y%m%d-%H%M%S')}.sqlite")
        for suffix in ("", "-wal", "-shm"):
            old = file.with_name(file.name + suffix)
            if old.exists():
                old.rename(copy_path.with_name(copy_path.name + suffix))
        made.file.replace(file)
    damaged = sum(find_damage(file.parent / STORED_PLANS / name[:2] / name) is not None for name in plans)
    return Salvage(runs=count, damaged_plans=damaged, kept=copy_path)


def _readable_copies(file: Path, folder: Path) -> Iterator[sqlite3.Connection]:
    """Yield connections to copies of the file: with its log, without it, and with a header of a new store."""
    copy = folder / "old.sqlite"
    for with_log in (True, False):
        shutil.copyfile(file, copy)
        for suffix in ("-wal", "-shm"):
            copy.with_name(copy.name + suffix).unlink(missing_ok=True)
        log = file.with_name(f"{file.name}-wal")
        if with_log and log.exists():
            shutil.copyfile(log, copy.with_name(f"{copy.name}-wal"))
        yield _connect(copy)
    fresh = Database(folder / "fresh", write=True)
    fresh.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    fresh.close()
    content = bytearray(file.read_bytes())
    # a new store has its tables in the same pages; only their number and the free pages differ
    content[:PAGE_BYTES] = fresh.file.read_bytes()[:PAGE_BYTES]
    content[COUNT_AT : COUNT_AT + 4] = (len(content) // PAGE_BYTES).to_bytes(4, "big")
    content[COUNT_AT + 4 : COUNT_AT + 12] = bytes(8)
    for suffix in ("-wal", "-shm"):
        copy.with_name(copy.name + suffix).unlink(missing_ok=True)
    copy.write_bytes(content)
    yield _connect(copy)


def _connect(file: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(file, isolation_level=None)
    connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
    return connection


def _copy_rows(source: sqlite3.Connection, made: Database) -> None:
    for table, key in ROW_TABLES.items():
        _copy_table(source, made, table, key)
        if not made.fetch("SELECT count(*) FROM runs")[0][0]:  # nothing else is of use without them
            return
    names = [row[0] for row in made.fetch("SELECT id FROM names")]
    runs = made.fetch("SELECT coalesce(max(id), 0) FROM runs")[0][0]
    for table, first in PAIR_TABLES.items():
        for name in names:
            _copy_range(source, made, table, f"{first} = {int(name)} AND run", 0, runs)
    _copy_range(source, made, "messages", "run", 0, runs)
    for order in ("ASC", "DESC"):  # up to the damage from both ends
        with contextlib.suppress(*DAMAGE):
            for row in source.execute(f"SELECT * FROM problems ORDER BY request {order}"):
                made.execute("INSERT OR IGNORE INTO problems VALUES (?, ?)", row)


def _copy_table(source: sqlite3.Connection, made: Database, table: str, key: str) -> None:
    last = MAX_RUNS
    with contextlib.suppress(*DAMAGE):
        last = source.execute(f"SELECT max({key}) FROM {table}").fetchone()[0] or 0
    _copy_range(source, made, table, key, 0, last)


def _copy_range(
    source: sqlite3.Connection, made: Database, table: str, key: str, low: int, high: int
) -> None:
    """Copy the rows of a range of keys; halve it where it cannot be read, down to the damaged rows."""
    pending, failures = [(low, high)], 0
    while pending and failures < MAX_FAILURES:
        low, high = pending.pop()
        try:
            cursor = source.execute(f"SELECT * FROM {table} WHERE {key} BETWEEN ? AND ?", (low, high))
            columns, rows = [column[0] for column in cursor.description], cursor.fetchall()
        except DAMAGE:
            failures += 1
            if low < high:
                middle = (low + high) // 2
                pending += [(middle + 1, high), (low, middle)]
            continue
        marks = ", ".join("?" * len(columns))
        with contextlib.suppress(*DAMAGE):  # of columns that this version does not have
            made.execute_many(f"INSERT OR IGNORE INTO {table} ({', '.join(columns)}) VALUES ({marks})", rows)
