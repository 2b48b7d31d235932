"""Rolling runs: designs on a series of problems, each window warm-started from the last plan, and stored.

    DIR/scenario.toml
    DIR/<design>/windows.csv               a row for each window: status, gap, metrics
    DIR/<design>/windows/<label>/run.json  with the digest of the window's problem
                                 plan/     the plan's tables
                                 decided/  the plan as decided, where it is realized differently

A window is written to the folder at once. So an interrupted roll leaves its finished windows, and the same
roll started again continues from the last plan.
"""

from __future__ import annotations

import copy
import hashlib
import json
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pandas as pd

from planner.contract.design import Decision
from planner.contract.metrics import Metric
from planner.contract.problem import Problem, Series
from planner.contract.proof import Proof, Status
from planner.contract.system import System
from planner.contract.tables import digest
from planner.errors import InputError, PlannerError
from planner.formatting import counted, number
from planner.io.file_replacement import remove_partial_folders, replace_folder, replace_text
from planner.io.layout import TableFormat
from planner.io.names import MAX_BYTES
from planner.io.table_files import write_table
from planner.options import Algorithm, Options, Service
from planner.runs.evaluation import entries, evaluate, select_entry
from planner.runs.files import make_folder, write_plan
from planner.runs.result import Result, aligned, metric_column
from planner.runs.run import Run
from planner.runs.verdict import windows_sentences
from planner.scenarios.arguments import (
    Designs,
    Source,
    as_scenario,
    labels_of,
    plain_value,
    solver_options,
    verb,
)
from planner.scenarios.catalogue import code_of
from planner.scenarios.existing_plans import read_plan
from planner.scenarios.scenario import Entry, Scenario, set_key, with_document
from planner.scenarios.sources import AdjustedSeries, read_events, times_of

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Window:
    """One window of one design, with its run as plain data.

    time       when it begins, where the data have times
    kept       whether it was finished by an earlier roll
    exit_code  0 with a plan, otherwise the exit code of its failure
    plan       the plan, where windows are not stored in a folder
    """

    design: str
    label: str
    run: Mapping[str, Any]
    kept: bool
    exit_code: int
    plan: Any = None
    time: str | None = None

    def row(self) -> dict[str, Any]:
        """Return its row of `windows.csv`; a metric with the name of another column is `metric.seconds`."""
        run = self.run
        columns = {
            "window": self.label,
            **({} if self.time is None else {"time": self.time}),
            "status": run["status"] or "failed",
            "gap": run["gap"],
            "seconds": run["seconds"],
            "violations": len(run["violations"]),
        }
        return columns | {metric_column(name, columns): value for name, value in run["metrics"].items()}


