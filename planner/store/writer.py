"""Writes records of runs to the tables of a store."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from planner.store.columns_index import ColumnIndex
from planner.store.database import Database
from planner.store.record import COLUMNS, Record

UPSERT: Final = (
    f"INSERT INTO runs ({', '.join(COLUMNS)}) VALUES ({', '.join('?' * len(COLUMNS))}) "
    "ON CONFLICT (digest) DO UPDATE SET "
    + ", ".join(f"{name} = excluded.{name}" for name in COLUMNS if name != "digest")
    + " WHERE runs.status = 'failed' RETURNING id"
)


class Writer:
    """Writer of records; failures are those of SQLite."""

    def __init__(self, database: Database, columns: ColumnIndex) -> None:
        self._database, self._columns = database, columns

    def write(self, records: Sequence[Record]) -> None:
        """Write all records or, where it fails, none; a run that is done already stays as it is."""
        try:
            with self._database.transaction():
                for record in records:
                    self._write_record(record)
        except BaseException:
            self._columns.clear_numbers()
            raise

    def _write_record(self, record: Record) -> None:
        execute = self._database.execute
        if record.status != "failed" and record.earlier_digests:
            self._remove_failed(record.earlier_digests)
        row = execute(UPSERT, [_to_sqlite(getattr(record, name)) for name in COLUMNS]).fetchone()
        if record.problem_key is not None and record.problem is not None:
            execute("INSERT OR REPLACE INTO problems VALUES (?, ?)", (record.problem_key, record.problem))
        if row is None:  # another sweep has done it
            return
        run = row[0]
        for table, kind, figures in (
            ("metrics", "metric", record.metrics),
            ("settings", "setting", record.settings),
        ):
            rows = [
                (self._columns.number_of(kind, name), run, _to_sqlite(value))
                for name, value in figures.items()
                if value is not None
            ]
            self._database.execute_many(f"INSERT OR REPLACE INTO {table} VALUES (?, ?, ?)", rows)
        execute("DELETE FROM messages WHERE run = ?", (run,))
        self._database.execute_many(
            "INSERT INTO messages VALUES (?, ?, ?, ?)",
            [(run, position, *message) for position, message in enumerate(record.messages)],
        )
        execute("INSERT OR REPLACE INTO requests VALUES (?, ?)", (run, record.request))

    def _remove_failed(self, digests: Sequence[str]) -> None:
        """Remove the failed runs of digests that have been replaced."""
        execute = self._database.execute
        marks = ", ".join("?" * len(digests))
        failed = f"SELECT id FROM runs WHERE status = 'failed' AND digest IN ({marks})"
        for (number,) in execute(failed, digests).fetchall():
            for table in ("metrics", "settings"):  # by name first, as in their keys
                execute(f"DELETE FROM {table} WHERE name IN (SELECT id FROM names) AND run = ?", (number,))
            for table, key in (("messages", "run"), ("requests", "run"), ("runs", "id")):
                execute(f"DELETE FROM {table} WHERE {key} = ?", (number,))


def _to_sqlite(value: Any) -> Any:
    """Return a value as a type that SQLite stores."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None or isinstance(value, str | float):
        return value
    if isinstance(value, int):
        return value if abs(value) < 2**63 else str(value)
    if isinstance(value, np.generic):
        return _to_sqlite(value.item())
    return json.dumps(value, ensure_ascii=False, default=str)
