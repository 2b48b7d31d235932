"""Store of runs: a folder with one SQLite file, and the plans beside it as Parquet.

    STORE/runs.sqlite                      every run; WAL mode, so that readers never wait for a sweep
    STORE/plans/ab/<digest>/<table>.parquet  a plan by the digest of its tables; equal plans are one
    STORE/plans/ab/<digest>/files.json       the sizes and digests of its files

A run is one design on one problem, identified by its digest: the same system, problem (its tables, not
its source), design, parameters, information, solver options and versions have the same digest on any
machine. A run that is done is never written again; one that failed is, when it is tried again.

A row is written in one transaction, after its plan is on the disk. Whoever is killed at any moment loses only
what was not yet written, and damages nothing.
"""

from __future__ import annotations

import contextlib
import json
import logging
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from planner.errors import InputError, did_you_mean
from planner.io.file_replacement import remove_partial_folders
from planner.io.input_files import STORE_FILE, STORED_PLANS
from planner.store.database import Database
from planner.store.filters import ColumnIndex
from planner.store.plan_folders import find_damage, plan_files, write_plan
from planner.store.record import COLUMNS, FIGURES, Record

if TYPE_CHECKING:
    import pandas as pd

log = logging.getLogger(__name__)

ABANDONED_AFTER_S: Final = 3600.0  # age of a partial plan that nobody writes any more
PLAN_DIGEST: Final = re.compile(r"[0-9A-Za-z]{1,128}")
AGGREGATES: Final = {"mean": "avg", "min": "min", "max": "max", "sum": "sum", "count": "count"}
UPSERT: Final = (
    f"INSERT INTO runs ({', '.join(COLUMNS)}) VALUES ({', '.join('?' * len(COLUMNS))}) "
    "ON CONFLICT (digest) DO UPDATE SET "
    + ", ".join(f"{name} = excluded.{name}" for name in COLUMNS if name != "digest")
    + " WHERE runs.status = 'failed' RETURNING id"
)