@dataclass(frozen=True, kw_only=True, eq=False)
class Roll:
    """Designs on a series; iterating yields each window when it is finished.

    A window that fails is reported and stored; the next starts from the last plan.

    out  folder of the finished windows; None: they are not stored, and have their plans
    """

    scenario: Scenario
    entries: Sequence[Entry]
    series: Series
    out: Path | None = None
    table_format: str = "parquet"

    def __len__(self) -> int:
        return len(self.entries) * len(self.series)

    def __iter__(self) -> Iterator[Window]:
        for entry in self.entries:
            if self.out is None:
                yield from self._run_windows(entry, None)
                continue
            folder = make_folder(self.out / entry.label)
            table = folder / "windows.csv"
            rows: list[dict[str, Any]] = []
            for window in self._run_windows(entry, make_folder(folder / "windows")):
                rows.append(window.row())
                write_table(pd.DataFrame(rows), table)  # short, so rewritten each time
                yield window

    def _run_windows(self, entry: Entry, folder: Path | None) -> Iterator[Window]:
        times = times_of(self.series)
        for window in self._run_labels(entry, folder):
            yield replace(window, time=times.get(window.label))

    def _run_labels(self, entry: Entry, folder: Path | None) -> Iterator[Window]:
        system, options = self.scenario.system, self.scenario.options
        previous: Run | None = None
        code = code_of(system.name, entry.design)
        if folder:
            remove_partial_folders(folder)
        for label, problem in self.series:
            window_folder = folder / _file_name(label) if folder else None
            problem_digest = digest(problem.to_tables())
            existing = (
                _read_window(system, entry, label, window_folder, problem, problem_digest)
                if window_folder
                else None
            )
            if existing is not None:
                window, plan_read = existing
                previous = previous if plan_read is None else plan_read
                yield window
                continue
            try:
                run = evaluate(system, problem, entry, options=options, previous=previous)
            except PlannerError as error:
                run = Run(system=system, problem=problem, entry=entry, error=error)
            plain = {**run.to_dict(), "exit_code": run.exit_code, "problem": problem_digest}
            plain |= {"code": code} if code else {}
            if window_folder is not None:
                _write_window(run, plain, window_folder, self.table_format)
            if run.plan is not None:
                previous = replace(run, problem=None)
            plan = run.plan if window_folder is None else None
            yield Window(
                design=entry.label, label=label, run=plain, kept=False, exit_code=run.exit_code, plan=plan
            )


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Rolled(Result):
    """Result of a roll: a window for each design and problem of the series."""

    system: System
    windows: tuple[Window, ...]

    def __iter__(self) -> Iterator[Window]:
        return iter(self.windows)

    def __len__(self) -> int:
        return len(self.windows)

    @cached_property
    def metrics(self) -> pd.DataFrame:
        """One row for each design and window: status, gap, seconds, number of violations, every metric."""
        rows = [{"design": window.design, **window.row()} for window in self.windows]
        return pd.DataFrame(rows).set_index(["design", "window"])

    @property
    def verdict(self) -> str:
        """The mean and the worst of the headline of each design, in plain sentences."""
        return " ".join(self.sentences)

    @property
    def sentences(self) -> list[str]:
        """The sentences of the verdict, one for each design, the best one first."""
        rows_of: dict[str, list[dict[str, Any]]] = {window.design: [] for window in self.windows}
        for window in self.windows:
            if not window.exit_code:
                rows_of[window.design].append(
                    {**window.run["metrics"], "violations": len(window.run["violations"])}
                )
        return windows_sentences(self.system, rows_of)

    @property
    def plans(self) -> dict[tuple[str, str], Any]:
        """The plans by design and window, where they are not stored in a folder."""
        return {
            (window.design, window.label): window.plan for window in self.windows if window.plan is not None
        }

    def to_frame(self) -> pd.DataFrame:
        """Return `metrics`, one row for each design and window."""
        return self.metrics

    def summary(self) -> list[str]:
        """Return mean and worst value of the headline metric for each design."""
        metric = self.system.headline
        lower = metric.words
        rows = [("design", "windows", "without a plan", f"mean {lower}", f"worst {lower}")]
        for design in dict.fromkeys(window.design for window in self.windows):
            windows = [window for window in self.windows if window.design == design]
            failed = sum(window.exit_code > 0 for window in windows)
            mean, worst = _mean_and_worst(metric, windows)
            rows.append((design, str(len(windows)), str(failed), number(mean), number(worst)))
        unit = f", {metric.unit}" if metric.unit else ""
        return [f"{self.system.name}: {counted(len(self.windows), 'windows')}{unit}", *aligned(rows)]

    @property
    def exit_code(self) -> int:
        """0 when every window has a plan, otherwise that of the first that has none."""
        return next((window.exit_code for window in self.windows if window.exit_code), 0)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, as `--json` prints it."""
        return {
            "system": self.system.name,
            "runs": [{"window": window.label, **window.run} for window in self.windows],
        }


@verb
def roll(
    problem: Source | Mapping[str, Problem] | Sequence[Problem] | Series,
    *,
    designs: Designs | None = None,
    out: str | Path | None = None,
    table_format: TableFormat = "parquet",
    changes: Mapping[str, Any] | None = None,
    events: Mapping[str, Mapping[str, Any]] | None = None,
    windows: int | None = None,
    options: Options | None = None,
    backend: str | None = None,
    algorithm: Algorithm | None = None,
    time_limit_s: float | None = None,
    gap: float | None = None,
    threads: int | None = None,
    seed: int | None = None,
    service: Service | None = None,
    advance: Callable[[int, int, int], None] | None = None,
) -> Rolled:
    """Run designs on consecutive problems, such as the windows of a trace, each from the last plan.

    Parameters
    ----------
    problem
        A scenario whose source is a series, or consecutive problems: a list, {label: problem}, or a
        series that a system reads.
    designs
        As in `compare`; default: all of the scenario, or the system's default design.
    out
        Folder of the finished windows, which the same call does not repeat after an interruption;
        default: none, and the result has the plans.
    events
        Changes from a window on, by its label: {"9:00": {"problem.fail_links": ["a<->b"]}}.
    windows
        Number of windows in which a source of one problem stands still, but for events.

    Returns
    -------
    Rolled
        A window for each design and problem of the series: plan, proof, metrics and changes of the plan.

    Raises
    ------
    InputError
        For a source of one problem, and for a folder of another roll.
    """
    settings = solver_options(
        options, backend=backend, algorithm=algorithm, time_limit_s=time_limit_s, gap=gap, threads=threads,
        seed=seed, service=service,
    )  # fmt: skip
    series: Series | None = None
    source: Any = problem
    if _is_in_memory(problem):
        series, source = _series_in_memory(problem)
        if out is not None:
            raise InputError(
                "out: windows are stored for a scenario only, whose source gives the series again"
            )
    if series is None and (events or windows is not None):
        source = with_events(as_scenario(source), events or {}, windows)
    scenario = as_scenario(source, changes=changes, designs=designs, options=settings)
    if series is not None:
        if windows is not None:
            raise InputError("windows: problems in memory are windows already")
        if scenario.raw["problem"]:
            raise InputError("changes: problems in memory are taken as they are; change them before")
        series = _with_events_in_memory(series, scenario, events or {})
    rolling = start_roll(
        scenario,
        designs=labels_of(designs),
        out=None if out is None else Path(out),
        table_format=table_format,
        series=series,
    )
    return Rolled(system=scenario.system, windows=_finish(rolling, advance))


def _is_in_memory(problem: object) -> bool:
    """Return whether consecutive problems are given, not a source of them."""
    return isinstance(problem, Sized) and isinstance(problem, Iterable) and not isinstance(problem, str)


def _finish(rolling: Roll, advance: Callable[[int, int, int], None] | None) -> tuple[Window, ...]:
    """Return all windows; `advance` is called behind each, with the numbers of finished and failed ones."""
    finished: list[Window] = []
    for window in rolling:
        finished.append(window)
        if advance is not None:
            advance(len(finished), sum(item.exit_code > 0 for item in finished), len(rolling))
    return tuple(finished)


def with_events(
    scenario: Scenario, events: Mapping[str, Mapping[str, Any]], windows: int | None = None
) -> Scenario:
    """Return the scenario with changes that apply from a window of its series on.

    events   dotted keys of the scenario and their values, by the label of the window
    windows  number of windows in which a source of one problem stands still; None: as the scenario says
    raises   InputError for keys that are no adjustments of the problem, and where there is no series
    """
    if not events and windows is None:
        return scenario
    document = copy.deepcopy(dict(scenario.raw))
    if windows is not None:
        document["series"] = {"windows": windows}
    if not events:
        return with_document(scenario, document)
    section = document.setdefault("events", {})
    for window, changes in events.items():
        section.setdefault(window, {})
        for key, value in changes.items():
            set_key(section[window], key, plain_value(value))
    return with_document(scenario, document)


def _with_events_in_memory(
    series: Series, scenario: Scenario, events: Mapping[str, Mapping[str, Any]]
) -> Series:
    document: dict[str, Any] = {}
    for window, changes in events.items():
        for key, value in changes.items():
            set_key(document.setdefault(window, {}), key, plain_value(value))
    events_found, faults = read_events(scenario.system, document, scenario.folder)
    if faults:
        raise InputError(*faults)
    return (
        AdjustedSeries(series, scenario.system.problem.adjust, events=events_found)
        if events_found
        else series
    )


def start_roll(
    scenario: Scenario,
    *,
    designs: Sequence[str] | None = None,
    out: Path | None = None,
    table_format: str = "parquet",
    series: Series | None = None,
) -> Roll:
    """Return a roll of each design over all windows; finished windows in `out` are not repeated.

    designs  default: all of the scenario's, or the system's default design
    series   default: that of the scenario's source

    raises   InputError for a source of one problem, and for a folder of another roll
    """
    selected = entries(scenario, designs) if designs or scenario.designs else [select_entry(scenario)]
    series = _series(scenario) if series is None else series
    if isinstance(series, AdjustedSeries):
        series.require_windows()
    if out is not None:
        make_folder(out)
        _store_scenario(out / "scenario.toml", scenario.to_toml(out))
    return Roll(scenario=scenario, entries=selected, series=series, out=out, table_format=table_format)


def _series_in_memory(problems: Any) -> tuple[Series, Problem]:
    """Return the series of problems in memory, and the first of them."""
    if not isinstance(problems, Mapping | list | tuple):  # a series, whose problems are read one by one
        return problems, next(iter(problems))[1]
    if isinstance(problems, Mapping):
        labelled = [(str(label), problem) for label, problem in problems.items()]
    else:
        labelled = [(str(count), problem) for count, problem in enumerate(problems, start=1)]
    if not labelled:
        raise InputError("roll: needs at least one problem")
    first = labelled[0][1]
    strange = [label for label, problem in labelled if type(problem) is not type(first)]
    if strange:
        raise InputError(
            *(f"problem {label}: is no {type(first).__name__} as the first one" for label in strange)
        )
    return labelled, first


def _file_name(label: str) -> str:
    """Return a folder name for a window's label; unique, never hidden and short enough."""
    quoted = quote(label, safe=" :+,=@")
    if len(quoted) > MAX_BYTES:
        quoted = f"{quoted[:MAX_BYTES]} {hashlib.sha256(label.encode()).hexdigest()[:16]}"
    return quoted.replace(".", "%2E", 1) if quoted.startswith(".") else quoted


