"""The SQLite file of a store: opened, brought up to date, and its failures in one clear line.

Tables (schema 1): `runs`, a row each; `metrics` and `settings`, a row for each figure of a run and each
key that it was asked with (`problem.scale`, `parameters.paths`, `sees.age_s`, `solver.gap`), both kept
by name and then by run, so that a chart reads the figures it needs next to each other; `names` of
those; `messages`, what is broken, why there is no plan, what failed; `requests`, a run's whole request
as JSON; `problems`, the digest of each problem that was asked for.
"""

from __future__ import annotations

import contextlib
import errno
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from planner.errors import InputError, PlannerError, did_you_mean

FILE: Final = "runs.sqlite"
APPLICATION_ID: Final = 0x706C616E  # how SQLite's own tools tell a store from another database
PATIENCE_S: Final = 60.0  # most seconds to wait for another sweep that is writing
MANY: Final = 500  # keys in one statement

SCHEMA: Final = (
    """
    CREATE TABLE runs (
        id INTEGER PRIMARY KEY,
        digest TEXT NOT NULL UNIQUE,
        scenario TEXT NOT NULL,
        label TEXT NOT NULL,
        system TEXT NOT NULL,
        design TEXT NOT NULL,
        mechanism TEXT NOT NULL,
        problem TEXT,
        size TEXT,
        status TEXT NOT NULL,
        exit_code INTEGER NOT NULL,
        objective REAL,
        objective_metric TEXT,
        bound REAL,
        bound_within TEXT,
        gap REAL,
        omniscient TEXT,
        violations INTEGER,
        seconds REAL,
        wall_s REAL,
        backend TEXT,
        versions TEXT NOT NULL,
        machine TEXT NOT NULL,
        finished TEXT NOT NULL,
        plan TEXT,
        message TEXT
    );
    CREATE INDEX runs_by_design ON runs (system, design, status);
    CREATE TABLE names (id INTEGER PRIMARY KEY, kind TEXT NOT NULL, name TEXT NOT NULL, UNIQUE (kind, name));
    CREATE TABLE metrics (
        name INTEGER NOT NULL, run INTEGER NOT NULL, value REAL, PRIMARY KEY (name, run)
    ) WITHOUT ROWID;
    CREATE TABLE settings (
        name INTEGER NOT NULL, run INTEGER NOT NULL, value, PRIMARY KEY (name, run)
    ) WITHOUT ROWID;
    CREATE TABLE messages (
        run INTEGER NOT NULL, position INTEGER NOT NULL, kind TEXT NOT NULL, text TEXT NOT NULL,
        PRIMARY KEY (run, position)
    ) WITHOUT ROWID;
    CREATE TABLE requests (run INTEGER PRIMARY KEY, document TEXT NOT NULL);
    CREATE TABLE problems (request TEXT PRIMARY KEY, problem TEXT NOT NULL) WITHOUT ROWID;
    """,
)
"""What takes a store from each version of the schema to the next; a version is how many were applied."""


class StoreFailure(PlannerError):
    """A store cannot be read or written now, although it is one."""


