"""Run designs on problems: decide on what is believed, then check and measure in truth.

No result leaves this module on a design's own word. The plan is checked against the problem as the
design believed it, the objective it claims is recomputed from the plan, and what it is worth is
measured on the true problem.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Final, Literal

import pandas as pd

from planner.errors import InputError, PlannerError, PlanRejected
from planner.options import Options
from planner.proof import Proof, Status
from planner.scenario import Entry, Scenario, load
from planner.system import Decision, System, Violations
from planner.tables import digest

log = logging.getLogger(__name__)

TOLERANCE: Final = 1e-6  # relative; between what a solver claims and what its plan is worth


@dataclass(frozen=True, kw_only=True, eq=False)
class Run:
    """One design on one problem.

    decision    what was decided on the problem as believed; None where the run failed
    plan        the plan as it plays out on the true problem; None where there is none
    violations  limits that the plan breaks on the true problem
    metrics     what the plan is worth on the true problem, by the system's metric names
    omniscient  the design believed the true problem, so its bound holds in truth
    error       why there is no decision
    """

    system: System
    problem: Any
    entry: Entry
    decision: Decision[Any] | None = None
    plan: Any = None
    violations: Violations = field(default_factory=Violations)
    metrics: Mapping[str, float | None] = field(default_factory=dict)
    omniscient: bool = False
    error: PlannerError | None = None

    @property
    def label(self) -> str:
        return self.entry.label

    @property
    def proof(self) -> Proof:
        return self.decision.proof if self.decision else Proof(status=Status.UNDECIDED)

    @property
    def exit_code(self) -> int:
        """0 with a plan; 3 proven to have none, 4 undecided, or the error's own code."""
        if self.error is not None:
            return self.error.exit_code
        if self.plan is not None:
            return 0
        return 3 if self.proof.status in (Status.INFEASIBLE, Status.UNBOUNDED) else 4

    def to_dict(self) -> dict[str, Any]:
        """Plain data of the run, as `--json` prints it."""
        proof = self.proof
        return {
            "design": self.label,
            "mechanism": str(self.entry.design.mechanism),
            "status": None if self.error else str(proof.status),
            "objective": proof.objective,
            "objective_metric": proof.metric,
            "bound": proof.bound,
            "gap": proof.gap,
            **({"within": proof.within} if proof.within else {}),
            "seconds": proof.seconds,
            "backend": proof.backend,
            "violations": self.violations.frame.to_dict(orient="records"),
            "metrics": dict(self.metrics),
            **({"reasons": list(proof.reasons)} if proof.reasons else {}),
            **({"error": str(self.error)} if self.error else {}),
        }


@dataclass(frozen=True, kw_only=True, eq=False)
class Comparison:
    """Several designs on one problem."""

    system: System
    problem: Any
    runs: tuple[Run, ...]

    @cached_property
    def reference(self) -> tuple[str, float] | None:
        """The metric that shares are taken of, and the tightest bound proven for it in truth."""
        # a bound on a part of all plans, or on what was only believed, bounds nothing in truth
        proofs = [run.proof for run in self.runs if run.omniscient and run.proof.within is None]
        proven = [(proof.metric, proof.bound) for proof in proofs if proof.metric and proof.bound is not None]
        if not proven:
            return None
        metric = proven[0][0]
        tightest = min if self.system.metric(metric).better == "more" else max
        return metric, tightest(bound for name, bound in proven if name == metric)

    def share_of_bound(self, run: Run) -> float | None:
        """How much of the best bound the run's plan reaches, 1 being all; None where unknown."""
        if self.reference is None or run.plan is None:
            return None
        metric, bound = self.reference
        value = run.metrics.get(metric)
        return None if value is None else share(value, bound, self.system.metric(metric).better)

    @cached_property
    def metrics(self) -> pd.DataFrame:
        """One row a design: mechanism, status, gap, seconds, every metric, share_of_bound."""
        rows = [
            {
                "design": run.label,
                "mechanism": str(run.entry.design.mechanism),
                "status": None if run.error else str(run.proof.status),
                "gap": run.proof.gap,
                "seconds": run.proof.seconds,
                "violations": len(run.violations) if run.plan is not None else None,
                **{metric.name: run.metrics.get(metric.name) for metric in self.system.metrics},
                "share_of_bound": self.share_of_bound(run),
            }
            for run in self.runs
        ]
        return pd.DataFrame(rows).set_index("design")

    @property
    def exit_code(self) -> int:
        """0 when every design has a plan, otherwise that of the first that has none."""
        return next((run.exit_code for run in self.runs if run.exit_code), 0)

    def to_dict(self) -> dict[str, Any]:
        """Plain data of all runs, as `--json` prints it."""
        runs = [run.to_dict() for run in self.runs]
        for plain, run in zip(runs, self.runs, strict=True):
            if self.reference is not None:
                plain["metrics"]["share_of_bound"] = self.share_of_bound(run)
        tables = self.problem.to_tables()
        problem = {"digest": digest(tables), "size": self.problem.size()}
        return {"system": self.system.name, "problem": problem, "runs": runs}


def share(value: float, bound: float, better: Literal["more", "less"]) -> float | None:
    """How much of a bound a value reaches, 1 being all; None where that has no meaning."""
    if bound <= 0 or value < 0:
        return None
    if better == "more":
        return value / bound
    return bound / value if value > 0 else None


# --- what users call ----------------------------------------------------------------------