def _series(scenario: Scenario) -> Series:
    if scenario.make_series is None:
        names = ", ".join(scenario.system.problem.series)
        raise InputError(
            f"{scenario.name}: problem.source gives one problem, but a roll needs a series; "
            + (f"sources of series: {names}; " if names else "")
            + "[series] windows = 24 repeats the problem"
        )
    return scenario.make_series()


def _store_scenario(path: Path, text: str) -> None:
    """Write the scenario; raise InputError where another one is stored."""
    if path.exists() and path.read_text(encoding="utf-8") != text:
        raise InputError(
            f"{path.parent}: has the plans of another scenario; name another folder, or remove it"
        )
    replace_text(path, text)


def _read_window(
    system: System, entry: Entry, label: str, folder: Path, problem: Any, problem_digest: str
) -> tuple[Window, Run | None] | None:
    """Return a finished window, and the run that the next one starts from where it has a plan.

    None where there is none, or where a power cut or a full disk has damaged it: that is said, and the window
    is computed again.
    """
    if not folder.exists():
        return None
    try:
        plain = json.loads((folder / "run.json").read_text(encoding="utf-8"))
        digest_then, exit_code = plain["problem"], int(plain["exit_code"])
        row = Window(design=entry.label, label=label, run=plain, kept=True, exit_code=exit_code)
        row.row()
        what = "other data than the series has now" if digest_then != problem_digest else ""
        if plain.get("code", "") != code_of(system.name, entry.design):
            what = f"another version of {entry.label}"
        if not what:
            return row, None if exit_code else _read_run(system, entry, problem, folder)
    except (OSError, ValueError, KeyError, TypeError, PlannerError) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        log.warning("%s: is damaged and computed again (%s)", folder, reason)
        return None
    raise InputError(f"{folder}: was computed from {what}; name another folder, or remove it")


