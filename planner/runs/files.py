"""Files of results and problems: written by `--out`, `generate` and `export`, read by `check --plan`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

import pandas as pd

from planner.backends.export import write_model
from planner.backends.linear_program import ObjectiveText
from planner.contract.notes import notes_of
from planner.contract.parameters import check_parameters, parameters_of
from planner.contract.plan import Plan, Violations
from planner.contract.problem import Problem
from planner.contract.system import System
from planner.errors import InputError, PlanRejected, did_you_mean
from planner.formatting import counted, few, number, sizes
from planner.io.file_replacement import replace_text
from planner.io.layout import TABLE_FORMATS, TableFormat
from planner.io.table_files import write_table, write_workbook
from planner.options import Service
from planner.runs import evaluation
from planner.runs.result import Result, aligned
from planner.runs.run import Run
from planner.scenarios.arguments import (
    OneDesign,
    Source,
    as_scenario,
    only_label,
    plain_value,
    require_known,
    solver_options,
    verb,
)
from planner.scenarios.catalogue import find_system
from planner.scenarios.existing_plans import take_plan
from planner.scenarios.scenario import PLANS_FOLDER, PROBLEM_FOLDER, Entry, Scenario
from planner.scenarios.starter import starter_text

ORIGIN: Final = "Tables made by: "
"""Beginning of the line of a generated scenario that says what made its tables."""
MOST_NAMES: Final = 3
WORKBOOK: Final = "tables.xlsx"
"""Workbook with a sheet for each table of a generated problem."""


def save_scenario(scenario: Scenario, out: Path) -> None:
    """Write `out/scenario.toml`, and beside it the tables of a problem and of plans in memory."""
    make_folder(out)
    if scenario.problem is not None:
        write_tables(scenario.problem.to_tables(), out / PROBLEM_FOLDER)
    for label, given in scenario.additions.plans.items():
        plan = take_plan(scenario.system, scenario.make_problem(), given, f"plans.{label}")
        write_plan(plan, out / PLANS_FOLDER / label)
    replace_text(out / "scenario.toml", scenario.to_toml(out))


def save_runs(scenario: Scenario, runs: Sequence[Run], out: Path, table_format: str = "parquet") -> None:
    """Write `out/scenario.toml` and, for each design, its plan's tables, metrics.csv and run.json."""
    save_scenario(scenario, out)
    for run in runs:
        folder = make_folder(out / run.label)
        # written last: where it is, all else is whole; a link stays a link
        (folder / "run.json").resolve().unlink(missing_ok=True)
        metrics = [
            {
                "metric": metric.name,
                "value": run.metrics.get(metric.name),
                "unit": metric.unit,
                "better": metric.better,
            }
            for metric in run.system.metrics
        ]
        write_table(pd.DataFrame(metrics), folder / "metrics.csv")
        plan = make_folder(folder / "plan")
        written = {f"{name}.{table_format}" for name in (run.plan.to_tables() if run.plan else ())}
        for table in run.system.plan.tables:  # of an earlier run in this folder; no other file is ours
            for name in {f"{table.name}.{suffix}" for suffix in TABLE_FORMATS} - written:
                (plan / name).unlink(missing_ok=True)
        if run.plan is not None:
            write_plan(run.plan, plan, table_format)
        notes = notes_of(run.problem)
        content = {**run.to_dict(), **({"notes": notes} if notes else {})}
        text = json.dumps(content, indent=2, ensure_ascii=False, default=str)
        replace_text(folder / "run.json", text + "\n")


def write_plan(plan: Plan, folder: Path, table_format: str = "parquet") -> None:
    """Write a plan's tables into a folder, one file each."""
    write_tables(plan.to_tables(), folder, table_format)


def write_tables(tables: Mapping[str, pd.DataFrame], folder: Path, table_format: str = "parquet") -> None:
    """Write tables into a folder, one file each."""
    make_folder(folder)
    for name, frame in tables.items():
        write_table(frame, folder / f"{name}.{table_format}")


