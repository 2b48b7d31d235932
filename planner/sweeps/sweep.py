"""Sweeps: every run of a grid that a store does not have yet is executed and stored.

The store is the only state of a sweep. However it ended, the same call executes the missing runs: so a
sweep is resumed, and extended when an axis gets more values. Runs that failed are tried again.
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import statistics
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from types import FrameType
from typing import Any, Final

import numpy as np
import pandas as pd

from planner.contract.notes import add_note
from planner.contract.tables import digest
from planner.errors import InputError
from planner.formatting import counted, counted_of
from planner.options import Algorithm, Options, Service
from planner.runs.files import write_tables
from planner.runs.result import Result
from planner.runs.run import fraction_of_bound
from planner.scenarios.arguments import (
    Designs,
    Source,
    as_scenario,
    labels_of,
    plain_value,
    solver_options,
    verb,
)
from planner.scenarios.catalogue import find_system
from planner.scenarios.scenario import Scenario, from_document
from planner.store.record import Record, column_of
from planner.store.store import Store
from planner.sweeps.grid import Grid, Point, lay_out
from planner.sweeps.open_workers import open_workers
from planner.sweeps.run_pool import RunPool
from planner.sweeps.run_request import Request
from planner.sweeps.workers import Workers

log = logging.getLogger(__name__)

INTERRUPTED_EXIT_CODE: Final = 130
MAX_LISTED_FAILURES: Final = 5
PROBLEMS_FOLDER: Final = "problems"
"""Subfolder of a store for the tables of problems in memory."""


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """Work of a sweep. Points that request the same share one run.

    done     runs that the store has
    seconds  time of the remaining runs, by stored runs of the same scenario and design; None if unknown
    unknown  remaining runs of which the store has no similar one
    """

    points: int
    runs: int
    done: int
    seconds: float | None
    unknown: int

    @property
    def remaining(self) -> int:
        """Number of runs that the store has not."""
        return self.runs - self.done


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Sweep(Result):
    """Result of a sweep.

    made         number of runs executed now; the others were in the store before
    failures     the failed ones of those: scenario, design and reason
    interrupted  it was stopped before its end; the same call continues it
    """

    grid: Grid
    out: Path
    made: int
    failures: tuple[str, ...]
    interrupted: bool = False

    @cached_property
    def runs(self) -> pd.DataFrame:
        """A row for each point that has a run: scenario, label, values of the axes, and the run's columns.

        Points that are the same run have a row each. An axis that a run does not depend on is None.
        `share_of_bound` relates to the best bound that these runs prove for a problem, as in `compare`.
        """
        points = self.grid.points
        with Store(self.out) as store:
            digests = self._digests(store)
            stored = store.runs_by_digest(digests)
        present = [(point, name) for point, name in zip(points, digests, strict=True) if name in stored.index]
        asked = pd.DataFrame(
            [
                {"scenario": point.request.scenario, "label": point.request.label, **point.values}
                for point, _ in present
            ],
            columns=["scenario", "label", *self.grid.axes],
        )
        frame_of_runs = stored.loc[[name for _, name in present]].reset_index()
        columns = [column for column in frame_of_runs if column not in asked]
        frame = pd.concat([asked, frame_of_runs[columns]], axis=1)
        return frame.assign(share_of_bound=pd.Series(self._shares(frame), index=frame.index, dtype=float))

    def to_frame(self) -> pd.DataFrame:
        """Return `runs`, one row for each point that has a run."""
        return self.runs

    def summary(self) -> list[str]:
        """Return the numbers of points, runs and failures, and the failures."""
        axes = ", ".join(self.grid.axes) or "none"
        counts = (
            f"{counted_of(len(self.runs), len(self.grid), 'points')}; {counted(self.made, 'runs')} made now"
        )
        failed = (
            [f"{len(self.failures):,} failed", *summarize_failures(self.failures)] if self.failures else []
        )
        return [f"sweep in {self.out.name}: {counts}; axes: {axes}", *failed]

    def _shares(self, frame: pd.DataFrame) -> list[float | None]:
        systems = {point.request.scenario: point.request.system for point in self.grid.points}
        shares: list[float | None] = [None] * len(frame)
        bounded = frame[
            (frame["omniscient"] == "true") & frame["bound_scope"].isna() & frame["bound"].notna()
        ]
        for (scenario, problem), proven in bounded.groupby(["scenario", "problem"], sort=False):
            name = proven["objective_metric"].iloc[0]  # as in `compare`: the metric of the first proof
            column = column_of(name)
            if column not in frame:  # only bounds, no plan with this metric
                continue
            metric = find_system(systems[str(scenario)]).metric(name)
            bounds = proven.loc[proven["objective_metric"] == name, "bound"]
            tightest = float(bounds.min() if metric.better == "more" else bounds.max())
            here = (frame["scenario"] == scenario) & (frame["problem"] == problem) & frame[column].notna()
            for row in np.flatnonzero(here):
                shares[row] = fraction_of_bound(float(frame[column].iloc[row]), tightest, metric.better)
        return shares

    @property
    def exit_code(self) -> int:
        """Exit code: 0 if every run did its job, else that of the first that did not; 130 if interrupted."""
        if self.interrupted:
            return INTERRUPTED_EXIT_CODE
        codes = self.runs["exit_code"]
        return int(next((code for code in codes if code), 0))

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, as `--json` prints it."""
        frame = self.runs
        rows = frame.astype(object).where(frame.notna(), None).to_dict(orient="records")
        return {
            "store": str(self.out),
            "points": len(self.grid),
            "made": self.made,
            "failed": len(self.failures),
            "interrupted": self.interrupted,
            "runs": rows,
        }

    def _digests(self, store: Store) -> list[str]:
        digests = store.problem_digests(point.request.problem_key for point in self.grid.points)
        names = [point.digest(digests.get(point.request.problem_key)) for point in self.grid.points]
        finished = store.finished(names)
        # a run that failed before its problem was known has its digest by the problem's key
        return [
            name
            if name in finished or point.request.problem_key not in digests
            else _failed_digest(store, point, name)
            for point, name in zip(self.grid.points, names, strict=True)
        ]


