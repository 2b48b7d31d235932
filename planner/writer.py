"""Records of runs as rows of the store's tables."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from planner.database import Database
from planner.names import Names
from planner.record import COLUMNS, Record

KEEP: Final = (
    f"INSERT INTO runs ({', '.join(COLUMNS)}) VALUES ({', '.join('?' * len(COLUMNS))}) "
    "ON CONFLICT (digest) DO UPDATE SET "
    + ", ".join(f"{name} = excluded.{name}" for name in COLUMNS if name != "digest")
    + " WHERE runs.status = 'failed' RETURNING id"
)


class Writer:
    """Writes records; failures are SQLite's own."""

    def __init__(self, database: Database, names: Names) -> None:
        self._database, self._names = database, names

    def write(self, records: Sequence[Record]) -> None:
        """All of the records or, where it fails, none; one that is done already stays as it is."""
        try:
            with self._database.transaction():
                for record in records:
                    self._write(record)
        except BaseException:
            self._names.forget()
            raise

    def _write(self, record: Record) -> None:
        run = self._database.run
        if record.status != "failed" and record.former:
            self._forget(record.former)
        row = run(KEEP, [_plain(getattr(record, name)) for name in COLUMNS]).fetchone()
        if record.asked is not None and record.problem is not None:
            run("INSERT OR REPLACE INTO problems VALUES (?, ?)", (record.asked, record.problem))
        if row is None:  # done already, by another sweep
            return
        many, number = self._database.run_many, row[0]
        for table, kind, figures in (
            ("metrics", "metric", record.metrics),
            ("settings", "setting", record.settings),
        ):
            rows = [
                (self._names.number(kind, name), number, _plain(value))
                for name, value in figures.items()
                if value is not None
            ]
            many(f"INSERT OR REPLACE INTO {table} VALUES (?, ?, ?)", rows)
        run("DELETE FROM messages WHERE run = ?", (number,))
        many(
            "INSERT INTO messages VALUES (?, ?, ?, ?)",
            [(number, position, *message) for position, message in enumerate(record.messages)],
        )
        run("INSERT OR REPLACE INTO requests VALUES (?, ?)", (number, record.request))

    def _forget(self, former: Sequence[str]) -> None:
        """Remove runs that failed under names that are no longer theirs."""
        run = self._database.run
        marks = ", ".join("?" * len(former))
        failed = f"SELECT id FROM runs WHERE status = 'failed' AND digest IN ({marks})"
        for (number,) in run(failed, former).fetchall():
            for table in ("metrics", "settings"):  # by name first, as their keys are
                run(f"DELETE FROM {table} WHERE name IN (SELECT id FROM names) AND run = ?", (number,))
            for table, key in (("messages", "run"), ("requests", "run"), ("runs", "id")):
                run(f"DELETE FROM {table} WHERE {key} = ?", (number,))


def _plain(value: Any) -> Any:
    """What SQLite can hold."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None or isinstance(value, str | float):
        return value
    if isinstance(value, int):
        return value if abs(value) < 2**63 else str(value)
    if isinstance(value, np.generic):
        return _plain(value.item())
    return json.dumps(value, ensure_ascii=False, default=str)