@verb
def generate(
    system: str,
    preset: str | None = None,
    *,
    seed: int | None = None,
    out: str | Path | None = None,
    table_format: TableFormat = "csv",
    **parameters: Any,
) -> Problem:
    """Return a synthetic problem of a system, and write its tables where a folder is given.

    Parameters
    ----------
    system
        Name of the system.
    preset
        Which problem; default: the system's first; `planner list SYSTEM` shows them all.
    seed
        Of the random draws, where the preset has any; default: the preset's own.
    out
        Folder for the tables, and a scenario.toml over them; default: none is written.
    parameters
        Of the preset by name, such as k=8.

    Returns
    -------
    Problem
        The problem, validated.

    Raises
    ------
    InputError
        For each unknown name, with the nearest.
    """
    system_ = find_system(system)
    name = preset or next(iter(system_.problem.presets))
    if name not in system_.problem.presets:
        raise InputError(
            f"preset {name}: no such preset of {system}" + did_you_mean(name, system_.problem.presets)
        )
    make = system_.problem.presets[name]
    parameters_known = parameters_of(make)
    require_known(
        "generate", parameters, [*parameters_known, "preset", "out", "table_format"], f"preset {name}"
    )
    if seed is not None and "seed" not in parameters_known:
        raise InputError(f"seed {seed}: preset {name} has no random draws; leave the seed out")
    arguments = plain_value(parameters if seed is None else {**parameters, "seed": seed})
    values, faults = check_parameters(make, arguments, where=name, what=f"preset {name}")
    if faults:
        raise InputError(*faults)
    problem: Problem = make(**values)
    if out is not None:
        settings = "".join(f" --set {key}={value}" for key, value in arguments.items())
        command = " ".join(f"planner generate {system} --preset {name}{settings}".split())
        _write_problem(system_, problem, Path(out), table_format, command)
    return problem


def _write_problem(
    system: System, problem: Problem, folder: Path, table_format: TableFormat, command: str
) -> None:
    """Write a problem's tables, and a scenario over them that names the command that made them."""
    _require_no_other_files(system, problem, folder, table_format)
    if table_format == "xlsx":
        path = WORKBOOK
        write_workbook(problem.to_tables(), make_folder(folder) / WORKBOOK)
    else:
        path = "."
        write_tables(problem.to_tables(), folder, table_format)
    text = starter_text(system, origin=f"{ORIGIN}{command}", problem={"path": path})
    replace_text(folder / "scenario.toml", text)


def _require_no_other_files(
    system: System, problem: Problem, folder: Path, table_format: TableFormat
) -> None:
    """Raise InputError where a folder has tables or a scenario that no earlier `generate` has made.

    Tables of an earlier one that this one does not write would become part of the problem.
    """
    if not folder.is_dir():
        return
    scenario = folder / "scenario.toml"
    is_ours = scenario.is_file() and f"# {ORIGIN}" in scenario.read_text("utf-8", errors="replace")
    is_book = table_format == "xlsx"
    written = {WORKBOOK} if is_book else {f"{name}.{table_format}" for name in problem.to_tables()}
    stems = {table.name for table in system.problem.tables} | {Path(WORKBOOK).stem}
    present = {path.name for path in folder.iterdir() if path.name.partition(".")[0] in stems}
    others = present - written if is_ours else present | ({scenario.name} if scenario.exists() else set())
    if others:
        names = few(sorted(others), MOST_NAMES)
        raise InputError(f"{folder}: holds {names} already; name another folder with --out")


@dataclass(frozen=True, kw_only=True)
class ExportedModel:
    """A written model: its design, its numbers of rows and columns, and its objective."""

    design: str
    rows: int
    columns: int
    objective: ObjectiveText | None = None


@verb
def export(
    problem: Source,
    out: str | Path,
    *,
    design: OneDesign | None = None,
    format: Literal["lp", "mps"] | None = None,  # noqa: A002 - as on the command line
    changes: Mapping[str, Any] | None = None,
    service: Service | None = None,
) -> ExportedModel:
    """Write the formal model that a design solves as an LP or MPS file, and return its size.

    Parameters
    ----------
    out
        File of the model.
    design
        As in `solve`; default: the first that has a formal model.
    format
        "lp" or "mps"; default: by the ending of the file.

    Returns
    -------
    ExportedModel
        The design, the size of its model, and its objective.

    Raises
    ------
    InputError
        Also where the design has no formal model.
    """
    settings = solver_options(None, service=service)
    scenario = as_scenario(problem, changes=changes, designs=design, options=settings)
    entry = _find_entry_with_model(scenario, only_label(design))
    path = Path(out)
    observed = entry.design.observe(scenario.make_problem(), **entry.information)
    model = entry.design.formal_model(observed, service=scenario.options.service, parameters=entry.parameters)
    if path.is_dir():
        raise InputError(f"{path}: is a folder, must be a file")
    make_folder(path.parent)
    write_model(model, path, format)
    rows, columns = model.shape
    return ExportedModel(design=entry.label, rows=rows, columns=columns, objective=model.objective_text)