class Database:
    """One SQLite file, and the one connection to it.

    path    the store's folder, or the file itself
    write   make it where it is not there, and bring its schema up to date

    raises  InputError for what is no store, a store of a newer version, or one that may not be
            written; StoreFailure where the disk or another process is in the way
    """

    def __init__(self, path: str | Path, *, write: bool) -> None:
        given = Path(path)
        self.file = given if given.is_file() else given / FILE
        self.folder = self.file.parent
        self.name = str(given)
        self._require_store(given, write)
        self._connection: sqlite3.Connection
        self._open(write)

    def close(self) -> None:
        """Close the connection; what was written stays."""
        self._connection.close()

    def run(self, statement: str, values: Sequence[Any] = ()) -> sqlite3.Cursor:
        """Run one statement, to be called where failures are explained already."""
        return self._connection.execute(statement, values)

    def run_many(self, statement: str, rows: Iterable[Sequence[Any]]) -> None:
        """Run one statement for each row of values."""
        self._connection.executemany(statement, rows)

    def rows(self, statement: str, values: Sequence[Any] = ()) -> list[Any]:
        """All rows that a statement gives."""
        with self.explained():
            return self._connection.execute(statement, values).fetchall()

    def rows_of(self, statement: str, keys: Iterable[str]) -> list[Any]:
        """All rows that a statement gives for the keys, which take the place of its `{}`."""
        unique = list(dict.fromkeys(keys))
        rows: list[Any] = []
        for start in range(0, len(unique), MANY):
            part = unique[start : start + MANY]
            rows += self.rows(statement.format(", ".join("?" * len(part))), part)
        return rows

    @contextlib.contextmanager
    def transaction(self) -> Iterator[None]:
        """What is run within it is written as a whole or, where it fails, not at all."""
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            with contextlib.suppress(sqlite3.Error):  # a full disk has rolled back already
                self._connection.execute("ROLLBACK")
            raise
        self._connection.execute("COMMIT")

    def _require_store(self, given: Path, write: bool) -> None:
        if given.is_file():
            with given.open("rb") as file:
                head = file.read(16)
            if head and head != b"SQLite format 3\0":
                raise InputError(f"{given}: is no store: it is no SQLite database")
        elif not self.file.exists() and not write:
            if not given.exists():
                near = [str(other) for other in given.parent.glob("*") if (other / FILE).is_file()]
                hint = did_you_mean(str(given), near)
                raise InputError(f"{given}: no such store" + (hint if "'" in hint else ""))
            raise InputError(f"{given}: is no store: it has no {FILE}")
        elif self.file.is_dir():
            raise InputError(f"{self.file}: is a folder, must be the file of a store")

    def _open(self, write: bool) -> None:
        with self.explained():
            if write:
                self.folder.mkdir(parents=True, exist_ok=True)
                self._connection = self._connected("rwc")
            else:
                self._connection = self._reader()
            try:
                self._require_schema(write)
            except BaseException:
                self._connection.close()
                raise

    def _connected(self, mode: str) -> sqlite3.Connection:
        # written from one thread; a dashboard may read from another than the one that opened it
        connection = sqlite3.connect(
            f"file:{quote(str(self.file.absolute()))}?mode={mode}",
            uri=True,
            timeout=PATIENCE_S,
            isolation_level=None,
            check_same_thread=mode == "rwc",
        )
        if mode == "rwc":
            # safe against whatever happens to processes; a power cut may cost the last commits
            connection.execute("PRAGMA synchronous = NORMAL")
        else:
            connection.execute("PRAGMA mmap_size = 17179869184")
        connection.execute("PRAGMA temp_store = MEMORY")
        connection.execute("PRAGMA cache_size = -65536")  # KiB
        return connection

    def _reader(self) -> sqlite3.Connection:
        try:
            connection = self._connected("ro")
            try:
                connection.execute("SELECT count(*) FROM sqlite_master")
            except BaseException:
                connection.close()
                raise
        except sqlite3.OperationalError as error:
            log = self.file.with_name(f"{self.file.name}-wal")
            settled = not log.exists() or log.stat().st_size == 0
            unwritable = (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY)
            if error.sqlite_errorcode & 0xFF not in unwritable or not settled:
                raise
            # on a medium that may not be written nobody writes, and no files beside it are needed
            return self._connected("ro&immutable=1")
        return connection

    def _require_schema(self, write: bool) -> None:
        run = self._connection.execute
        identity = run("PRAGMA application_id").fetchone()[0]
        version = run("PRAGMA user_version").fetchone()[0]
        empty = not run("SELECT count(*) FROM sqlite_master").fetchone()[0]
        if identity != APPLICATION_ID and not empty:
            raise InputError(f"{self.name}: is no store: {self.file.name} is another program's database")
        if version > len(SCHEMA):
            raise InputError(
                f"{self.name}: was written by a newer planner (schema {version}, this one knows "
                f"{len(SCHEMA)}): update planner, or name another store"
            )
        if version == len(SCHEMA):
            if write:  # a store that may not be written says so now, not after the first run
                run("BEGIN IMMEDIATE")
                run("ROLLBACK")
            return
        if write:
            self._migrate()
        elif empty:
            raise InputError(f"{self.name}: is an empty store: nothing has been kept in it yet")
        else:
            self._connection.close()
            Database(self.file, write=True).close()
            self._connection = self._connected("ro")

    def _migrate(self) -> None:
        run = self._connection.execute
        run("PRAGMA journal_mode = WAL")
        with self.transaction():  # another sweep may be doing the same
            version = run("PRAGMA user_version").fetchone()[0]
            for script in SCHEMA[version:]:
                for statement in script.split(";"):
                    if statement.strip():
                        run(statement)
            run(f"PRAGMA application_id = {APPLICATION_ID}")
            run(f"PRAGMA user_version = {len(SCHEMA)}")

    @contextlib.contextmanager
    def explained(self) -> Iterator[None]:
        """Failures of the disk and of SQLite in one clear line."""
        try:
            yield
        except sqlite3.Error as error:
            raise self._failure(error) from error
        except OSError as error:
            raise self._refused(error) from error

    def _failure(self, error: sqlite3.Error) -> PlannerError:
        code = getattr(error, "sqlite_errorcode", 0)
        kind, text = code & 0xFF, " ".join(str(error).split())
        if kind in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT):
            return InputError(f"{self.name}: is no store, or a damaged one: {text}")
        if kind == sqlite3.SQLITE_FULL or code == sqlite3.SQLITE_IOERR_WRITE:
            return self._no_room()
        if kind in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM):
            return InputError(f"{self.name}: may not be written ({text})")
        if kind == sqlite3.SQLITE_CANTOPEN:
            return InputError(f"{self.name}: may not be read, or not be written ({text})")
        if kind in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            return StoreFailure(
                f"{self.name}: another process has kept it for over {PATIENCE_S:.0f} s; try again"
            )
        if kind == sqlite3.SQLITE_ERROR and ("too large" in text or "too many" in text):
            return InputError(f"--where: is too long ({text})")
        return StoreFailure(f"{self.name}: {text}")

    def _refused(self, error: OSError) -> PlannerError:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            return self._no_room()
        where = error.filename or self.name
        return InputError(f"{self.name}: {where} cannot be written ({error.strerror or error})")

    def _no_room(self) -> PlannerError:
        return StoreFailure(
            f"{self.name}: the disk is full, or a limit on the size of files is reached; every run kept "
            "before is there: make room, and run the same command again"
        )
