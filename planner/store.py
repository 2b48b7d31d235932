"""Runs that are kept: a folder with one SQLite file, and the plans beside it as Parquet.

    STORE/runs.sqlite                      every run; WAL mode, so that readers never wait for a sweep
    STORE/plans/ab/<digest>/<table>.parquet  a plan by the digest of its tables; equal plans are one

A run is one design on one problem, and its digest is its name: the same system, problem (its
tables, not the way to them), design, parameters, information, solver options and versions give the
same digest, on any machine. A run that is done is never written again; one that failed is, when it
is tried again.

A row appears when its plan is in place, in one transaction. Whoever is killed at whatever moment
loses what was not yet written, and breaks nothing.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
import pandas as pd

from planner.database import FILE, Database
from planner.errors import InputError, did_you_mean
from planner.names import Names
from planner.plans import Plans
from planner.record import COLUMNS, FIGURES, Record
from planner.writer import Writer

MEANS: Final = {"mean": "avg", "min": "min", "max": "max", "sum": "sum", "count": "count"}


class Store:
    """A store of runs; several may write to one, and read it meanwhile.

    path    its folder, or the SQLite file in it
    write   make it where it is not there, and bring its schema up to date

    raises  InputError for what is no store, a store of a newer version, or one that may not be
            written; StoreFailure where the disk or another process is in the way
    """

    def __init__(self, path: str | Path, *, write: bool = False) -> None:
        self._database = Database(path, write=write)
        self._names = Names(self._database)
        self._plans = Plans(self.folder / "plans")
        self._writer = Writer(self._database, self._names)

    @property
    def name(self) -> str:
        """The path that it was opened by."""
        return self._database.name

    @property
    def file(self) -> Path:
        return self._database.file

    @property
    def folder(self) -> Path:
        return self._database.folder

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
        self._database.close()

    # --- writing --------------------------------------------------------------------------

    def keep(self, records: Sequence[Record]) -> None:
        """Keep runs with their plans: all of them or, where it fails, none."""
        with self._database.explained():
            for record in records:
                if record.plan is not None:
                    self._plans.keep(record.plan, record.tables)
            self._writer.write(records)

    def tidy(self) -> None:
        """Remove what writers that were killed left half-written."""
        with self._database.explained():
            self._plans.tidy()

    # --- reading --------------------------------------------------------------------------

    def __len__(self) -> int:
        return int(self._database.rows("SELECT count(*) FROM runs")[0][0])

    def problems(self, asked: Iterable[str]) -> dict[str, str]:
        """The digests of problems that were asked for before, by the digest of the request."""
        statement = "SELECT request, problem FROM problems WHERE request IN ({})"
        return dict(self._database.rows_of(statement, asked))

    def done(self, digests: Iterable[str]) -> set[str]:
        """Those of the digests that are done; a run that failed is not."""
        statement = "SELECT digest FROM runs WHERE status != 'failed' AND digest IN ({})"
        return {row[0] for row in self._database.rows_of(statement, digests)}

    def metric_names(self) -> list[str]:
        """Names of metrics, in the order in which they came; see `column_of`."""
        return self._names.metrics()

    def setting_names(self) -> list[str]:
        """Dotted keys of what was asked, in the order in which they came."""
        return self._names.settings()

    def columns(self) -> list[str]:
        """Every name that a filter or a chart may use."""
        return self._names.all()

    def count(self, where: str | None = None) -> int:
        """How many runs a filter holds for."""
        condition = self._names.condition(where)
        rows = self._database.rows(f"SELECT count(*) FROM runs WHERE {condition.sql}", condition.values)
        return int(rows[0][0])

    def runs(
        self,
        where: str | None = None,
        *,
        columns: Sequence[str] | None = None,
        sort: str | None = None,
        limit: int | None = None,
    ) -> pd.DataFrame:
        """Runs, a row each, numbered from 0.

        where    a filter, see `planner.where`
        columns  names; default: all that hold anything in these runs
        sort     a name; with a minus before it, the largest first; default: as they came
        limit    the most rows
        raises   InputError for a name or filter that is none
        """
        if columns is not None and not columns:
            raise InputError("--columns: names no column")
        for name in columns or ():
            self._names.require(name, "--columns")
        condition = self._names.condition(where)
        order = "runs.id" if sort is None else self._names.order(sort)
        most = "" if limit is None else f" LIMIT {int(limit)}"
        chosen = f"SELECT runs.id FROM runs WHERE {condition.sql} ORDER BY {order}{most}"
        numbers = [row[0] for row in self._database.rows(chosen, condition.values)]
        return self._frame(numbers, columns)

    def runs_of(self, digests: Sequence[str], columns: Sequence[str] | None = None) -> pd.DataFrame:
        """The runs of those digests that there are, by digest, in no order; `columns` as in `runs`."""
        found = dict(self._database.rows_of("SELECT digest, id FROM runs WHERE digest IN ({})", digests))
        frame = self._frame(list(found.values()), None if columns is None else ["digest", *columns])
        return frame.set_index("digest")

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
            kind, found = self._names.find(name)
            if kind == "run":
                terms.append(f"runs.{found}")
                continue
            terms.append(f"{alias}.value")
            joins.append(f"JOIN {kind}s {alias} ON {alias}.name = ? AND {alias}.run = runs.id")
            given.append(found)
        y, x, s = terms
        condition = self._names.condition(where)
        rows = self._database.rows(
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
        return self._database.rows(
            f"SELECT kind, text FROM messages WHERE run = {run} ORDER BY position", (digest,)
        )

    def request(self, digest: str) -> dict[str, Any]:
        """All that a run was asked with; InputError where there is no such run."""
        rows = self._database.rows(
            "SELECT document FROM requests WHERE run = (SELECT id FROM runs WHERE digest = ?)", (digest,)
        )
        if not rows:
            raise InputError(f"{self.name}: has no run {digest}")
        document: dict[str, Any] = json.loads(rows[0][0])
        return document

    def plan_folder(self, digest: str) -> Path:
        """Where the tables of the plan of that digest are."""
        return self._plans.folder_of(digest)

    def plan(self, digest: str) -> dict[str, pd.DataFrame]:
        """The tables of the plan of that digest (a run's column `plan`)."""
        tables = self._plans.read(digest)
        if tables is None:
            raise InputError(f"{self.name}: has no plan {digest}")
        return tables

    def seconds_of(self, system: str, design: str, scenario: str, most: int = 1000) -> list[float]:
        """Wall seconds of the last runs of a scenario's design."""
        rows = self._database.rows(
            "SELECT wall_s FROM runs WHERE system = ? AND design = ? AND scenario = ? AND status != 'failed' "
            "AND wall_s IS NOT NULL ORDER BY id DESC LIMIT ?",
            (system, design, scenario, most),
        )
        return [row[0] for row in rows]

    # --- frames ---------------------------------------------------------------------------

    def _frame(self, numbers: Sequence[int], wanted: Sequence[str] | None) -> pd.DataFrame:
        """The runs of those numbers, in that order."""
        with self._database.explained(), self._chosen(numbers):
            base = [name for name in COLUMNS if wanted is None or name in wanted]
            selected = ", ".join(["runs.id", *(f"runs.{name}" for name in base)])
            rows = self._database.rows(
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
        kind, number = self._names.find(name)
        rows = self._database.rows(
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
        database = self._database
        database.run("CREATE TEMP TABLE chosen (run INTEGER PRIMARY KEY, place INTEGER NOT NULL)")
        try:
            rows = [(number, place) for place, number in enumerate(numbers)]
            database.run_many("INSERT INTO chosen VALUES (?, ?)", rows)
            yield
        finally:
            database.run("DROP TABLE chosen")
