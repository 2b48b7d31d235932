"""SQLite file of a store: opening, migration, and failures as one clear line.

Tables (schema 3): `runs`, a row each; `metrics` and `settings`, a row for each metric and each setting of a
run (`problem.scale`, `parameters.paths`, `information.age_s`, `solver.gap`), both ordered by name and then by
run, so that the values of a chart lie next to each other; `names` of those; `messages`, constraint
violations, reasons for no plan, failures; `requests`, a run's whole request as JSON; `problems`, the digest
of the tables for each problem key.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import sqlite3
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from planner.errors import InputError, PlannerError, did_you_mean
from planner.io.input_files import STORE_FILE

APPLICATION_ID: Final = 0x706C616E  # by which SQLite's tools tell a store from another database
LOCK_LIMIT_S: Final = 60.0  # longest wait for another sweep that is writing
QUERY_LIMIT_S: Final = 60.0  # longest time of one query
QUERY_STEPS: Final = 100_000  # instructions of SQLite between two looks at the clock
OWN_ENDINGS: Final = ("", "-wal", "-shm", "-journal")  # of the names of a store's files
MAX_KEYS: Final = 500  # keys in one statement

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
    # names that planner 0.2 changed: see "Renamed" in CHANGELOG.md
    """
    ALTER TABLE runs RENAME COLUMN bound_within TO bound_scope;
    UPDATE names SET name = 'information.' || substr(name, 6) WHERE name LIKE 'sees.%';
    UPDATE names SET name = 'information.granularity_km' WHERE name = 'information.grain_km';
    UPDATE names SET name = 'information.granularity_groups' WHERE name = 'information.grain_groups';
    UPDATE names SET name = 'information.granularity_bytes' WHERE name = 'information.grain_bytes';
    UPDATE names SET name = 'information.granularity' WHERE name = 'information.grain';
    UPDATE names SET name = 'signalling_bytes' WHERE name = 'exchanged_bytes';
    """,
    # how a search ended is kept apart from whether constraints are met, and compiling from deciding
    """
    ALTER TABLE runs ADD COLUMN constraints TEXT;
    ALTER TABLE runs ADD COLUMN compile_s REAL;
    UPDATE runs SET constraints = CASE violations WHEN 0 THEN 'met' ELSE 'violated' END
        WHERE violations IS NOT NULL;
    UPDATE runs SET status = CASE WHEN bound IS NULL THEN 'heuristic' ELSE 'not proven' END
        WHERE status = 'feasible';
    UPDATE runs SET status = CASE WHEN bound IS NULL THEN 'no plan found' ELSE 'bound only' END
        WHERE status = 'undecided';
    """,
)
"""Migrations from each version of the schema to the next; the version is the number applied."""


class StoreFailure(PlannerError):
    """A store that cannot be read or written now."""


class Database:
    """One SQLite file, and the one connection to it.

    path    the store's folder, or the file itself
    write   create it if it does not exist, and migrate its schema

    raises  InputError for what is no store, a store of a newer version, or one that may not be
            written; StoreFailure where the disk or another process is in the way
    """

    def __init__(self, path: str | Path, *, write: bool) -> None:
        store_path = Path(path)
        self.file = store_path if store_path.is_file() else store_path / STORE_FILE
        self.folder = self.file.parent
        self.name = str(store_path)
        self._require_store(store_path, write)
        self._connection: sqlite3.Connection
        self._open(write)

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def execute(self, statement: str, values: Sequence[Any] = ()) -> sqlite3.Cursor:
        """Execute one statement, inside `explain_failures`."""
        return self._connection.execute(statement, values)

    def execute_many(self, statement: str, rows: Iterable[Sequence[Any]]) -> None:
        """Execute one statement for each row of values."""
        self._connection.executemany(statement, rows)

    def fetch(self, statement: str, values: Sequence[Any] = ()) -> list[Any]:
        """Return all rows of a statement."""
        with self.explain_failures(), self._limit_time():
            return self._connection.execute(statement, values).fetchall()

    @contextlib.contextmanager
    def _limit_time(self) -> Iterator[None]:
        """Interrupt the queries of this block after QUERY_LIMIT_S: a crafted store may have endless ones."""
        until = time.monotonic() + QUERY_LIMIT_S
        self._connection.set_progress_handler(lambda: time.monotonic() > until, QUERY_STEPS)
        try:
            yield
        finally:
            self._connection.set_progress_handler(None, QUERY_STEPS)

    def fetch_by_keys(self, statement: str, keys: Iterable[str]) -> list[Any]:
        """Return all rows of a statement for the keys, which replace its `{}`."""
        unique = list(dict.fromkeys(keys))
        rows: list[Any] = []
        for start in range(0, len(unique), MAX_KEYS):
            chunk = unique[start : start + MAX_KEYS]
            rows += self.fetch(statement.format(", ".join("?" * len(chunk))), chunk)
        return rows

    @contextlib.contextmanager
    def transaction(self) -> Iterator[None]:
        """Commit everything that is executed in this block or, where it fails, nothing."""
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            with contextlib.suppress(sqlite3.Error):  # with a full disk SQLite has rolled back
                self._connection.execute("ROLLBACK")
            raise
        self._connection.execute("COMMIT")

    def _require_store(self, store_path: Path, write: bool) -> None:
        for path in (store_path, *(self.file.with_name(f"{self.file.name}{end}") for end in OWN_ENDINGS)):
            if path.exists() and not path.is_file() and not path.is_dir():
                raise InputError(f"{path}: is no store: it is a device or a pipe")
        if store_path.is_file():
            with store_path.open("rb") as file:
                head = file.read(16)
            if head and head != b"SQLite format 3\0":
                raise InputError(f"{store_path}: is no store: it is no SQLite database")
        elif not self.file.exists() and not write:
            raise _absent_store(store_path)
        elif self.file.is_dir():
            raise InputError(f"{self.file}: is a folder, must be the file of a store")

    def _open(self, write: bool) -> None:
        with self.explain_failures():
            if write:
                self.folder.mkdir(parents=True, exist_ok=True)
                self._connection = self._connect("rwc")
            else:
                self._connection = self._connect_read_only()
            try:
                self._check_schema(write)
            except BaseException:
                self._connection.close()
                raise

    def _connect(self, mode: str) -> sqlite3.Connection:
        # writers use one thread; a dashboard may read in another than the one that opened it
        connection = sqlite3.connect(
            f"file:{quote(str(self.file.absolute()))}?mode={mode}",
            uri=True,
            timeout=LOCK_LIMIT_S,
            isolation_level=None,
            check_same_thread=mode == "rwc",
        )
        if mode == "rwc":
            # safe whatever happens to processes; a power cut may lose the last commits
            connection.execute("PRAGMA synchronous = NORMAL")
        else:
            connection.execute("PRAGMA mmap_size = 17179869184")
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.execute("PRAGMA temp_store = MEMORY")
        connection.execute("PRAGMA cache_size = -65536")  # KiB
        return connection

    def _connect_read_only(self) -> sqlite3.Connection:
        try:
            connection = self._connect("ro")
            try:
                connection.execute("SELECT count(*) FROM sqlite_master")
            except BaseException:
                connection.close()
                raise
        except sqlite3.OperationalError as error:
            log = self.file.with_name(f"{self.file.name}-wal")
            is_log_empty = not log.exists() or log.stat().st_size == 0
            unwritable = (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY)
            if error.sqlite_errorcode & 0xFF not in unwritable or not is_log_empty:
                raise
            # nobody writes to a read-only medium, so no files beside the database are needed
            return self._connect("ro&immutable=1")
        return connection

    def _check_schema(self, write: bool) -> None:
        run = self._connection.execute
        with self._limit_time():
            run("BEGIN")  # one state of the file: another process may be migrating it
            try:
                identity = run("PRAGMA application_id").fetchone()[0]
                version = run("PRAGMA user_version").fetchone()[0]
                schema = _describe_schema(self._connection)
                empty = not run("SELECT count(*) FROM sqlite_master").fetchone()[0]
            finally:
                run("COMMIT")
        if identity != APPLICATION_ID and not empty:
            raise InputError(f"{self.name}: is no store: {self.file.name} is another program's database")
        if version > len(SCHEMA):
            raise InputError(
                f"{self.name}: was written by a newer planner (schema {version}, this one knows "
                f"{len(SCHEMA)}): update planner, or name another store"
            )
        if not empty:
            self._require_schema(schema, version)
        if version == len(SCHEMA):
            if write:  # fails now, not after the first run, where the store may not be written
                run("BEGIN IMMEDIATE")
                run("ROLLBACK")
            return
        if write:
            self._migrate()
        elif empty:
            raise InputError(f"{self.name}: is an empty store: it has no runs yet")
        else:
            self._connection.close()
            Database(self.file, write=True).close()
            self._connection = self._connect("ro")

    def _require_schema(self, schema: dict[str, Description], version: int) -> None:
        """Refuse views, triggers, virtual tables and whatever else a store has not."""
        expected = schema_of_version(version)
        strange = sorted(name for name in schema if schema[name] != expected.get(name))
        missing = sorted(expected.keys() - schema.keys())
        if strange or missing:
            words = (
                f"has a strange {schema[strange[0]][0]} '{strange[0]}'" if strange else f"lacks {missing[0]}"
            )
            raise InputError(
                f"{self.name}: is no store: its database {words}; nothing of it is read. "
                f"planner runs {self.name} --salvage saves the tables of runs"
            )

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
    def explain_failures(self) -> Iterator[None]:
        """Translate failures of the disk and of SQLite to errors of one clear line."""
        try:
            yield
        except sqlite3.Error as error:
            raise self._translate_sqlite_error(error) from error
        except UnicodeDecodeError as error:  # a damaged schema: SQLite's own message about it is no text
            raise self._damaged("its text is not UTF-8") from error
        except OSError as error:
            raise self._translate_os_error(error) from error

    def _damaged(self, why: str) -> InputError:
        return InputError(
            f"{self.name}: is no store, or a damaged one ({why}); planner runs {self.name} --salvage "
            "saves what can be read"
        )

    def _translate_sqlite_error(self, error: sqlite3.Error) -> PlannerError:
        code = getattr(error, "sqlite_errorcode", 0)
        kind, text = code & 0xFF, " ".join(str(error).split())
        if kind in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT):
            return self._damaged(text)
        if kind == sqlite3.SQLITE_FULL or code == sqlite3.SQLITE_IOERR_WRITE:
            return self._disk_full()
        if kind in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM):
            return InputError(f"{self.name}: may not be written ({text})")
        if kind == sqlite3.SQLITE_CANTOPEN:
            return InputError(f"{self.name}: may not be read, or not be written ({text})")
        if kind == sqlite3.SQLITE_INTERRUPT:
            return StoreFailure(f"{self.name}: a query took over {QUERY_LIMIT_S:.0f} s; use a filter")
        if kind in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            return StoreFailure(
                f"{self.name}: another process has locked it for over {LOCK_LIMIT_S:.0f} s; try again"
            )
        if kind == sqlite3.SQLITE_ERROR and ("too large" in text or "too many" in text):
            return InputError(f"--where: is too long ({text})")
        return StoreFailure(f"{self.name}: {text}")

    def _translate_os_error(self, error: OSError) -> PlannerError:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            return self._disk_full()
        where = error.filename or self.name
        return InputError(f"{self.name}: {where} cannot be written ({error.strerror or error})")

    def _disk_full(self) -> PlannerError:
        return StoreFailure(
            f"{self.name}: the disk is full, or a limit on the size of files is reached; every run "
            "stored before is kept: free some space, and run the same command again"
        )


Description = tuple[str, tuple[Any, ...]]
"""What kind of thing a database has under a name, and its columns."""


@functools.cache
def schema_of_version(version: int) -> dict[str, Description]:
    """Return the schema of a store of some version by the names in it."""
    with contextlib.closing(sqlite3.connect(":memory:")) as connection:
        for script in SCHEMA[:version]:
            connection.executescript(script)
        return _describe_schema(connection)


def _describe_schema(connection: sqlite3.Connection) -> dict[str, Description]:
    """Return the schema of a database, by name, without statistics of SQLite's own."""
    described: dict[str, Description] = {}
    for kind, name, pages in connection.execute("SELECT type, name, rootpage FROM sqlite_master"):
        if str(name).startswith("sqlite_"):
            continue
        is_plain = kind in ("table", "index") and pages  # a virtual table has no page
        columns = "SELECT name, hidden FROM pragma_table_xinfo(?)"
        described[str(name)] = (
            str(kind) if is_plain or kind != "table" else "virtual table",
            tuple(connection.execute(columns, (name,))) if is_plain and kind == "table" else (),
        )
    return described


def _absent_store(path: Path) -> InputError:
    """Return the error of a folder that has no store, or does not exist."""
    if path.exists():
        return InputError(f"{path}: is no store: it has no {STORE_FILE}")
    near = [str(other) for other in path.parent.glob("*") if (other / STORE_FILE).is_file()]
    hint = did_you_mean(str(path), near)
    return InputError(f"{path}: no such store" + (hint if "'" in hint else ""))