def solve(
    scenario: Scenario | str | Path, *, design: str | None = None, options: Options | None = None
) -> Run:
    """Run one design: the one named, the scenario's first, or the system's default.

    raises  InputError for what cannot be used, PlanRejected and SolverFailure; that there is no
            plan is no error but a status
    """
    scenario = _loaded(scenario, options)
    entry = entries(scenario, None if design is None else [design])[0]
    return evaluate(scenario.system, scenario.make_problem(), entry, options=scenario.options)


def compare(
    scenario: Scenario | str | Path,
    *,
    designs: Sequence[str] | None = None,
    options: Options | None = None,
) -> Comparison:
    """Run several designs on one problem: those named, all of the scenario's, or all of the system's.

    A design that fails is recorded with its error and does not stop the others.
    """
    scenario = _loaded(scenario, options)
    chosen = entries(scenario, designs)
    problem = scenario.make_problem()
    runs = []
    for entry in chosen:
        try:
            run = evaluate(scenario.system, problem, entry, options=scenario.options)
        except PlannerError as error:
            log.warning("%s: %s", entry.label, error)
            run = Run(system=scenario.system, problem=problem, entry=entry, error=error)
        runs.append(run)
    return Comparison(system=scenario.system, problem=problem, runs=tuple(runs))


def roll(
    system: System, problems: Iterable[Any], entry: Entry, *, options: Options | None = None
) -> Iterator[Run]:
    """Run one design on consecutive problems, each decided with the last plan at hand."""
    previous: Run | None = None
    for problem in problems:
        run = evaluate(system, problem, entry, options=options, previous=previous)
        yield run
        if run.plan is not None:
            previous = run


def evaluate(
    system: System, problem: Any, entry: Entry, *, options: Options | None = None, previous: Run | None = None
) -> Run:
    """Run one design on one problem, and prove its plan before anything is said of it."""
    design = entry.design
    believed = design.sees(problem, **entry.sees)
    start = time.perf_counter()
    decision = design.decide(
        believed,
        options=options or Options(),
        previous=previous.decision if previous else None,
        **entry.parameters,
    )
    seconds = time.perf_counter() - start
    if decision.proof.seconds is None:
        decision = replace(decision, proof=replace(decision.proof, seconds=seconds))
    run = Run(system=system, problem=problem, entry=entry, decision=decision, omniscient=believed is problem)
    if decision.plan is None:
        return run
    broken, metrics = _proven(system, believed, entry.label, decision)
    plan, last = decision.plan, previous.plan if previous else None
    if believed is not problem:
        plan = system.enact(problem, believed, plan)
        broken = system.check(problem, plan)
    if believed is not problem or last is not None:
        metrics = system.measure(problem, plan, last)
    if design.exchange is not None:
        told = design.exchange(problem, plan)
        metrics |= {"messages": float(told.messages), "exchanged_bytes": float(told.bytes)}
    return replace(run, plan=plan, violations=broken, metrics=metrics)


# --- proof --------------------------------------------------------------------------------


def _proven(
    system: System, believed: Any, label: str, decision: Decision[Any]
) -> tuple[Violations, dict[str, float | None]]:
    """What the plan breaks and is worth on the believed problem; PlanRejected where it claims more."""
    proof = decision.proof
    broken = system.check(believed, decision.plan)
    kept = broken.of_limits(decision.keeps)
    if len(kept):
        raise PlanRejected(f"{label}: the plan breaks what it claims to keep: " + "; ".join(kept.sentences()))
    metrics = system.measure(believed, decision.plan, None)
    if proof.metric is None or proof.objective is None:
        return broken, metrics
    metric = system.metric(proof.metric)
    worth = metrics[metric.name]
    if worth is None or _apart(worth, proof.objective) > TOLERANCE:
        claimant = proof.backend or "the design"
        raise PlanRejected(
            f"{label}: the plan's {metric.name} is {worth}, but {claimant} claimed {proof.objective}"
        )
    if proof.bound is not None:
        beyond = worth - proof.bound if metric.better == "more" else proof.bound - worth
        if beyond > 0 and _apart(worth, proof.bound) > TOLERANCE:
            raise PlanRejected(
                f"{label}: the plan's {metric.name} is {worth}, better than its proven bound {proof.bound}"
            )
    return broken, metrics


def _apart(one: float, other: float) -> float:
    # the floor: solvers keep limits to an absolute 1e-9 or so, whatever the size of the objective
    return abs(one - other) / max(abs(one), abs(other), 1e-3)


def _loaded(scenario: Scenario | str | Path, options: Options | None) -> Scenario:
    loaded = scenario if isinstance(scenario, Scenario) else load(scenario)
    return loaded if options is None else replace(loaded, options=options)


def entries(scenario: Scenario, labels: Sequence[str] | None = None) -> list[Entry]:
    """The designs to run: those labelled, else all of the scenario's, else all of the system's.

    raises  InputError for each label that is none, and for no label at all
    """
    if labels is None:
        own = list(scenario.designs)
        return own or [Entry(label=design.name, design=design) for design in scenario.system.designs]
    if not labels:
        raise InputError(f"{scenario.name}: designs: none is named")
    faults: list[str] = []
    chosen: list[Entry] = []
    for label in dict.fromkeys(labels):
        try:
            chosen.append(scenario.entry(label))
        except InputError as error:
            faults += error.faults
    if faults:
        raise InputError(*faults)
    return chosen