def _failed_digest(store: Store, point: Point, name: str) -> str:
    return name if len(store.runs_by_digest([name], columns=["digest"])) else point.digest(None)


@verb
def sweep(
    problem: Source | Sequence[Source] | Mapping[str, Source],
    out: str | Path,
    *,
    axes: Mapping[str, Sequence[Any]] | None = None,
    designs: Designs | None = None,
    zipped: bool = False,
    changes: Mapping[str, Any] | None = None,
    options: Options | Mapping[str, Any] | None = None,
    backend: str | None = None,
    algorithm: Algorithm | None = None,
    time_limit_s: float | None = None,
    gap: float | None = None,
    threads: int | None = None,
    seed: int | None = None,
    service: Service | None = None,
    workers: int | None = None,
    memory: str = "auto",
    cluster: str | None = None,
    plans: bool = True,
    warm: bool = False,
    advance: Callable[[int, int, int], None] | None = None,
) -> Sweep:
    """Run a grid of problems, values and designs, and store every run.

    Ctrl-C (or SIGTERM) finishes the running batches and returns; a second one ends at once. A run that
    fails is stored with its message and stops no other.

    Parameters
    ----------
    problem
        A problem or a scenario as in `compare`, or several: a list, or {name: problem}.
    out
        Folder of the store; runs that it has are not executed again, except those that failed. It also
        keeps the tables of problems in memory.
    axes
        Dotted keys and their values, such as {"problem.scale": [1, 2]}, overriding those of each
        scenario's [sweep].
    zipped
        Go through the axes in parallel instead of over their product; default: false.
    threads
        As in `compare`; default: one for each solver.
    workers
        Processes on this machine; default: as many as its cores allow.
    memory
        Memory limit of each of them, such as "4GB"; default: "auto".
    cluster
        Address of a Dask scheduler instead, such as "tcp://host:8786"; default: none.
    plans
        Store the plans too, not only their metrics; default: true.
    warm
        Let runs start from a neighbour's basis or, where both are proven optimal, decision: objective and
        bound are the same, another optimal plan may be found; such runs have their own digests; default:
        false.

    Returns
    -------
    Sweep
        The metrics of all runs as a table, and the failed runs with their reasons.

    Raises
    ------
    InputError
        Before anything runs, with every error.
    StoreFailure
        Where the store cannot be written or read.
    ClusterLost
        Where the Dask cluster is gone.
    """
    settings = solver_options(
        options,
        backend=backend,
        algorithm=algorithm,
        time_limit_s=time_limit_s,
        gap=gap,
        threads=threads,
        seed=seed,
        service=service,
    )
    grid = load_grid(
        problem,
        axes=axes,
        designs=designs,
        zipped=zipped,
        changes=changes,
        options=settings,
        plans=plans,
        warm=warm,
        tables=Path(out) / PROBLEMS_FOLDER,
    )
    return run_grid(grid, out, workers=workers, memory=memory, cluster=cluster, advance=advance)