def _find_entry_with_model(scenario: Scenario, label: str | None) -> Entry:
    if label is not None:
        entry = scenario.entry(label)
        if entry.design.model is None:
            models = [design.name for design in scenario.system.designs if design.model]
            others = f"those that have: {', '.join(models)}" if models else "no design of the system has one"
            raise InputError(f"design {label}: has no formal model; {others}")
        return entry
    for entry in evaluation.entries(scenario):
        if entry.design.model is not None:
            return entry
    raise InputError(f"{scenario.name}: none of its designs has a formal model")


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Checked(Result):
    """A valid problem, and the check of a plan on it; `plan` is None where only the problem was checked.

    doubts  sentences on designs of the scenario that promise less on this problem
    """

    system: System
    problem: Any
    plan: Any = None
    violations: Violations
    metrics: Mapping[str, float | None]
    doubts: tuple[str, ...] = ()

    @property
    def is_valid(self) -> bool:
        """Return whether the plan violates no constraint."""
        return not len(self.violations)

    @property
    def verdict(self) -> str:
        """Say in one sentence whether the plan meets all constraints."""
        if self.plan is None:
            return "The problem is valid."
        count = len(self.violations)
        return (
            f"The plan violates constraints in {counted(count, 'places')}."
            if count
            else "The plan meets all constraints."
        )

    def to_frame(self) -> pd.DataFrame:
        """Return the violated constraints, one row for each place."""
        return self.violations.frame

    def summary(self) -> list[str]:
        """Return the verdict, the violations, and the most important metrics."""
        metrics = [
            (metric.label, number(self.metrics.get(metric.name)), metric.unit)
            for metric in self.system.table_metrics
            if metric.name in self.metrics
        ]
        head = f"{self.system.name}: {sizes(self.problem.size())}"
        said = [*notes_of(self.problem), *self.doubts, *self.violations.sentences()]
        return [head, self.verdict, *said, *aligned(metrics)]

    @property
    def exit_code(self) -> int:
        """0 where no constraint is violated, otherwise that of a rejected plan."""
        return 0 if self.is_valid else PlanRejected.exit_code

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, as `--json` prints it."""
        notes = notes_of(self.problem)
        if self.plan is None:
            size = {"size": self.problem.size(), **({"notes": notes} if notes else {})}
            doubts = {"doubts": list(self.doubts)} if self.doubts else {}
            return {"system": self.system.name, "problem": size, "valid": True, **doubts}
        rows = self.violations.frame.to_dict(orient="records")
        said = {"notes": notes} if notes else {}
        return {"system": self.system.name, **said, "violations": rows, "metrics": dict(self.metrics)}


@verb
def check(problem: Source, plan: Any = None, *, changes: Mapping[str, Any] | None = None) -> Checked:
    """Validate a problem, or check and measure a plan for it.

    Parameters
    ----------
    plan
        A plan, its tables by name, one table alone, or a folder or file of them; default: only the problem
        is validated.

    Returns
    -------
    Checked
        The problem; with a plan its constraint violations and metrics.

    Raises
    ------
    InputError
        For an invalid problem, and for tables that are none of a plan.
    PlanRejected
        Where the plan is none for the problem.
    """
    scenario = as_scenario(problem, changes=changes)
    system, made = scenario.system, scenario.make_problem()
    if plan is None:
        return Checked(
            system=system,
            problem=made,
            violations=Violations(),
            metrics={},
            doubts=tuple(_doubts(scenario, made)),
        )
    read = plan if hasattr(plan, "to_tables") else take_plan(system, made, plan, "plan")
    violations = system.plan.check(made, read)
    metrics = system.plan.measure(made, read, None)
    return Checked(system=system, problem=made, plan=read, violations=violations, metrics=metrics)


def _doubts(scenario: Scenario, problem: Any) -> Iterator[str]:
    """Yield a sentence for each design of a scenario that promises less on its problem."""
    for entry in scenario.designs:
        doubt = entry.design.doubts(problem, entry.parameters)
        if doubt:
            yield f"{entry.label}: {doubt}."


def make_folder(path: Path) -> Path:
    """Create a folder where it does not exist, and return it; raise InputError where that fails."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{path}: cannot be created as a folder ({error.strerror})") from None
    return path


def slug(title: str) -> str:
    """Return a file name for a title."""
    words = "".join(letter if letter.isalnum() else " " for letter in title.lower()).split()
    return "_".join(words)[:80]
