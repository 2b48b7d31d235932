"""The change from one plan of a problem to another: rows that differ, metrics of both, and its steps."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import pandas as pd

from planner.contract.system import System
from planner.errors import InputError, PlannerError, PlanRejected, did_you_mean
from planner.formatting import counted, number, sizes
from planner.options import Algorithm, Options, Service
from planner.runs.evaluation import evaluate, select_entry
from planner.runs.files import write_plan
from planner.runs.plan_diff import compare_plans
from planner.runs.result import Result, aligned
from planner.runs.run import Run
from planner.scenarios.arguments import Source, as_scenario, solver_options, verb
from planner.scenarios.existing_plans import existing_plan_design
from planner.scenarios.scenario import Entry, Scenario, from_document
from planner.scenarios.user_designs import is_user_design, name_of

KINDS: Final = ("new", "gone", "changed")
"""Kinds of change of a row, as `compare_plans` has them."""


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class PlanChange(Result):
    """The change from one plan to another.

    tables  the rows that differ, by the table's name: `change`, and each figure before and after
    update  the run that orders the change in steps; None where the system's changes have no steps
    """

    before: Run
    after: Run
    tables: Mapping[str, pd.DataFrame]
    update: Run | None = None

    @property
    def system(self) -> System:
        return self.after.system

    @property
    def sentences(self) -> list[str]:
        """The sentences of the verdict: what changes in each table, then in how many steps."""
        sentences = []
        for name, frame in self.tables.items():
            kinds = frame["change"].value_counts()
            counts = [f"{kinds[kind]:,} {kind}" for kind in KINDS if kind in kinds]
            if counts:
                sentences.append(f"{name}: {', '.join(counts)} ({counted(len(frame), 'rows')}).")
        if not sentences:
            sentences.append("The plans are the same.")
        if self.update is not None and self.update.error is None:
            sentences.append(f"The change as steps of {self.update.system.name}: {self.update.verdict}")
        elif self.update is not None:
            sentences.append(f"The change has no steps: {self.update.reason}.")
        return sentences

    @property
    def verdict(self) -> str:
        """Say the changes, and the number of steps."""
        return " ".join(self.sentences)

    @property
    def steps(self) -> pd.DataFrame | None:
        """The steps of the change, one row each; None without them."""
        has_plan = self.update is not None and self.update.plan is not None
        return self.update.to_frame() if has_plan and self.update is not None else None

    @property
    def metrics(self) -> pd.DataFrame:
        """One row for each metric: before and after."""
        rows = {
            metric.name: [run.metrics.get(metric.name) for run in (self.before, self.after)]
            for metric in self.system.metrics
        }
        return pd.DataFrame.from_dict(rows, orient="index", columns=["before", "after"], dtype=float)

    def to_frame(self, table: str | None = None) -> pd.DataFrame:
        """Return the rows of a table that differ, or of the first table with any.

        raises  InputError for an unknown table
        """
        differing = next((name for name, frame in self.tables.items() if len(frame)), None)
        name = table or differing or next(iter(self.tables))
        if name not in self.tables:
            raise InputError(f"{name}: no such table of both plans" + did_you_mean(name, self.tables))
        return self.tables[name]

    def summary(self) -> list[str]:
        """Return the sentences, and the headline metric of both plans."""
        head = f"{self.system.name}, {self.before.label} to {self.after.label}: "
        rows = [["metric", "before", "after"]]
        for metric in self.system.table_metrics:
            values = (run.metrics.get(metric.name) for run in (self.before, self.after))
            rows.append([metric.label, *map(number, values)])
        return [head + sizes(self.after.problem.size()), *self.sentences, *aligned(rows)]

    @property
    def exit_code(self) -> int:
        """0: both plans are compared, also where a limit is violated."""
        return 0

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, as `--json` prints it."""
        frames = {**self.tables, **({} if self.steps is None else {"steps": self.steps})}
        plain = {
            name: frame.astype(object).where(frame.notna(), None).to_dict(orient="records")
            for name, frame in frames.items()
        }
        metrics = self.metrics.astype(object).where(self.metrics.notna(), None)
        return {
            "system": self.system.name,
            "before": self.before.label,
            "after": self.after.label,
            "verdict": self.verdict,
            "metrics": metrics.to_dict(orient="index"),
            "steps": plain.pop("steps", None),
            "update": None if self.update is None else self.update.to_dict(),
            "changes": plain,
        }


