"""Sweeps: the runs of a grid that a store does not have yet, made and kept.

A sweep has no state but its store. Started again after whatever end, the same call makes what is
missing: that is how it is resumed, and how it grows when an axis gets more values. Runs that failed are
tried again.
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

from planner.catalogue import find_system
from planner.errors import InputError
from planner.grid import Grid, Point, lay_out
from planner.options import Options
from planner.record import Record, column_of
from planner.request import Request
from planner.run import share
from planner.scenario import Scenario, load, with_options
from planner.store import Store

log = logging.getLogger(__name__)

INTERRUPTED: Final = 130
MOST_TOLD: Final = 5  # failures that are spelled out


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """What a sweep would do. Runs are distinct ones: points that ask the same share a run.

    done     runs that the store has
    seconds  of work left, by stored runs of the same scenario and design; None where none is known
    unknown  runs left of which nothing similar is stored
    """

    points: int
    runs: int
    done: int
    seconds: float | None
    unknown: int

    @property
    def left(self) -> int:
        return self.runs - self.done


@dataclass(frozen=True, kw_only=True, eq=False)
class Sweep:
    """What became of a sweep.

    made         runs made now; the others were in the store before
    failures     of those, the ones that failed: what it was and why
    interrupted  stopped before its end: the same call goes on
    """

    grid: Grid
    out: Path
    made: int
    failures: tuple[str, ...]
    interrupted: bool = False

    @cached_property
    def runs(self) -> pd.DataFrame:
        """A row for each point that has a run: scenario, label, the axes' values, and all that is known.

        Points that are the same run have a row each. An axis that a run does not depend on is None.
        `share_of_bound` is taken of the best bound proven for a problem by the runs here, as in `compare`.
        """
        points = self.grid.points
        with Store(self.out) as store:
            digests = self._digests(store)
            found = store.runs_of(digests)
        present = [(point, name) for point, name in zip(points, digests, strict=True) if name in found.index]
        asked = pd.DataFrame(
            [
                {"scenario": point.request.scenario, "label": point.request.label, **point.values}
                for point, _ in present
            ],
            columns=["scenario", "label", *self.grid.axes],
        )
        kept = found.loc[[name for _, name in present]].reset_index()
        rest = [column for column in kept if column not in asked]
        frame = pd.concat([asked, kept[rest]], axis=1)
        return frame.assign(share_of_bound=pd.Series(self._shares(frame), index=frame.index, dtype=float))

    def _shares(self, frame: pd.DataFrame) -> list[float | None]:
        systems = {point.request.scenario: point.request.system for point in self.grid.points}
        shares: list[float | None] = [None] * len(frame)
        bounded = frame[
            (frame["omniscient"] == "true") & frame["bound_within"].isna() & frame["bound"].notna()
        ]
        for (scenario, problem), proven in bounded.groupby(["scenario", "problem"], sort=False):
            name = proven["objective_metric"].iloc[0]  # as `compare`, of the first that is proven
            column = column_of(name)
            if column not in frame:  # bounds only, and no plan that has the metric
                continue
            metric = find_system(systems[str(scenario)]).metric(name)
            bounds = proven.loc[proven["objective_metric"] == name, "bound"]
            tightest = float(bounds.min() if metric.better == "more" else bounds.max())
            here = (frame["scenario"] == scenario) & (frame["problem"] == problem) & frame[column].notna()
            for row in np.flatnonzero(here):
                shares[row] = share(float(frame[column].iloc[row]), tightest, metric.better)
        return shares

    @property
    def exit_code(self) -> int:
        """0 when every run has a plan, else that of the first in the grid that has none; 130 if stopped."""
        if self.interrupted:
            return INTERRUPTED
        codes = self.runs["exit_code"]
        return int(next((code for code in codes if code), 0))

    def to_dict(self) -> dict[str, Any]:
        """Plain data, as `--json` prints it."""
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
        known = store.problems(point.request.asked for point in self.grid.points)
        done = [point.digest(known.get(point.request.asked)) for point in self.grid.points]
        found = store.done(done)
        # a run that failed before its problem was known has no better name than the request's
        return [
            name if name in found or point.request.asked not in known else _failed_name(store, point, name)
            for point, name in zip(self.grid.points, done, strict=True)
        ]


def _failed_name(store: Store, point: Point, name: str) -> str:
    return name if len(store.runs_of([name], columns=["digest"])) else point.digest(None)


def sweep(
    scenarios: Scenario | str | Path | Sequence[Scenario | str | Path],
    out: str | Path,
    *,
    axes: Mapping[str, Sequence[Any]] | None = None,
    designs: Sequence[str] | None = None,
    zipped: bool = False,
    options: Options | Mapping[str, Any] | None = None,
    workers: int | None = None,
    memory: str = "auto",
    cluster: str | None = None,
    plans: bool = True,
    warm: bool = False,
    advance: Callable[[int, int, int], None] | None = None,
) -> Sweep:
    """Run the grid of scenarios, and keep every run in a store.

    out      the store; runs that it has are not made again, except those that failed
    axes     dotted keys and their values, over those of each scenario's [sweep]
    designs  those named, else all of each scenario's, else all of its system's
    zipped   axes go side by side instead of being multiplied
    options  solver options; default: each scenario's. A solver gets one thread where none are given
    workers  processes on this machine; default: as many as there are cores for
    memory   the most that each of them may use, e.g. "4GB"
    cluster  address of a Dask scheduler instead, e.g. "tcp://host:8786"
    plans    keep plans too, not only what they are worth
    warm     let runs start from a neighbour's basis or, where both are proven optimal, decision: objective
             and bound are the same, another optimal plan may be found; kept apart from other runs
    advance  called with the numbers of runs done, of these failed, and in all, as they change

    Ctrl-C (or SIGTERM) finishes what runs and returns; once more, it ends at once. A run that fails is
    kept with its message and stops no other.

    raises  InputError before anything runs, with every fault; StoreFailure, ClusterLost
    """
    grid = grid_of(
        scenarios, axes=axes, designs=designs, zipped=zipped, options=options, plans=plans, warm=warm
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
    """Make the runs of a grid that the store does not have: what `sweep` does once the grid is there."""
    with Store(out, write=True) as store:
        store.tidy()
        work = _Work(store=store, grid=grid, advance=advance or _ignore)
        if work.left:
            with _client(grid, work.left, workers, memory, cluster) as client, work.interruptible():
                work.run(client)
    return Sweep(
        grid=grid,
        out=Path(out),
        made=work.made,
        failures=tuple(work.failures),
        interrupted=work.stopping,
    )


def grid_of(
    scenarios: Scenario | str | Path | Sequence[Scenario | str | Path],
    *,
    axes: Mapping[str, Sequence[Any]] | None = None,
    designs: Sequence[str] | None = None,
    zipped: bool = False,
    options: Options | Mapping[str, Any] | None = None,
    plans: bool = True,
    warm: bool = False,
) -> Grid:
    """The grid that `sweep` would run; InputError with every fault."""
    given = [scenarios] if isinstance(scenarios, Scenario | str | Path) else list(scenarios)
    loaded: list[Scenario] = []
    faults: list[str] = []
    for one in given:
        try:
            loaded.append(with_options(one if isinstance(one, Scenario) else load(one), options))
        except InputError as error:
            faults += error.faults
    if faults:
        raise InputError(*faults)
    return lay_out(loaded, axes=axes, designs=designs, zipped=zipped, plans=plans, warm=warm)


def estimate(grid: Grid, out: str | Path) -> Estimate:
    """What a sweep into that store would do, and how long similar runs took that it has."""
    runs = {point.digest(None): point for point in grid.points}
    times: dict[tuple[str, str, str], list[float]] = {}
    left = list(runs.values())
    if Store.is_there(out):
        with Store(out) as store:
            left, runs = _left(store, grid)
            for point in left:
                kind = _kind(point)
                if kind not in times:
                    times[kind] = store.seconds_of(*kind)
    known = [statistics.median(times[_kind(point)]) for point in left if times.get(_kind(point))]
    return Estimate(
        points=len(grid),
        runs=len(runs),
        done=len(runs) - len(left),
        seconds=sum(known) if known or not left else None,
        unknown=len(left) - len(known),
    )


def _kind(point: Point) -> tuple[str, str, str]:
    return point.request.system, point.entry.design.name, point.request.scenario


def _left(store: Store, grid: Grid) -> tuple[list[Point], dict[str, Point]]:
    """The points whose runs are not done, each run once; and all runs by digest."""
    known = store.problems(point.request.asked for point in grid.points)
    runs: dict[str, Point] = {}
    for point in grid.points:
        runs.setdefault(point.digest(known.get(point.request.asked)), point)
    done = store.done(runs)
    return [point for name, point in runs.items() if name not in done], runs


def _client(
    grid: Grid, left: int, workers: int | None, memory: str, cluster: str | None
) -> contextlib.AbstractContextManager[Any]:
    from planner import farm

    if cluster is not None:
        return farm.on_cluster(cluster)
    if workers is not None and workers < 1:
        raise InputError(f"--workers {workers}: must be at least 1")
    return farm.on_this_machine(worker_count(grid, left, workers), memory=memory, threads=_threads(grid))


def worker_count(grid: Grid, left: int, workers: int | None) -> int:
    """Processes for so many runs: those asked for, else one for each core that a solver needs."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(workers or cores // _threads(grid), left))


