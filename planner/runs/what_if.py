"""Explanations of plans by the system's what-if study, as tables and sentences."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from planner.contract.parameters import check_parameters, parameters_of
from planner.contract.proof import Proof
from planner.contract.studies import Decided, Explanation
from planner.contract.system import System
from planner.errors import InputError, did_you_mean
from planner.formatting import sizes
from planner.options import OPTION_NAMES, Algorithm, Options, Service
from planner.runs import evaluation, warm_start
from planner.runs.result import Result
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
from planner.scenarios.scenario import Entry, Scenario

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Explained(Result):
    """A run with the explanation of its plan; None where there is no plan."""

    run: Run
    explanation: Explanation | None

    @property
    def plan(self) -> Any:
        """The plan that is explained; None where there is none."""
        return self.run.plan

    @property
    def proof(self) -> Proof:
        """Status, objective value and bound of the plan."""
        return self.run.proof

    @property
    def metrics(self) -> Mapping[str, float | None]:
        """Metrics of the plan on the true problem, by name."""
        return self.run.metrics

    @property
    def verdict(self) -> str:
        """Describe the run by its headline metric, in plain sentences."""
        return self.run.verdict

    def to_frame(self, section: str | None = None) -> pd.DataFrame:
        """Return a section of the explanation by the beginning of its title, or its first one.

        raises  InputError where there is no plan, or no such section
        """
        if self.explanation is None:
            raise InputError(f"{self.run.label}: has no plan to explain ({self.run.status})")
        for item in self.explanation.sections:
            if section is None or item.title.lower().startswith(section.lower()):
                return item.frame
        titles = [item.title for item in self.explanation.sections]
        raise InputError(
            f"{section}: no such section of this explanation" + did_you_mean(str(section), titles)
        )

    def summary(self) -> list[str]:
        """Return the sentences of the explanation."""
        if self.explanation is None:
            return self.run.summary()
        head = f"{self.run.system.name}, {self.run.label}: {sizes(self.run.problem.size())}"
        return [head, *(f"- {sentence}" for sentence in self.explanation.sentences)]

    @property
    def exit_code(self) -> int:
        """Exit code of the run: 0 with a plan, 3 proven to have none, 4 undecided."""
        return self.run.exit_code

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, as `--json` prints it."""
        return {
            **self.run.alone().to_dict(),
            "explanation": self.explanation.to_dict() if self.explanation else None,
        }


@verb
def explain(
    problem: Source,
    *,
    design: OneDesign | None = None,
    previous: Any = None,
    changes: Mapping[str, Any] | None = None,
    options: Options | None = None,
    backend: str | None = None,
    algorithm: Algorithm | None = None,
    time_limit_s: float | None = None,
    gap: float | None = None,
    threads: int | None = None,
    seed: int | None = None,
    service: Service | None = None,
    **parameters: Any,
) -> Explained:
    """Solve a problem with one design, and explain the limits of the plan and possible improvements.

    The plan is explained on the problem as the design observed it.

    Parameters
    ----------
    previous
        Plan to compare to: a run, a plan, its tables by name, a folder or file of them, or the name of a
        design; default: the system's design of today's practice, unless its plan is explained. A design
        that limits changes keeps to this plan, the search of others may start from it.
    parameters
        Of the explanation by name, such as candidates=20, the number of changes to verify; those of the
        design go into `design`: design={"optimum": {"paths": 4}}.

    Returns
    -------
    Explained
        The run, and tables and sentences on what limits its plan and which changes would help.

    Raises
    ------
    InputError
        For an invalid problem, parameter or name; also where the system has no explanations.
    PlanRejected
        Where `previous` is no plan for the problem.
    SolverFailure
        Where the solver fails.
    """
    settings = solver_options(
        options, backend=backend, algorithm=algorithm, time_limit_s=time_limit_s, gap=gap, threads=threads,
        seed=seed, service=service,
    )  # fmt: skip
    loaded = as_scenario(problem, changes=changes, designs=design, options=settings)
    study = loaded.system.studies.what_if
    if study is None:
        raise InputError(f"{loaded.system.name}: plans of this system cannot be explained")
    values = _check_parameters(loaded.system, study, parameters)
    entry = evaluation.select_entry(loaded, only_label(design))
    return _explain_entry(loaded, entry, study, previous, values)


def _explain_entry(
    loaded: Scenario, entry: Entry, study: Callable[..., Explanation], previous: Any, values: dict[str, Any]
) -> Explained:
    """Solve the problem of a scenario with one design, and explain the plan beside the one to compare to.

    values  parameters of the explanation
    """
    system, options = loaded.system, loaded.options
    true = loaded.make_problem()
    start = None if previous is None else evaluation.find_previous(loaded, true, previous)
    before = None if start is None else start.plan
    if start is None or entry.design.keeps_previous(entry.parameters):
        made = evaluation.evaluate(system, true, entry, options=options, previous=start)
    else:  # what is proven does not depend on its start
        made, start = warm_start.evaluate_near(start, system, true, entry, options=options), None
    if made.plan is None or made.decision is None:
        return Explained(run=made, explanation=None)
    observed = entry.design.observe(true, **entry.information)
    before, name = _find_baseline(system, entry, observed, before, options)
    decided = replace(
        decided_of(made, observed),
        baseline=before,
        baseline_name=name,
        previous=None if start is None else start.decision,
    )
    earlier = {"previous": before} if "previous" in inspect.signature(study).parameters else {}
    return Explained(run=made, explanation=study(observed, decided, options=options, **earlier, **values))


def _find_baseline(
    system: System, entry: Entry, observed: Any, before: Any, options: Options
) -> tuple[Any, str]:
    """Return the plan to compare to, with its name: the one before, else that of today's practice, if any."""
    practice = system.studies.practice
    if before is not None or practice is None or practice == entry.design.name:
        return before, "the previous plan"
    return system.design(practice).run(observed, options=options).plan, system.studies.practice_name


def _check_parameters(
    system: System, study: Callable[..., Explanation], parameters: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the parameters of an explanation; raise InputError for unknown and invalid ones."""
    what = f"the explanations of {system.name}"
    require_known(
        "explain", parameters, [*parameters_of(study), *OPTION_NAMES, "design", "previous", "changes"], what
    )
    values, faults = check_parameters(study, plain_value(parameters), where="explain", what=what)
    if faults:
        raise InputError(*faults)
    return values


def decided_of(made: Run, observed: Any) -> Decided:
    """Return the decision of a run with a plan, measured on the problem that the design observed."""
    assert made.decision is not None
    return Decided(
        design=made.entry.design,
        parameters=made.entry.parameters,
        decision=made.decision,
        metrics=made.system.plan.measure(observed, made.decision.plan, None),
    )
