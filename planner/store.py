"""Runs that are kept: a folder with one SQLite file, and the plans beside it as Parquet.

    STORE/runs.sqlite                      every run; WAL mode, so that readers never wait for a sweep
    STORE/plans/ab/<digest>/<table>.parquet  a plan by the digest of its tables; equal plans are one

A run is one design on one problem, and its digest is its name: the same system, problem (its
tables, not the way to them), design, parameters, information, solver options and versions give the
same digest, on any machine. A run that is done is never written again; one that failed is, when it
is tried again.

Tables of the file (schema 1): `runs`, a row each; `metrics` and `settings`, a row for each figure of
a run and each key that it was asked with (`problem.scale`, `parameters.paths`, `sees.age_s`,
`solver.gap`), both kept by name and then by run, so that a chart reads the figures it needs next to
each other; `names` of those; `messages`, what is broken, why there is no plan, what failed;
`requests`, a run's whole request as JSON; `problems`, the digest of each problem that was asked for.

A row appears when its plan is in place, in one transaction. Whoever is killed at whatever moment
loses what was not yet written, and breaks nothing.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import shutil
import sqlite3
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Final, Literal
from urllib.parse import quote

import numpy as np
import pandas as pd

from planner.errors import InputError, PlannerError, did_you_mean
from planner.tables import write_table
from planner.where import Column, Condition, parse

FILE: Final = "runs.sqlite"
APPLICATION_ID: Final = 0x706C616E  # how SQLite's own tools tell a store from another database
PATIENCE_S: Final = 60.0  # most seconds to wait for another sweep that is writing
MANY: Final = 500  # digests in one statement
STALE_S: Final = 3600.0  # age of a half-written plan that nobody is writing any more

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


@dataclass(frozen=True, kw_only=True, eq=False)
class Record:
    """One run as it is kept. None for unknown.

    digest       its name
    former       names under which it may have failed before its problem was known
    label        the design's label in the scenario that asked first
    problem      digest of the problem's tables; `asked` is that of the request for it
    size         how large the problem is
    status       as a proof has it, or "failed"
    exit_code    0 with a plan, otherwise what the command line returns for its kind
    bound_within what the bound is limited to, where not to all plans
    omniscient   the design believed the true problem
    violations   how many limits the plan breaks in truth; None without a plan
    seconds      of the decision; `wall_s` of everything: making the problem, checks and measures
    finished     when, in UTC
    plan         digest of the plan's tables, `tables` those as Parquet
    message      why it failed
    settings     what was asked, by dotted key
    messages     what is broken, or why there is no plan: kind and text
    request      all that was asked, as JSON
    """

    digest: str
    scenario: str
    label: str
    system: str
    design: str
    mechanism: str
    problem: str | None = None
    size: Mapping[str, int] | None = None
    status: str
    exit_code: int
    objective: float | None = None
    objective_metric: str | None = None
    bound: float | None = None
    bound_within: str | None = None
    gap: float | None = None
    omniscient: bool | None = None
    violations: int | None = None
    seconds: float | None = None
    wall_s: float | None = None
    backend: str | None = None
    versions: str = ""
    machine: str = ""
    finished: str = ""
    plan: str | None = None
    message: str | None = None
    former: tuple[str, ...] = ()
    asked: str | None = None
    tables: Mapping[str, bytes] = field(default_factory=dict)
    metrics: Mapping[str, float | None] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    messages: Sequence[tuple[str, str]] = ()
    request: str = "{}"


ASIDE: Final = ("former", "asked", "tables", "metrics", "settings", "messages", "request")
COLUMNS: Final = tuple(one.name for one in fields(Record) if one.name not in ASIDE)
ALWAYS_KNOWN: Final = ("digest", "scenario", "label", "system", "design", "mechanism", "status", "exit_code")
FIGURES: Final = ("objective", "bound", "gap", "violations", "seconds", "wall_s")
TIMES: Final = ("seconds", "wall_s", "finished")
MEANS: Final = {"mean": "avg", "min": "min", "max": "max", "sum": "sum", "count": "count"}


def column_of(metric: str) -> str:
    """What a metric is called among a run's columns: `metric.objective`, where its own name is taken."""
    return f"metric.{metric}" if metric in COLUMNS else metric