def _threads(grid: Grid) -> int:
    return max((point.options.threads or 1 for point in grid.points), default=1)


def _ignore(done: int, failed: int, total: int) -> None:
    """Nobody watches."""


@dataclass(eq=False)
class _Work:
    """A sweep while it runs."""

    store: Store
    grid: Grid
    advance: Callable[[int, int, int], None]
    made: int = 0
    failures: list[str] = field(default_factory=list)
    stopping: bool = False

    def __post_init__(self) -> None:
        left, runs = _left(self.store, self.grid)
        self.points = {id(point.request): point for point in left}
        self.left = len(left)
        self.done = len(runs) - len(left)
        self.groups: dict[str, list[Request]] = {}
        for point in left:
            self.groups.setdefault(point.request.asked, []).append(point.request)
        self.total = len(runs)
        self._tell()

    def run(self, client: Any) -> None:
        from planner.farm import Farm

        Farm(client).run(
            self.groups.values(), self._keep, wanted=self._is_wanted, stopped=lambda: self.stopping
        )
        if self.left == self.made:  # nothing was left to stop
            self.stopping = False

    def _keep(self, records: list[Record]) -> None:
        self.store.keep(records)
        self.made += len(records)
        for record in records:
            if record.status == "failed":
                self.failures.append(f"{record.scenario}: {record.label}: {record.message}")
        self._tell()

    def _tell(self) -> None:
        self.advance(self.done + self.made, len(self.failures), self.total)

    def _is_wanted(self, request: Request) -> bool:
        """False where another sweep into this store, or another way to the same problem, was faster."""
        point = self.points[id(request)]
        problem = self.store.problems([request.asked]).get(request.asked)
        if problem is None or not self.store.done([point.digest(problem)]):
            return True
        self.done += 1
        self.left -= 1
        self._tell()
        return False

    @contextlib.contextmanager
    def interruptible(self) -> Iterator[None]:
        """The first Ctrl-C or SIGTERM stops handing out, the second one everything."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return

        def stop(number: int, frame: FrameType | None) -> None:  # noqa: ARG001
            if self.stopping:
                raise KeyboardInterrupt
            self.stopping = True
            log.warning("finishing the runs that are on their way; once more ends at once")

        before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def told(failures: Sequence[str]) -> list[str]:
    """Failures for people: each once with its number, the most frequent first."""
    counts = Counter(failures).most_common()
    lines = [text + (f" ({count} times)" if count > 1 else "") for text, count in counts[:MOST_TOLD]]
    if len(counts) > MOST_TOLD:
        lines.append(f"and {len(counts) - MOST_TOLD} other failures")
    return lines
