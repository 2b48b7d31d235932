"""Explanations of plans by the system's what-if study, as tables and sentences."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from planner.contract.parameters import check_parameters
from planner.contract.studies import Decided, Explanation
from planner.contract.system import System
from planner.errors import InputError, PlanRejected, did_you_mean
from planner.options import Options
from planner.runs import run
from planner.runs.files import read_plan
from planner.runs.run import Run
from planner.scenarios.scenario import Entry, Scenario, load


@dataclass(frozen=True, kw_only=True, eq=False)
class Explained:
    """A run with the explanation of its plan; None where there is no plan."""

    run: Run
    explanation: Explanation | None

    @property
    def exit_code(self) -> int:
        """Exit code of the run: 0 with a plan, 3 proven to have none, 4 undecided."""
        return self.run.exit_code

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, as `--json` prints it."""
        whole = run.Comparison(system=self.run.system, problem=self.run.problem, runs=(self.run,)).to_dict()
        return {**whole, "explanation": self.explanation.to_dict() if self.explanation else None}


def explain(
    scenario: Scenario | str | Path,
    *,
    design: str | None = None,
    previous: str | Path | None = None,
    options: Options | None = None,
    parameters: Mapping[str, Any] | None = None,
) -> Explained:
    """Solve a scenario with one design, and explain the plan.

    The plan is explained on the problem as the design observed it.

    design      its label; default: the scenario's first, or the system's default
    previous    plan to compare to: a folder of plan tables, or the label of a design; default: the
                system's design of today's practice
    parameters  of the system's `explain`, e.g. the number of changes to verify
    raises      InputError, also where the system has no what-if study; PlanRejected, SolverFailure
    """
    loaded = scenario if isinstance(scenario, Scenario) else load(scenario)
    options = loaded.options if options is None else options
    system = loaded.system
    if system.studies.what_if is None:
        raise InputError(f"{system.name}: plans of this system cannot be explained")
    values, faults = check_parameters(
        system.studies.what_if, parameters or {}, where="explain", what=f"explain of {system.name}"
    )
    if faults:
        raise InputError(*faults)
    entry = run.entries(loaded, None if design is None else [design])[0]
    problem = loaded.make_problem()
    before = None if previous is None else _plan_before(loaded, problem, previous, options)
    made = run.evaluate(system, problem, entry, options=options)
    if made.plan is None or made.decision is None:
        return Explained(run=made, explanation=None)
    observed = entry.design.observe(problem, **entry.information)
    name = "the previous plan"
    if before is None and system.studies.practice is not None:
        practice = system.design(system.studies.practice)
        before, name = practice.run(observed, options=options).plan, system.studies.practice_name
    decided = Decided(
        design=entry.design,
        parameters=entry.parameters,
        decision=made.decision,
        metrics=system.plan.measure(observed, made.decision.plan, None),
        baseline=before,
        baseline_name=name,
    )
    accepted = inspect.signature(system.studies.what_if).parameters
    given = {"previous": before} if "previous" in accepted else {}
    explanation = system.studies.what_if(observed, decided, options=options, **given, **values)
    return Explained(run=made, explanation=explanation)


def _plan_before(scenario: Scenario, problem: Any, previous: str | Path, options: Options) -> Any:
    system = scenario.system
    if Path(previous).is_dir():
        return _read_valid_plan(system, problem, Path(previous))
    labels = [entry.label for entry in scenario.designs] + [design.name for design in system.designs]
    if str(previous) not in labels:
        raise InputError(
            f"{previous}: is neither a folder with a plan nor a design of {system.name}"
            + did_you_mean(str(previous), labels)
        )
    entry: Entry = scenario.entry(str(previous))
    made = run.evaluate(system, problem, entry, options=options)
    if made.plan is None:
        raise InputError(f"{previous}: has no plan to compare to ({made.proof.status})")
    return made.plan


def _read_valid_plan(system: System, problem: Any, folder: Path) -> Any:
    plan = read_plan(system, problem, folder)
    try:
        system.plan.check(problem, plan)
    except PlanRejected as error:
        raise PlanRejected(f"{folder}: {error}") from None
    return plan