class Store:
    """A store of runs; several may write to one, and read it meanwhile.

    path    its folder, or the SQLite file in it
    write   make it where it is not there, and bring its schema up to date

    raises  InputError for what is no store, a store of a newer version, or one that may not be
            written; StoreFailure where the disk or another process is in the way
    """

    def __init__(self, path: str | Path, *, write: bool = False) -> None:
        given = Path(path)
        self.file = given if given.is_file() else given / FILE
        self.folder = self.file.parent
        self.name = str(given)
        self._names: dict[tuple[str, str], int] = {}
        self._require_store(given, write)
        self._connection: sqlite3.Connection
        self._open(write)

    @staticmethod
    def is_there(path: str | Path) -> bool:
        """Whether anything is at that place that may be a store."""
        return Path(path).is_file() or (Path(path) / FILE).exists()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close it; what was kept stays."""
        self._connection.close()

    # --- writing --------------------------------------------------------------------------

    def keep(self, records: Sequence[Record]) -> None:
        """Keep runs with their plans: all of them or, where it fails, none."""
        with self._explained():
            for record in records:
                if record.plan is not None:
                    self._keep_plan(record.plan, record.tables)
            with self._transaction():
                for record in records:
                    self._keep_run(record)

    def _keep_plan(self, digest: str, tables: Mapping[str, bytes]) -> None:
        place = self.plan_folder(digest)
        if place.exists():
            return
        partial = place.with_name(f".{digest}.{os.getpid()}.partial")
        partial.mkdir(parents=True, exist_ok=True)
        try:
            for name, content in tables.items():
                (partial / f"{name}.parquet").write_bytes(content)
            partial.rename(place)
        except OSError:
            if not place.exists():  # else another sweep was first with the same plan
                raise
        finally:
            shutil.rmtree(partial, ignore_errors=True)

    def _keep_run(self, record: Record) -> None:
        run = self._connection.execute
        if record.status != "failed" and record.former:
            self._forget(record.former)
        row = run(KEEP, [_plain(getattr(record, name)) for name in COLUMNS]).fetchone()
        if record.asked is not None and record.problem is not None:
            run("INSERT OR REPLACE INTO problems VALUES (?, ?)", (record.asked, record.problem))
        if row is None:  # done already, by another sweep
            return
        many, number = self._connection.executemany, row[0]
        for table, kind, figures in (
            ("metrics", "metric", record.metrics),
            ("settings", "setting", record.settings),
        ):
            rows = [
                (self._name(kind, name), number, _plain(value))
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
        marks = ", ".join("?" * len(former))
        failed = f"SELECT id FROM runs WHERE status = 'failed' AND digest IN ({marks})"
        for (number,) in self._connection.execute(failed, former).fetchall():
            for table in ("metrics", "settings"):  # by name first, as their keys are
                self._connection.execute(
                    f"DELETE FROM {table} WHERE name IN (SELECT id FROM names) AND run = ?", (number,)
                )
            for table, key in (("messages", "run"), ("requests", "run"), ("runs", "id")):
                self._connection.execute(f"DELETE FROM {table} WHERE {key} = ?", (number,))

    def _name(self, kind: str, name: str) -> int:
        if (kind, name) not in self._names:
            self._connection.execute("INSERT OR IGNORE INTO names (kind, name) VALUES (?, ?)", (kind, name))
            found = self._connection.execute("SELECT id FROM names WHERE kind = ? AND name = ?", (kind, name))
            self._names[kind, name] = int(found.fetchone()[0])
        return self._names[kind, name]

    def tidy(self) -> None:
        """Remove what writers that were killed left half-written."""
        with self._explained():
            for partial in self.folder.glob("plans/*/.*.partial"):
                with contextlib.suppress(FileNotFoundError):
                    if time.time() - partial.stat().st_mtime > STALE_S:
                        shutil.rmtree(partial, ignore_errors=True)

    # --- reading --------------------------------------------------------------------------

    def __len__(self) -> int:
        return int(self._all("SELECT count(*) FROM runs")[0][0])

    def problems(self, asked: Iterable[str]) -> dict[str, str]:
        """The digests of problems that were asked for before, by the digest of the request."""
        statement = "SELECT request, problem FROM problems WHERE request IN ({})"
        return dict(self._in(statement, asked))

    def done(self, digests: Iterable[str]) -> set[str]:
        """Those of the digests that are done; a run that failed is not."""
        statement = "SELECT digest FROM runs WHERE status != 'failed' AND digest IN ({})"
        return {row[0] for row in self._in(statement, digests)}

    def metric_names(self) -> list[str]:
        """Names of metrics, in the order in which they came; see `column_of`."""
        return [column_of(name) for name in self._names_of("metric")]

    def setting_names(self) -> list[str]:
        """Dotted keys of what was asked, in the order in which they came."""
        return self._names_of("setting")

    def columns(self) -> list[str]:
        """Every name that a filter or a chart may use."""
        return [*COLUMNS, *self.setting_names(), *self.metric_names()]

    def count(self, where: str | None = None) -> int:
        """How many runs a filter holds for."""
        condition = self._condition(where)
        rows = self._all(f"SELECT count(*) FROM runs WHERE {condition.sql}", condition.values)
        return int(rows[0][0])

    def runs(
        self,
        where: str | None = None,
        *,
        columns: Sequence[str] | None = None,
        sort: str | None = None,
        limit: int | None = None,
        digests: Sequence[str] | None = None,
    ) -> pd.DataFrame:
        """Runs, a row each; indexed by digest where `digests` asks for those, else numbered.

        where    a filter, see `planner.where`
        columns  names; default: all that hold anything in these runs
        sort     a name; with a minus before it, the largest first; default: as they came
        limit    the most rows
        raises   InputError for a name or filter that is none
        """
        wanted = None if columns is None else [self._known(name) for name in columns]
        condition = self._condition(where)
        if digests is not None:
            return self._of_digests(digests, wanted)
        order = "runs.id" if sort is None else self._order(sort)
        most = "" if limit is None else f" LIMIT {int(limit)}"
        chosen = f"SELECT runs.id FROM runs WHERE {condition.sql} ORDER BY {order}{most}"
        numbers = [row[0] for row in self._all(chosen, condition.values)]
        return self._frame(numbers, wanted)

    def chart(
        self,
        value: str,
        *,
        by: str,
        series: str | None = None,
        where: str | None = None,
        how: Literal["mean", "min", "max", "sum", "count"] = "mean",
    ) -> pd.DataFrame:
        """What a chart draws: `value` by `by`, a row for each of its values, and a column for each series.

        value   a metric or another figure of a run; runs where it is unknown do not count
        by      what the x axis has; `series` what tells lines apart
        how     what becomes of runs that fall on the same point
        raises  InputError for a name or filter that is none
        """
        if value in COLUMNS and value not in (*FIGURES, "exit_code"):
            raise InputError(
                f"'{value}' is no figure" + did_you_mean(value, [*FIGURES, *self.metric_names()])
            )
        if how not in MEANS:
            raise InputError(f"how is '{how}', must be one of: {', '.join(MEANS)}")
        joins: list[str] = []
        given: list[Any] = []
        terms = []
        for alias, name in (("y", value), ("x", by), ("s", series)):
            if name is None:
                terms.append("''")
                continue
            kind, found = self._find(name)
            if kind == "run":
                terms.append(f"runs.{found}")
                continue
            terms.append(f"{alias}.value")
            joins.append(f"JOIN {kind}s {alias} ON {alias}.name = ? AND {alias}.run = runs.id")
            given.append(found)
        y, x, s = terms
        condition = self._condition(where)
        rows = self._all(
            f"SELECT {x}, {s}, {MEANS[how]}({y}) FROM runs {' '.join(joins)} "
            f"WHERE {condition.sql} AND {y} IS NOT NULL GROUP BY 1, 2",
            (*given, *condition.values),
        )
        long = pd.DataFrame(rows, columns=["x", "series", "y"]).set_index(["x", "series"])["y"]
        frame: pd.DataFrame = long.unstack("series")  # noqa: PD010
        frame = frame.rename_axis(index=by, columns=series)
        return frame.rename(columns={"": value}) if series is None else frame

    def messages(self, digest: str) -> list[tuple[str, str]]:
        """What a run has to say: kind ("violation", "reason", "error") and text."""
        run = "(SELECT id FROM runs WHERE digest = ?)"
        return self._all(f"SELECT kind, text FROM messages WHERE run = {run} ORDER BY position", (digest,))

    def request(self, digest: str) -> dict[str, Any]:
        """All that a run was asked with; InputError where there is no such run."""
        rows = self._all(
            "SELECT document FROM requests WHERE run = (SELECT id FROM runs WHERE digest = ?)", (digest,)
        )
        if not rows:
            raise InputError(f"{self.name}: has no run {digest}")
        document: dict[str, Any] = json.loads(rows[0][0])
        return document

    def plan_folder(self, digest: str) -> Path:
        """Where the tables of the plan of that digest are."""
        return self.folder / "plans" / digest[:2] / digest

    def plan(self, digest: str) -> dict[str, pd.DataFrame]:
        """The tables of the plan of that digest (a run's column `plan`)."""
        folder = self.plan_folder(digest)
        if not folder.is_dir():
            raise InputError(f"{self.name}: has no plan {digest}")
        return {path.stem: pd.read_parquet(path) for path in sorted(folder.glob("*.parquet"))}

    def seconds_of(self, system: str, design: str, scenario: str, most: int = 1000) -> list[float]:
        """Wall seconds of the last runs of a scenario's design."""
        rows = self._all(
            "SELECT wall_s FROM runs WHERE system = ? AND design = ? AND scenario = ? AND status != 'failed' "
            "AND wall_s IS NOT NULL ORDER BY id DESC LIMIT ?",
            (system, design, scenario, most),
        )
        return [row[0] for row in rows]

    # --- names ----------------------------------------------------------------------------

    def _find(self, name: str) -> tuple[str, Any]:
        """`("run", column)`, `("metric", number)` or `("setting", number)`."""
        if name in COLUMNS:
            return "run", name
        metric = name.removeprefix("metric.")
        own = metric if column_of(metric) == name else name
        rows = self._all("SELECT kind, id FROM names WHERE name = ? ORDER BY kind", (own,))
        if not rows:
            raise InputError(f"no such column '{name}'" + did_you_mean(name, self.columns()))
        kind, number = rows[0]
        return str(kind), number

    def _known(self, name: str) -> str:
        try:
            self._find(name)
        except InputError as error:
            raise InputError(f"--columns: {error}") from None
        return name

    def _names_of(self, kind: str) -> list[str]:
        return [row[0] for row in self._all("SELECT name FROM names WHERE kind = ? ORDER BY id", (kind,))]

    def _condition(self, where: str | None) -> Condition:
        return Condition(sql="1") if where is None else parse(where, self._column)

    def _column(self, name: str) -> Column:
        kind, found = self._find(name)
        if kind != "run":
            inside = f"SELECT run FROM {kind}s WHERE name = ?"
            return Column(
                test=f"runs.id IN ({inside} AND value {{}})",
                values=(found,),
                unknown=f"runs.id NOT IN ({inside})",
            )
        if name in ALWAYS_KNOWN:
            return Column(test=f"runs.{name} {{}}", unknown="0")
        return Column(test=f"(runs.{name} IS NOT NULL AND runs.{name} {{}})", unknown=f"runs.{name} IS NULL")

    def _order(self, sort: str) -> str:
        name = sort.removeprefix("-")
        way = "DESC" if sort.startswith("-") else "ASC"
        try:
            kind, found = self._find(name)
        except InputError as error:
            raise InputError(f"--sort: {error}") from None
        if kind == "run":
            value = f"runs.{found}"
        else:
            value = f"(SELECT value FROM {kind}s WHERE name = {int(found)} AND run = runs.id)"
        return f"{value} {way} NULLS LAST, runs.id"

    # --- frames ---------------------------------------------------------------------------

    def _of_digests(self, digests: Sequence[str], wanted: list[str] | None) -> pd.DataFrame:
        found = dict(self._in("SELECT digest, id FROM runs WHERE digest IN ({})", digests))
        frame = self._frame(list(found.values()), None if wanted is None else ["digest", *wanted])
        return frame.set_index("digest")

    def _frame(self, numbers: Sequence[int], wanted: Sequence[str] | None) -> pd.DataFrame:
        """The runs of those numbers, in that order."""
        with self._explained(), self._chosen(numbers):
            base = [name for name in COLUMNS if wanted is None or name in wanted]
            selected = ", ".join(["runs.id", *(f"runs.{name}" for name in base)])
            rows = self._all(
                f"SELECT {selected} FROM temp.chosen CROSS JOIN runs ON runs.id = chosen.run ORDER BY place"
            )
            frame = pd.DataFrame(rows, columns=["id", *base]).set_index("id")
            types: dict[str, type] = dict.fromkeys(FIGURES, float) | {"exit_code": int}
            for name in base:  # an empty frame knows no types
                frame[name] = frame[name].astype(types.get(name, object))
            columns: dict[str, Any] = {name: frame[name] for name in base}
            for name in (*self.setting_names(), *self.metric_names()):
                if wanted is None or name in wanted:
                    values = self._values(name, frame.index)
                    if values is not None or wanted is not None:
                        columns[name] = np.full(len(frame), np.nan) if values is None else values
        whole = pd.DataFrame(columns, index=frame.index).reset_index(drop=True)
        return whole if wanted is None else whole[list(wanted)]

    def _values(self, name: str, index: pd.Index) -> Any:
        kind, number = self._find(name)
        rows = self._all(
            f"SELECT chosen.run, value FROM temp.chosen CROSS JOIN {kind}s v ON v.run = chosen.run "
            "WHERE v.name = ?",
            (number,),
        )
        if not rows:
            return None
        values = pd.Series([row[1] for row in rows], index=[row[0] for row in rows])
        return values.reindex(index)

    @contextlib.contextmanager
    def _chosen(self, numbers: Sequence[int]) -> Iterator[None]:
        """A temporary table of runs; it is this connection's own, so that readers may have it."""
        run = self._connection.execute
        run("CREATE TEMP TABLE chosen (run INTEGER PRIMARY KEY, place INTEGER NOT NULL)")
        try:
            rows = [(number, place) for place, number in enumerate(numbers)]
            self._connection.executemany("INSERT INTO chosen VALUES (?, ?)", rows)
            yield
        finally:
            run("DROP TABLE chosen")

    # --- SQLite ---------------------------------------------------------------------------

    def _all(self, statement: str, values: Sequence[Any] = ()) -> list[Any]:
        with self._explained():
            return self._connection.execute(statement, values).fetchall()

    def _in(self, statement: str, values: Iterable[str]) -> list[Any]:
        unique = list(dict.fromkeys(values))
        rows: list[Any] = []
        for start in range(0, len(unique), MANY):
            part = unique[start : start + MANY]
            rows += self._all(statement.format(", ".join("?" * len(part))), part)
        return rows

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[None]:
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._names.clear()  # those given in this transaction are gone with it
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
        with self._explained():
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
            Store(self.file, write=True).close()
            self._connection = self._connected("ro")

    def _migrate(self) -> None:
        run = self._connection.execute
        run("PRAGMA journal_mode = WAL")
        with self._transaction():  # another sweep may be doing the same
            version = run("PRAGMA user_version").fetchone()[0]
            for script in SCHEMA[version:]:
                for statement in script.split(";"):
                    if statement.strip():
                        run(statement)
            run(f"PRAGMA application_id = {APPLICATION_ID}")
            run(f"PRAGMA user_version = {len(SCHEMA)}")

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
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


def export(frame: pd.DataFrame, path: Path, suffix: str) -> None:
    """Write runs as `.csv` or `.parquet`, whole or not at all; InputError where that cannot be."""
    if path.is_dir():
        raise InputError(f"{path}: is a folder, must be a file")
    partial = path.with_name(f"{path.name}{suffix}")  # the writer goes by the ending
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_table(_columns_of_one_type(frame), partial)
        partial.replace(path)
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror or error})") from None


def _columns_of_one_type(frame: pd.DataFrame) -> pd.DataFrame:
    """Columns of both numbers and text, as a parameter `integer | any` makes, become text."""
    mixed = [
        str(name)
        for name in frame
        if frame[name].dtype == object and len({isinstance(value, str) for value in frame[name].dropna()}) > 1
    ]
    text = {name: frame[name].map(lambda value: None if value is None else str(value)) for name in mixed}
    return frame.assign(**text) if text else frame


KEEP: Final = (
    f"INSERT INTO runs ({', '.join(COLUMNS)}) VALUES ({', '.join('?' * len(COLUMNS))}) "
    "ON CONFLICT (digest) DO UPDATE SET "
    + ", ".join(f"{name} = excluded.{name}" for name in COLUMNS if name != "digest")
    + " WHERE runs.status = 'failed' RETURNING id"
)


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
