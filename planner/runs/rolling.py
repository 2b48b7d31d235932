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

import hashlib
import json
import logging
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pandas as pd

from planner.contract.design import Decision
from planner.contract.problem import Series
from planner.contract.proof import Proof, Status
from planner.contract.system import System
from planner.contract.tables import digest
from planner.errors import InputError, PlannerError
from planner.io.file_replacement import replace_text, sync
from planner.io.names import MAX_BYTES
from planner.io.table_files import write_table
from planner.runs.files import make_folder, read_plan, write_plan
from planner.runs.run import Run, entries, evaluate
from planner.scenarios.scenario import Entry, Scenario

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Window:
    """One window of one design, with its run as plain data.

    kept       whether it was finished by an earlier roll
    exit_code  0 with a plan, otherwise the exit code of its failure
    """

    design: str
    label: str
    run: Mapping[str, Any]
    kept: bool
    exit_code: int

    def row(self) -> dict[str, Any]:
        """Return its row of `windows.csv`."""
        run = self.run
        return {
            "window": self.label,
            "status": run["status"] or "failed",
            "gap": run["gap"],
            "seconds": run["seconds"],
            "violations": len(run["violations"]),
            **run["metrics"],
        }


@dataclass(frozen=True, kw_only=True, eq=False)
class Roll:
    """Designs on a series; iterating yields each window when it is finished.

    A window that fails is reported and stored; the next starts from the last plan.
    """

    scenario: Scenario
    entries: Sequence[Entry]
    series: Series
    out: Path
    table_format: str

    def __len__(self) -> int:
        return len(self.entries) * len(self.series)

    def __iter__(self) -> Iterator[Window]:
        for entry in self.entries:
            folder = make_folder(self.out / entry.label)
            table = folder / "windows.csv"
            rows: list[dict[str, Any]] = []
            for window in self._run_windows(entry, make_folder(folder / "windows")):
                rows.append(window.row())
                write_table(pd.DataFrame(rows), table)  # short, so rewritten each time
                yield window

    def _run_windows(self, entry: Entry, folder: Path) -> Iterator[Window]:
        system, options = self.scenario.system, self.scenario.options
        previous: Run | None = None
        for label, problem in self.series:
            place = folder / _file_name(label)
            problem_digest = digest(problem.to_tables())
            kept = _read_window(system, entry, label, place, problem, problem_digest)
            if kept is not None:
                window, found = kept
                previous = previous if found is None else found
                yield window
                continue
            try:
                run = evaluate(system, problem, entry, options=options, previous=previous)
            except PlannerError as error:
                run = Run(system=system, problem=problem, entry=entry, error=error)
            plain = {**run.to_dict(), "exit_code": run.exit_code, "problem": problem_digest}
            _write_window(run, plain, place, self.table_format)
            if run.plan is not None:
                previous = replace(run, problem=None)
            yield Window(design=entry.label, label=label, run=plain, kept=False, exit_code=run.exit_code)


def start_roll(
    scenario: Scenario,
    *,
    designs: Sequence[str] | None = None,
    out: Path,
    table_format: str = "parquet",
) -> Roll:
    """Return a roll of each design over all windows; finished windows in `out` are not repeated.

    designs  default: all of the scenario's, or the system's default design

    raises   InputError for a source of one problem, and for a folder of another roll
    """
    chosen = entries(scenario, designs) if designs or scenario.designs else entries(scenario)[:1]
    series = _series(scenario)
    make_folder(out)
    _store_scenario(out / "scenario.toml", scenario.to_toml(out))
    return Roll(scenario=scenario, entries=chosen, series=series, out=out, table_format=table_format)


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
            + (f"sources of series: {names}" if names else f"{scenario.system.name} has no sources of series")
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
    system: System, entry: Entry, label: str, place: Path, problem: Any, problem_digest: str
) -> tuple[Window, Run | None] | None:
    """Return a finished window, and the run that the next one starts from where it has a plan.

    None where there is none, or where a power cut or a full disk has damaged it: that is said, and the window
    is computed again.
    """
    if not place.exists():
        return None
    try:
        plain = json.loads((place / "run.json").read_text(encoding="utf-8"))
        digest_then, exit_code = plain["problem"], int(plain["exit_code"])
        row = Window(design=entry.label, label=label, run=plain, kept=True, exit_code=exit_code)
        row.row()
        if digest_then == problem_digest:
            return row, None if exit_code else _read_run(system, entry, problem, place)
    except (OSError, ValueError, KeyError, TypeError, PlannerError) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        log.warning("%s: is damaged and computed again (%s)", place, reason)
        return None
    raise InputError(
        f"{place}: was computed from other data than the series has now; name another folder, or remove it"
    )


def _write_window(run: Run, plain: Mapping[str, Any], place: Path, table_format: str) -> None:
    """Write a window into a temporary folder, then rename it."""
    partial = place.with_name(f".{place.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    make_folder(partial)
    if run.plan is not None:
        write_plan(run.plan, partial / "plan", table_format)
        decided = run.decision.plan if run.decision else None
        if decided is not None and decided is not run.plan:
            write_plan(decided, partial / "decided", table_format)
    text = json.dumps(plain, indent=2, ensure_ascii=False, default=str)
    replace_text(partial / "run.json", text + "\n")
    for path in [*partial.rglob("*"), partial]:
        sync(path)
    shutil.rmtree(place, ignore_errors=True)  # a damaged one
    partial.rename(place)
    sync(place.parent)


def _read_run(system: System, entry: Entry, problem: Any, place: Path) -> Run:
    """Return a finished window as the run that the next window starts from."""
    plan = read_plan(system, problem, place / "plan")
    decided = read_plan(system, problem, place / "decided") if (place / "decided").exists() else plan
    decision: Decision[Any] = Decision(plan=decided, proof=Proof(status=Status.FEASIBLE))
    return Run(system=system, problem=None, entry=entry, decision=decision, plan=plan)
