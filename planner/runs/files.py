"""Files of results and problems: written by `--out`, `generate` and `export`, read by `check --plan`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pandas as pd

from planner.backends.export import write_model
from planner.contract.parameters import check_parameters, parameters_of
from planner.contract.plan import Plan, Violations
from planner.contract.system import System
from planner.errors import InputError, did_you_mean
from planner.io.file_replacement import replace_text
from planner.io.table_files import find_tables, read_tables, write_table
from planner.runs import run
from planner.runs.run import Run
from planner.scenarios.catalogue import find_system
from planner.scenarios.scenario import Entry, Scenario
from planner.scenarios.starter import starter_text


def save_runs(scenario: Scenario, runs: Sequence[Run], out: Path, table_format: str = "parquet") -> None:
    """Write `out/scenario.toml` and, for each design, its plan's tables, metrics.csv and run.json."""
    make_folder(out)
    replace_text(out / "scenario.toml", scenario.to_toml(out))
    for one in runs:
        folder = make_folder(out / one.label)
        (folder / "run.json").unlink(missing_ok=True)  # written last: where it is, all else is whole
        metrics = [
            {
                "metric": metric.name,
                "value": one.metrics.get(metric.name),
                "unit": metric.unit,
                "better": metric.better,
            }
            for metric in one.system.metrics
        ]
        write_table(pd.DataFrame(metrics), folder / "metrics.csv")
        plan = make_folder(folder / "plan")
        for table in one.system.plan.tables:  # of an earlier run in this folder; no other file is ours
            for suffix in ("csv", "parquet"):
                (plan / f"{table.name}.{suffix}").unlink(missing_ok=True)
        if one.plan is not None:
            write_plan(one.plan, plan, table_format)
        text = json.dumps(one.to_dict(), indent=2, ensure_ascii=False, default=str)
        replace_text(folder / "run.json", text + "\n")


def write_plan(plan: Plan, folder: Path, table_format: str = "parquet") -> None:
    """Write a plan's tables into a folder, one file each."""
    make_folder(folder)
    for name, frame in plan.to_tables().items():
        write_table(frame, folder / f"{name}.{table_format}")


def read_plan(system: System, problem: Any, folder: Path) -> Any:
    """Read a plan from the tables in a folder.

    raises  InputError where no table of the system is there, PlanRejected if the tables are no plan
    """
    names = [table.name for table in system.plan.tables]
    found = find_tables(system.plan.tables, folder, names)
    if not found:
        raise InputError(f"{folder}: has no table of a plan; {system.name} has {', '.join(names)}")
    return system.plan.from_tables(problem, read_tables(system.plan.tables, found))


def generate(
    system_name: str, preset: str | None, given: Mapping[str, Any], out: Path, table_format: str = "csv"
) -> dict[str, int]:
    """Write the tables of a preset's problem and a scenario.toml over them; return the problem's size."""
    system = find_system(system_name)
    name = preset or next(iter(system.problem.presets))
    if name not in system.problem.presets:
        raise InputError(
            f"--preset {name}: no such preset of {system.name}" + did_you_mean(name, system.problem.presets)
        )
    if "seed" in given and "seed" not in parameters_of(system.problem.presets[name]):
        raise InputError(f"--seed {given['seed']}: preset {name} has no random draws; leave the seed out")
    values, faults = check_parameters(
        system.problem.presets[name], given, where="--set", what=f"preset {name}"
    )
    if faults:
        raise InputError(*(fault.replace("--set.", "--set ", 1) for fault in faults))
    problem = system.problem.presets[name](**values)
    make_folder(out)
    for table, frame in problem.to_tables().items():
        write_table(frame, out / f"{table}.{table_format}")
    settings = "".join(f" --set {key}={value}" for key, value in given.items())
    command = f"planner generate {system.name} --preset {name}{settings}"
    replace_text(out / "scenario.toml", starter_text(system, " ".join(command.split())))
    size: dict[str, int] = problem.size()
    return size


@dataclass(frozen=True, kw_only=True)
class ExportedModel:
    """A written model: its design, and its numbers of rows and columns."""

    design: str
    rows: int
    columns: int


def export(
    scenario: Scenario, label: str | None, out: Path, format_: Literal["lp", "mps"] | None
) -> ExportedModel:
    """Write the formal model that a design solves to an LP or MPS file."""
    entry = _find_entry_with_model(scenario, label)
    observed = entry.design.observe(scenario.make_problem(), **entry.information)
    model = entry.design.formal_model(observed, service=scenario.options.service, parameters=entry.parameters)
    if out.is_dir():
        raise InputError(f"{out}: is a folder, must be a file")
    make_folder(out.parent)
    write_model(model, out, format_)
    rows, columns = model.shape
    return ExportedModel(design=entry.label, rows=rows, columns=columns)


def _find_entry_with_model(scenario: Scenario, label: str | None) -> Entry:
    if label is not None:
        entry = scenario.entry(label)
        if entry.design.model is None:
            models = [design.name for design in scenario.system.designs if design.model]
            raise InputError(f"--design {label}: has no formal model; those that have: {', '.join(models)}")
        return entry
    for entry in run.entries(scenario):
        if entry.design.model is not None:
            return entry
    raise InputError(f"{scenario.name}: none of its designs has a formal model")


def check_plan(system: System, problem: Any, folder: Path) -> tuple[Violations, dict[str, float | None]]:
    """Return constraint violations and metrics of the plan in a folder; raise PlanRejected if it is none."""
    plan = read_plan(system, problem, folder)
    return system.plan.check(problem, plan), system.plan.measure(problem, plan, None)


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