class Store:
    """A store of runs; several may write to one, and read it meanwhile.

    path    its folder, or the SQLite file in it
    write   create it if it does not exist, and migrate its schema

    raises  InputError for what is no store, a store of a newer version, or one that may not be
            written; StoreFailure where the disk or another process is in the way
    """

    def __init__(self, path: str | Path, *, write: bool = False) -> None:
        self._database = Database(path, write=write)
        self._columns = ColumnIndex(self._database)

    @property
    def name(self) -> str:
        """Path by which it was opened."""
        return self._database.name

    @property
    def file(self) -> Path:
        """SQLite file."""
        return self._database.file

    @property
    def folder(self) -> Path:
        """Folder of the SQLite file and the plans."""
        return self._database.folder

    @staticmethod
    def exists(path: str | Path) -> bool:
        """Return whether there is anything at a path that may be a store."""
        return Path(path).is_file() or (Path(path) / STORE_FILE).exists()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the store."""
        self._database.close()

    # --- writing --------------------------------------------------------------------------

    def add(self, records: Sequence[Record]) -> None:
        """Add runs with their plans, all or none; a run that is done already stays as it is."""
        with self._database.explain_failures():
            for record in records:
                if record.plan is not None:
                    write_plan(self.plan_folder(record.plan), record.tables)
            try:
                with self._database.transaction():
                    for record in records:
                        self._write_record(record)
            except BaseException:
                self._columns.clear_numbers()
                raise

    def _write_record(self, record: Record) -> None:
        execute, execute_many = self._database.execute, self._database.execute_many
        self._forget_damaged_plan(record.digest)
        if record.status != "failed" and record.earlier_digests:
            self._remove_failed(record.earlier_digests)
        row = execute(UPSERT, [_to_sqlite(getattr(record, name)) for name in COLUMNS]).fetchone()
        if record.problem_key is not None and record.problem is not None:
            execute("INSERT OR REPLACE INTO problems VALUES (?, ?)", (record.problem_key, record.problem))
        if row is None:  # another sweep has done it
            return
        run = row[0]
        for kind, figures in (("metric", record.metrics), ("setting", record.settings)):
            rows = [
                (self._columns.number_of(kind, name), run, _to_sqlite(value))
                for name, value in figures.items()
                if value is not None
            ]
            execute_many(f"INSERT OR REPLACE INTO {kind}s VALUES (?, ?, ?)", rows)
        execute("DELETE FROM messages WHERE run = ?", (run,))
        messages = [(run, position, *message) for position, message in enumerate(record.messages)]
        execute_many("INSERT INTO messages VALUES (?, ?, ?, ?)", messages)
        execute("INSERT OR REPLACE INTO requests VALUES (?, ?)", (run, record.request))

    def _forget_damaged_plan(self, digest: str) -> None:
        """Mark a run with a lost or damaged plan as failed, so that a new one takes its place."""
        execute = self._database.execute
        row = execute("SELECT plan FROM runs WHERE digest = ? AND status != 'failed'", (digest,)).fetchone()
        if row is not None and row[0] is not None and find_damage(self.plan_folder(row[0])) is not None:
            execute("UPDATE runs SET status = 'failed' WHERE digest = ?", (digest,))

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

    def remove_partial_plans(self) -> None:
        """Remove the partial plans of writers that were killed."""
        with self._database.explain_failures():
            for folder in (self.folder / STORED_PLANS).glob("*"):
                remove_partial_folders(folder, older_than_s=ABANDONED_AFTER_S)

    # --- reading --------------------------------------------------------------------------

    def __len__(self) -> int:
        return int(self._database.fetch("SELECT count(*) FROM runs")[0][0])

    def problem_digests(self, keys: Iterable[str]) -> dict[str, str]:
        """Return the digests of problems by problem key, of those that runs have had before."""
        statement = "SELECT request, problem FROM problems WHERE request IN ({})"
        return dict(self._database.fetch_by_keys(statement, keys))

    def finished(self, digests: Iterable[str]) -> set[str]:
        """Return those of the digests that have a run that is done.

        A failed run is not, nor is one with a plan that the disk has lost or damaged.
        """
        statement = "SELECT digest, plan FROM runs WHERE status != 'failed' AND digest IN ({})"
        rows = self._database.fetch_by_keys(statement, digests)
        damage = {plan: find_damage(self.plan_folder(plan)) for _, plan in rows if plan is not None}
        for plan, words in damage.items():
            if words is not None:
                log.warning("%s: plan %s is damaged (%s): its runs are made again", self.name, plan, words)
        return {digest for digest, plan in rows if plan is None or damage[plan] is None}

    def metric_names(self) -> list[str]:
        """Return the columns of metrics, in the order of their first use; see `column_of`."""
        return self._columns.metrics()

    def setting_names(self) -> list[str]:
        """Return the dotted keys of settings, in the order of their first use."""
        return self._columns.settings()

    def columns(self) -> list[str]:
        """Return every name that a filter or a chart may use."""
        return self._columns.names()

    def count(self, where: str | None = None) -> int:
        """Return the number of runs that satisfy a filter."""
        condition = self._columns.parse_condition(where)
        rows = self._database.fetch(f"SELECT count(*) FROM runs WHERE {condition.sql}", condition.values)
        return int(rows[0][0])

    def runs(
        self,
        where: str | None = None,
        *,
        columns: Sequence[str] | None = None,
        sort: str | None = None,
        limit: int | None = None,
    ) -> pd.DataFrame:
        """Return runs, a row each, numbered from 0; arguments as for `values`."""
        return _frame(self.values(where, columns=columns, sort=sort, limit=limit))

    def values(
        self,
        where: str | None = None,
        *,
        columns: Sequence[str] | None = None,
        sort: str | None = None,
        limit: int | None = None,
    ) -> dict[str, list[Any]]:
        """Return the values of runs by column, None for unknown.

        where    a filter, see `planner.store.filters`
        columns  names; default: all that have a value in these runs
        sort     a name; with a minus before it, the largest first; default: in order of storage
        limit    largest number of runs
        raises   InputError for an unknown name or an invalid filter
        """
        if columns is not None and not columns:
            raise InputError("--columns: names no column")
        for name in columns or ():
            self._columns.require_column(name, "--columns")
        condition = self._columns.parse_condition(where)
        order = "runs.id" if sort is None else self._columns.order_clause(sort)
        limit_clause = "" if limit is None else f" LIMIT {int(limit)}"
        selection = f"SELECT runs.id FROM runs WHERE {condition.sql} ORDER BY {order}{limit_clause}"
        numbers = [row[0] for row in self._database.fetch(selection, condition.values)]
        return self._values(numbers, columns)

    def runs_by_digest(self, digests: Sequence[str], columns: Sequence[str] | None = None) -> pd.DataFrame:
        """Return the stored runs of these digests, by digest, in no order; `columns` as in `runs`."""
        numbers = dict(
            self._database.fetch_by_keys("SELECT digest, id FROM runs WHERE digest IN ({})", digests)
        )
        names = None if columns is None else ["digest", *columns]
        return _frame(self._values(list(numbers.values()), names)).set_index("digest")

    def chart(
        self,
        value: str,
        *,
        by: str,
        series: str | None = None,
        where: str | None = None,
        how: Literal["mean", "min", "max", "sum", "count"] = "mean",
    ) -> pd.DataFrame:
        """Return the data of a chart: a row for each value of `by`, a column for each series.

        value   a metric or another figure of a run, for the y axis; runs where it is unknown are left out
        by      the column of the x axis
        series  the column that distinguishes lines
        how     aggregate of the runs at the same point
        raises  InputError for an unknown name or an invalid filter
        """
        if value in COLUMNS and value not in (*FIGURES, "exit_code"):
            raise InputError(
                f"'{value}' is no figure" + did_you_mean(value, [*FIGURES, *self.metric_names()])
            )
        if how not in AGGREGATES:
            raise InputError(f"how is '{how}', must be one of: {', '.join(AGGREGATES)}")
        joins: list[str] = []
        values: list[Any] = []
        terms = []
        for alias, name in (("y", value), ("x", by), ("s", series)):
            if name is None:
                terms.append("''")
                continue
            kind, column = self._columns.find_column(name)
            if kind == "run":
                terms.append(f"runs.{column}")
                continue
            terms.append(f"{alias}.value")
            joins.append(f"JOIN {kind}s {alias} ON {alias}.name = ? AND {alias}.run = runs.id")
            values.append(column)
        y, x, s = terms
        condition = self._columns.parse_condition(where)
        rows = self._database.fetch(
            f"SELECT {x}, {s}, {AGGREGATES[how]}({y}) FROM runs {' '.join(joins)} "
            f"WHERE {condition.sql} AND {y} IS NOT NULL GROUP BY 1, 2",
            (*values, *condition.values),
        )
        import pandas as pd

        long = pd.DataFrame(rows, columns=["x", "series", "y"]).set_index(["x", "series"])["y"]
        frame: pd.DataFrame = long.unstack("series")  # noqa: PD010
        frame = frame.rename_axis(index=by, columns=series)
        return frame.rename(columns={"": value}) if series is None else frame

    def messages(self, digest: str) -> list[tuple[str, str]]:
        """Return the messages of a run: kind ("violation", "reason", "note", "error") and text."""
        run = "(SELECT id FROM runs WHERE digest = ?)"
        return self._database.fetch(
            f"SELECT kind, text FROM messages WHERE run = {run} ORDER BY position", (digest,)
        )

    def request(self, digest: str) -> dict[str, Any]:
        """Return the whole request of a run; raise InputError where there is no such run."""
        rows = self._database.fetch(
            "SELECT document FROM requests WHERE run = (SELECT id FROM runs WHERE digest = ?)", (digest,)
        )
        if not rows:
            raise InputError(f"{self.name}: has no run {digest}")
        document: dict[str, Any] = json.loads(rows[0][0])
        return document

    def plan_folder(self, digest: str) -> Path:
        """Return the folder with the tables of a plan, by its digest.

        raises  InputError for what is no digest, and may be a path
        """
        if not PLAN_DIGEST.fullmatch(digest):
            raise InputError(f"{self.name}: {digest[:80]!r} is no digest of a plan")
        return self.folder / STORED_PLANS / digest[:2] / digest

    def plan(self, digest: str) -> dict[str, pd.DataFrame]:
        """Return the tables of a plan, by its digest (a run's column `plan`).

        raises  InputError where the store has no such plan, or where it is damaged
        """
        folder = self.plan_folder(digest)
        if not folder.is_dir():
            raise InputError(f"{self.name}: has no plan {digest}")
        if (damage := find_damage(folder)) is not None:
            raise InputError(
                f"{self.name}: plan {digest} is damaged ({damage}); the same sweep makes it again"
            )
        from planner.io.arrow_files import read_arrow_frame

        return {path.stem: read_arrow_frame(path) for path in plan_files(folder)}

    def run_times_s(self, system: str, design: str, scenario: str, limit: int = 1000) -> list[float]:
        """Return the wall times of the last runs of a scenario's design, in seconds."""
        rows = self._database.fetch(
            "SELECT wall_s FROM runs WHERE system = ? AND design = ? AND scenario = ? AND status != 'failed' "
            "AND wall_s IS NOT NULL ORDER BY id DESC LIMIT ?",
            (system, design, scenario, limit),
        )
        return [row[0] for row in rows]

    # --- values ---------------------------------------------------------------------------

    def _values(self, numbers: Sequence[int], names: Sequence[str] | None) -> dict[str, list[Any]]:
        """Return the values of the runs of these numbers by column, in this order."""
        with self._database.explain_failures(), self._temporary_table(numbers):
            ids, values = self._base_values([name for name in COLUMNS if names is None or name in names])
            for name in (*self.setting_names(), *self.metric_names()):
                if names is not None and name not in names:
                    continue
                values_of = self._known_values(name)
                if values_of or names is not None:
                    values[name] = [values_of.get(number) for number in ids]
        return values if names is None else {name: values[name] for name in names}

    def _base_values(self, names: Sequence[str]) -> tuple[list[int], dict[str, list[Any]]]:
        """Return the numbers of the selected runs, and their values in the columns that all runs have."""
        selected = ", ".join(["runs.id", *(f"runs.{name}" for name in names)])
        rows = self._database.fetch(
            f"SELECT {selected} FROM temp.chosen CROSS JOIN runs ON runs.id = chosen.run ORDER BY place"
        )
        values = {name: [row[index] for row in rows] for index, name in enumerate(names, start=1)}
        return [row[0] for row in rows], values

    def _known_values(self, name: str) -> dict[int, Any]:
        kind, number = self._columns.find_column(name)
        return dict(
            self._database.fetch(
                f"SELECT chosen.run, value FROM temp.chosen CROSS JOIN {kind}s v ON v.run = chosen.run "
                "WHERE v.name = ?",
                (number,),
            )
        )

    @contextlib.contextmanager
    def _temporary_table(self, numbers: Sequence[int]) -> Iterator[None]:
        """Create a table of runs for this connection alone, so that readers may as well."""
        database = self._database
        database.execute("CREATE TEMP TABLE chosen (run INTEGER PRIMARY KEY, place INTEGER NOT NULL)")
        try:
            rows = [(number, index) for index, number in enumerate(numbers)]
            database.execute_many("INSERT INTO chosen VALUES (?, ?)", rows)
            yield
        finally:
            database.execute("DROP TABLE chosen")


def _frame(values: Mapping[str, Sequence[Any]]) -> pd.DataFrame:
    """Return values by column as a frame: figures of a run as floats, others by their values."""
    import pandas as pd

    types: dict[str, Any] = (
        dict.fromkeys(COLUMNS, object) | dict.fromkeys(FIGURES, float) | {"exit_code": int}
    )
    columns = {}
    for name, cells in values.items():
        column = pd.Series(cells, dtype=None if len(cells) else float)
        columns[name] = column.astype(types[name]) if name in types else column.fillna(float("nan"))
    return pd.DataFrame(columns)


def _to_sqlite(value: Any) -> Any:
    """Return a value as a type that SQLite stores."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None or isinstance(value, str | float):
        return value
    if isinstance(value, int):
        return value if abs(value) < 2**63 else str(value)
    if hasattr(value, "item"):  # a number of NumPy's
        return _to_sqlite(value.item())
    return json.dumps(value, ensure_ascii=False, default=str)