def run_grid(
    grid: Grid,
    out: str | Path,
    *,
    workers: int | None = None,
    memory: str = "auto",
    cluster: str | None = None,
    advance: Callable[[int, int, int], None] | None = None,
) -> Sweep:
    """Execute the runs of a grid that the store does not have; arguments as in `sweep`."""
    with Store(out, write=True) as store:
        store.remove_partial_plans()
        work = _SweepRun(store=store, grid=grid, advance=advance or _ignore_progress)
        if work.left:
            with _open_workers(grid, work.left, workers, memory, cluster) as pool, work.handle_interrupts():
                work.run(pool)
    return Sweep(
        grid=grid,
        out=Path(out),
        made=work.made,
        failures=tuple(work.failures),
        interrupted=work.stopping,
    )


def load_grid(
    problem: Source | Sequence[Source] | Mapping[str, Source],
    *,
    axes: Mapping[str, Sequence[Any]] | None = None,
    designs: Designs | None = None,
    zipped: bool = False,
    changes: Mapping[str, Any] | None = None,
    options: Options | Mapping[str, Any] | None = None,
    plans: bool = True,
    warm: bool = False,
    tables: Path | None = None,
) -> Grid:
    """Return the grid that `sweep` would run; raise InputError with every fault.

    tables  folder for the tables of problems in memory, from which workers read them
    """
    loaded: list[Scenario] = []
    faults: list[str] = []
    for name, source in _named_sources(problem):
        try:
            scenario = as_scenario(source, changes=changes, designs=designs, options=options, name=name)
            loaded.append(_stored(scenario, tables))
        except InputError as error:
            faults += error.faults
    if faults:
        raise InputError(*faults)
    grid_axes = None if axes is None else {key: plain_value(list(values)) for key, values in axes.items()}
    return lay_out(loaded, axes=grid_axes, designs=labels_of(designs), zipped=zipped, plans=plans, warm=warm)


def _named_sources(source: Any) -> list[tuple[str | None, Any]]:
    """Return each problem or scenario with the name of its rows; None: its own."""
    if isinstance(source, Mapping):
        return [(str(name), source_) for name, source_ in source.items()]
    if not isinstance(source, list | tuple):
        return [(None, source)]
    return [
        (None if isinstance(source_, Scenario | str | Path) else f"problem {count}", source_)
        for count, source_ in enumerate(source, start=1)
    ]


def _stored(scenario: Scenario, tables: Path | None) -> Scenario:
    """Return the scenario with its problem in memory written as tables, which workers can read."""
    if scenario.problem is None:
        return scenario
    if tables is None:
        raise InputError(f"{scenario.name}: a problem in memory needs a folder for its tables")
    frames = scenario.problem.to_tables()
    folder = (tables / digest(frames)).resolve()
    if not all((folder / f"{name}.parquet").exists() for name in frames):
        write_tables(frames, folder)
    section = {"source": "tables", "path": folder.name, **scenario.raw["problem"]}
    document = {**scenario.raw, "problem": section}
    return from_document(document, name=scenario.name, folder=folder.parent, additions=scenario.additions)


def estimate(grid: Grid, out: str | Path) -> Estimate:
    """Estimate the work of a sweep into a store, by the times of similar runs that it has."""
    runs = {point.digest(None): point for point in grid.points}
    times: dict[tuple[str, str, str], list[float]] = {}
    remaining = list(runs.values())
    if Store.exists(out):
        with Store(out) as store:
            remaining, runs = _missing_runs(store, grid)
            for point in remaining:
                kind = _design_key(point)
                if kind not in times:
                    times[kind] = store.run_times_s(*kind)
    times_known = [
        statistics.median(times[_design_key(point)]) for point in remaining if times.get(_design_key(point))
    ]
    return Estimate(
        points=len(grid),
        runs=len(runs),
        done=len(runs) - len(remaining),
        seconds=sum(times_known) if times_known or not remaining else None,
        unknown=len(remaining) - len(times_known),
    )