def _write_window(run: Run, plain: Mapping[str, Any], folder: Path, table_format: str) -> None:
    """Write a window, in place of a damaged one where there is one."""
    with replace_folder(folder) as partial:
        if run.plan is not None:
            write_plan(run.plan, partial / "plan", table_format)
            decided = run.decision.plan if run.decision else None
            if decided is not None and decided is not run.plan:
                write_plan(decided, partial / "decided", table_format)
        text = json.dumps(plain, indent=2, ensure_ascii=False, default=str)
        replace_text(partial / "run.json", text + "\n")


def _read_run(system: System, entry: Entry, problem: Any, folder: Path) -> Run:
    """Return a finished window as the run that the next window starts from."""
    plan = read_plan(system, problem, folder / "plan")
    decided = read_plan(system, problem, folder / "decided") if (folder / "decided").exists() else plan
    decision: Decision[Any] = Decision(plan=decided, proof=Proof(status=Status.FEASIBLE))
    return Run(system=system, problem=None, entry=entry, decision=decision, plan=plan)


def _mean_and_worst(metric: Metric, windows: Sequence[Window]) -> tuple[float | None, float | None]:
    """Return the mean and the worst value of a metric over the windows with a plan; None for no value."""
    values = [window.run["metrics"].get(metric.name) for window in windows if not window.exit_code]
    numbers = [value for value in values if value is not None]
    worst = (min if metric.better == "more" else max)(numbers, default=None)
    return sum(numbers) / len(numbers) if numbers else None, worst