@verb
def diff(
    problem: Source,
    before: Any,
    after: Any,
    *,
    steps: bool = True,
    changes: Mapping[str, Any] | None = None,
    options: Options | None = None,
    backend: str | None = None,
    algorithm: Algorithm | None = None,
    time_limit_s: float | None = None,
    gap: float | None = None,
    threads: int | None = None,
    seed: int | None = None,
    service: Service | None = None,
) -> PlanChange:
    """Compare two plans of a problem: rows that differ, metrics of both, and the steps of the change.

    Parameters
    ----------
    before
        The plan in place: a run, a plan, its tables by name, a folder or file of them, or a design by name.
    after
        The plan to change to, in the same forms; a design may start from the plan before.
    steps
        Order the change in steps too, where the system has them; default: true.

    Returns
    -------
    PlanChange
        The rows that differ, the metrics of both plans, and the run that orders the change.

    Raises
    ------
    InputError
        For an invalid problem, name or plan, with every error.
    PlanRejected
        Where one of them is no plan of the problem.
    """
    settings = solver_options(
        options, backend=backend, algorithm=algorithm, time_limit_s=time_limit_s, gap=gap, threads=threads,
        seed=seed, service=service,
    )  # fmt: skip
    scenario = as_scenario(problem, changes=changes, options=settings)
    made = scenario.make_problem()
    first = _run_of(scenario, made, before, "before", None)
    second = _run_of(scenario, made, after, "after", first)
    tables = compare_plans(scenario.system, first.plan.to_tables(), second.plan.to_tables())
    is_same = all(frame.empty for frame in tables.values())
    update = _order_steps(scenario.system, first, second) if steps and not is_same else None
    return PlanChange(before=first, after=second, tables=tables, update=update)


def _run_of(scenario: Scenario, problem: Any, given: Any, label: str, previous: Run | None) -> Run:
    """Return the run of a side of the comparison: of a design, or of an existing plan."""
    system = scenario.system
    if isinstance(given, Run):
        if given.system.name != system.name:
            raise PlanRejected(f"{label}: is a plan of {given.system.name}, not of {system.name}")
        run = given
    elif is_user_design(given) and not hasattr(given, "to_tables"):
        scenario = as_scenario(scenario, designs=given)
        run = evaluate(
            scenario.system, problem, scenario.entry(name_of(given)),
            options=scenario.options, previous=previous,
        )  # fmt: skip
    elif isinstance(given, str) and not Path(given).exists():
        run = evaluate(
            system, problem, _entry(scenario, given, label), options=scenario.options, previous=previous
        )
    else:
        entry = Entry(label=label, design=existing_plan_design(system, label, given))
        run = evaluate(system, problem, entry, previous=previous)
        name = Path(given).name if isinstance(given, str | Path) else label
        run = replace(run, entry=replace(entry, label=name))
    if run.plan is None:
        raise InputError(f"{label}: {run.label} has no plan ({run.status})")
    return run


def _entry(scenario: Scenario, name: str, label: str) -> Entry:
    labels = [entry.label for entry in (*scenario.designs, *scenario.plans)]
    labels += [design.name for design in scenario.system.designs]
    if name not in labels:
        raise InputError(
            f"{label}: {name} is neither a folder or file with a plan nor a design of {scenario.system.name}"
            + did_you_mean(name, labels)
        )
    return scenario.entry(name)


def _order_steps(system: System, before: Run, after: Run) -> Run | None:
    """Return the run that orders a change in steps; None where the system names no system for it."""
    if system.studies.update is None:
        return None
    name, source = system.studies.update
    with tempfile.TemporaryDirectory(prefix="planner-") as folder:
        for side, run in (("before", before), ("after", after)):
            write_plan(run.plan, Path(folder, side))
        section = {"source": source, "before": "before", "after": "after"}
        scenario = from_document({"system": name, "problem": section}, name=name, folder=Path(folder))
        entry = select_entry(scenario)
        try:
            return evaluate(scenario.system, scenario.make_problem(), entry, options=scenario.options)
        except PlannerError as error:  # such as of flows that run in circles
            return Run(system=scenario.system, problem=None, entry=entry, error=error)