def _design_key(point: Point) -> tuple[str, str, str]:
    return point.request.system, point.entry.design.name, point.request.scenario


def _missing_runs(store: Store, grid: Grid) -> tuple[list[Point], dict[str, Point]]:
    """Return a point for each run that is not done, and a point for every run, by digest."""
    digests = store.problem_digests(point.request.problem_key for point in grid.points)
    runs: dict[str, Point] = {}
    for point in grid.points:
        runs.setdefault(point.digest(digests.get(point.request.problem_key)), point)
    finished = store.finished(runs)
    return [point for name, point in runs.items() if name not in finished], runs


def _open_workers(
    grid: Grid, remaining: int, workers: int | None, memory: str, cluster: str | None
) -> contextlib.AbstractContextManager[Workers]:
    if workers is not None and workers < 1:
        raise InputError(f"--workers {workers}: must be at least 1")
    return open_workers(
        worker_count(grid, remaining, workers), memory=memory, threads=_threads(grid), cluster=cluster
    )


def worker_count(grid: Grid, remaining: int, workers: int | None) -> int:
    """Return the number of processes for `remaining` runs: `workers`, or as many as the cores allow."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(workers or cores // _threads(grid), remaining))


def _threads(grid: Grid) -> int:
    return max((point.options.threads or 1 for point in grid.points), default=1)


def _ignore_progress(finished: int, failed: int, total: int) -> None:
    """Ignore the progress."""


@dataclass(eq=False)
class _SweepRun:
    """State of a sweep while it runs."""

    store: Store
    grid: Grid
    advance: Callable[[int, int, int], None]
    made: int = 0
    failures: list[str] = field(default_factory=list)
    stopping: bool = False

    def __post_init__(self) -> None:
        remaining, runs = _missing_runs(self.store, self.grid)
        self.points = {id(point.request): point for point in remaining}
        self.left = len(remaining)
        self.done = len(runs) - len(remaining)
        self.groups: dict[str, list[Request]] = {}
        for point in remaining:
            self.groups.setdefault(point.request.problem_key, []).append(point.request)
        self.total = len(runs)
        self._report_progress()

    def run(self, workers: Workers) -> None:
        RunPool(workers).run(
            self.groups.values(),
            self._store_records,
            is_needed=self._is_needed,
            is_stopping=lambda: self.stopping,
        )
        if self.left == self.made:  # all was done when the interrupt came
            self.stopping = False

    def _store_records(self, records: list[Record]) -> None:
        self.store.add(records)
        self.made += len(records)
        for record in records:
            for kind, text in record.messages:
                if kind == "note":
                    add_note(text)
            if record.status == "failed":
                self.failures.append(f"{record.scenario}: {record.label}: {record.message}")
        self._report_progress()

    def _report_progress(self) -> None:
        self.advance(self.done + self.made, len(self.failures), self.total)

    def _is_needed(self, request: Request) -> bool:
        """Return whether the run is still missing: another sweep may have stored it meanwhile."""
        point = self.points[id(request)]
        problem = self.store.problem_digests([request.problem_key]).get(request.problem_key)
        if problem is None or not self.store.finished([point.digest(problem)]):
            return True
        self.done += 1
        self.left -= 1
        self._report_progress()
        return False

    @contextlib.contextmanager
    def handle_interrupts(self) -> Iterator[None]:
        """Stop submitting runs at the first Ctrl-C or SIGTERM, and everything at the second."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return

        def stop(number: int, frame: FrameType | None) -> None:  # noqa: ARG001
            if self.stopping:
                raise KeyboardInterrupt
            self.stopping = True
            log.warning("finishing the submitted runs; interrupt again to end at once")

        before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def summarize_failures(failures: Sequence[str]) -> list[str]:
    """Return the failures as lines, the most frequent first, each once with its count."""
    counts = Counter(failures).most_common()
    lines = [
        text + (f" ({count} times)" if count > 1 else "") for text, count in counts[:MAX_LISTED_FAILURES]
    ]
    if len(counts) > MAX_LISTED_FAILURES:
        lines.append(f"and {len(counts) - MAX_LISTED_FAILURES} other failures")
    return lines
