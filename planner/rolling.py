"""A series of problems through designs, each window decided with the last plan at hand, and kept.

    DIR/scenario.toml
    DIR/<design>/windows.csv               a row for each window: status, gap, metrics
    DIR/<design>/windows/<label>/run.json  with the digest of the window's problem
                                 plan/     the plan's tables
                                 decided/  as decided, where it plays out otherwise in truth

A window appears in the folder whole or not at all. So a roll that is stopped, however it is,
leaves what was finished; the same roll started again goes on from the last plan there.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pandas as pd

from planner.errors import InputError, PlannerError
from planner.files import make_folder, read_plan, write_plan
from planner.proof import Proof, Status
from planner.run import Run, entries, evaluate
from planner.scenario import Entry, Scenario
from planner.system import Decision, Series, System
from planner.table_files import write_table
from planner.tables import digest


@dataclass(frozen=True, kw_only=True)
class Window:
    """One window of one design: its run as plain data, and whether it was kept from before.

    exit_code  0 with a plan, otherwise what the failure's kind has
    """

    design: str
    label: str
    run: Mapping[str, Any]
    kept: bool
    exit_code: int

    def row(self) -> dict[str, Any]:
        """As `windows.csv` has it."""
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
    """Designs to be run through a series: iterating yields each window as it is finished.

    A window that fails is reported and kept, and the next starts from the last plan there is.
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
            for window in self._rolled(entry, make_folder(folder / "windows")):
                rows.append(window.row())
                write_table(pd.DataFrame(rows), table)  # a short one: written anew each time
                yield window

    def _rolled(self, entry: Entry, folder: Path) -> Iterator[Window]:
        system, options = self.scenario.system, self.scenario.options
        previous: Run | None = None
        for label, problem in self.series:
            place = folder / _file_name(label)
            mark = digest(problem.to_tables())
            if (place / "run.json").exists():
                window = _kept(entry, label, place, mark)
                if not window.exit_code:
                    previous = _read(system, entry, problem, place)
                yield window
                continue
            try:
                run = evaluate(system, problem, entry, options=options, previous=previous)
            except PlannerError as error:
                run = Run(system=system, problem=problem, entry=entry, error=error)
            plain = {**run.to_dict(), "exit_code": run.exit_code, "problem": mark}
            _keep(run, plain, place, self.table_format)
            if run.plan is not None:
                previous = replace(run, problem=None)
            yield Window(design=entry.label, label=label, run=plain, kept=False, exit_code=run.exit_code)


def start(
    scenario: Scenario,
    *,
    designs: Sequence[str] | None = None,
    out: Path,
    table_format: str = "parquet",
) -> Roll:
    """Each window of each design; what `out` holds of them already is kept.

    designs  those named, else all of the scenario's, else the system's default

    raises   InputError for a source of one problem, and for a folder that another roll has written
    """
    chosen = entries(scenario, designs) if designs or scenario.designs else entries(scenario)[:1]
    series = _series(scenario)
    make_folder(out)
    _claim(out / "scenario.toml", scenario.to_toml(out))
    return Roll(scenario=scenario, entries=chosen, series=series, out=out, table_format=table_format)


def _file_name(label: str) -> str:
    """A window's label as the name of a folder: unlike labels have unlike names, none of them hidden."""
    quoted = quote(label, safe=" :+,=@")
    return quoted.replace(".", "%2E", 1) if quoted.startswith(".") else quoted


def _series(scenario: Scenario) -> Series:
    if scenario.make_series is None:
        names = ", ".join(scenario.system.series)
        raise InputError(
            f"{scenario.name}: problem.source gives one problem, nothing to roll through; "
            + (f"sources of series: {names}" if names else f"{scenario.system.name} has no sources of series")
        )
    return scenario.make_series()


def _claim(path: Path, text: str) -> None:
    """Put the scenario in its place; InputError where another one is."""
    if path.exists() and path.read_text(encoding="utf-8") != text:
        raise InputError(
            f"{path.parent}: holds the plans of another scenario; name another folder, or remove it"
        )
    path.write_text(text, encoding="utf-8")


def _kept(entry: Entry, label: str, place: Path, mark: str) -> Window:
    plain = json.loads((place / "run.json").read_text(encoding="utf-8"))
    if plain["problem"] != mark:
        raise InputError(
            f"{place}: was made of other data than the series has now; name another folder, or remove it"
        )
    return Window(design=entry.label, label=label, run=plain, kept=True, exit_code=plain["exit_code"])


def _keep(run: Run, plain: Mapping[str, Any], place: Path, table_format: str) -> None:
    """Write a window beside its place, then put it there at once."""
    partial = place.with_name(f".{place.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    make_folder(partial)
    if run.plan is not None:
        write_plan(run.plan, partial / "plan", table_format)
        decided = run.decision.plan if run.decision else None
        if decided is not None and decided is not run.plan:
            write_plan(decided, partial / "decided", table_format)
    text = json.dumps(plain, indent=2, ensure_ascii=False, default=str)
    (partial / "run.json").write_text(text + "\n", encoding="utf-8")
    partial.rename(place)


def _read(system: System, entry: Entry, problem: Any, place: Path) -> Run:
    """A finished window as the run that the next one starts from."""
    plan = read_plan(system, problem, place / "plan")
    decided = read_plan(system, problem, place / "decided") if (place / "decided").exists() else plan
    decision: Decision[Any] = Decision(plan=decided, proof=Proof(status=Status.FEASIBLE))
    return Run(system=system, problem=None, entry=entry, decision=decision, plan=plan)
