"""Run designs on problems: decide on the observed problem, then check and measure on the true one.

No claim of a design is trusted. Its plan is checked on the problem as the design observed it, its
objective value is recomputed from the plan, and its metrics are measured on the true problem.
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

from planner.contract.design import Decision
from planner.contract.plan import Violations
from planner.contract.proof import Proof, Status
from planner.contract.system import System
from planner.contract.tables import digest
from planner.errors import InputError, PlannerError, PlanRejected
from planner.options import Options
from planner.scenarios.scenario import Entry, Scenario, load

log = logging.getLogger(__name__)

TOLERANCE: Final = 1e-6  # relative difference of the claimed objective value and that of the plan


@dataclass(frozen=True, kw_only=True, eq=False)
class Run:
    """One design on one problem.

    decision    the decision on the observed problem; None where the run failed
    plan        the plan as realized on the true problem; None where there is none
    violations  constraint violations of the plan on the true problem
    metrics     metrics of the plan on the true problem, by name
    omniscient  whether the design observed the true problem, so that its bound is valid in truth
    error       the reason why there is no decision
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
        """Return plain data of the run, as `--json` prints it."""
        proof = self.proof
        return {
            "design": self.label,
            "mechanism": str(self.entry.design.mechanism),
            "status": None if self.error else str(proof.status),
            "objective": proof.objective,
            "objective_metric": proof.metric,
            "bound": proof.bound,
            "gap": proof.gap,
            **({"bound_scope": proof.bound_scope} if proof.bound_scope else {}),
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
        """The metric with a bound valid in truth, and the tightest such bound."""
        # a bound that covers some plans only, or an observed problem, is not valid in truth
        proofs = [run.proof for run in self.runs if run.omniscient and run.proof.bound_scope is None]
        proven = [(proof.metric, proof.bound) for proof in proofs if proof.metric and proof.bound is not None]
        if not proven:
            return None
        metric = proven[0][0]
        tightest = min if self.system.metric(metric).better == "more" else max
        return metric, tightest(bound for name, bound in proven if name == metric)

    def share_of_bound(self, run: Run) -> float | None:
        """Return the fraction of the tightest bound that the run's plan reaches; None where unknown."""
        if self.reference is None or run.plan is None:
            return None
        metric, bound = self.reference
        value = run.metrics.get(metric)
        return None if value is None else fraction_of_bound(value, bound, self.system.metric(metric).better)

    @cached_property
    def metrics(self) -> pd.DataFrame:
        """One row for each design: mechanism, status, gap, seconds, every metric, share_of_bound."""
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
        """Return plain data of all runs, as `--json` prints it."""
        runs = [run.to_dict() for run in self.runs]
        for plain, run in zip(runs, self.runs, strict=True):
            if self.reference is not None:
                plain["metrics"]["share_of_bound"] = self.share_of_bound(run)
        tables = self.problem.to_tables()
        problem = {"digest": digest(tables), "size": self.problem.size()}
        return {"system": self.system.name, "problem": problem, "runs": runs}


def fraction_of_bound(value: float, bound: float, better: Literal["more", "less"]) -> float | None:
    """Return the fraction of a bound that a value reaches; None where it has no meaning."""
    if bound <= 0 or value < 0:
        return None
    if better == "more":
        return value / bound
    return bound / value if value > 0 else None


# --- entry points ----------------------------------------------------------------------


def solve(
    scenario: Scenario | str | Path, *, design: str | None = None, options: Options | None = None
) -> Run:
    """Run one design: the named one, the scenario's first, or the system's default.

    raises  InputError, PlanRejected and SolverFailure; where no plan exists, the status says so
    """
    scenario = _load(scenario, options)
    entry = entries(scenario, None if design is None else [design])[0]
    return evaluate(scenario.system, scenario.make_problem(), entry, options=scenario.options)


def compare(
    scenario: Scenario | str | Path,
    *,
    designs: Sequence[str] | None = None,
    options: Options | None = None,
) -> Comparison:
    """Run several designs on one problem: the named ones, all of the scenario's, or all of the system's.

    A design that fails is recorded with its error and does not stop the others.
    """
    scenario = _load(scenario, options)
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
    """Run one design on consecutive problems, each warm-started from the last plan."""
    previous: Run | None = None
    for problem in problems:
        run = evaluate(system, problem, entry, options=options, previous=previous)
        yield run
        if run.plan is not None:
            previous = run


def evaluate(
    system: System, problem: Any, entry: Entry, *, options: Options | None = None, previous: Run | None = None
) -> Run:
    """Run one design on one problem, verify its claims, and measure its plan on the true problem."""
    design = entry.design
    observed = design.observe(problem, **entry.information)
    start = time.perf_counter()
    decision = design.run(
        observed,
        options=options,
        previous=previous.decision if previous else None,
        parameters=entry.parameters,
    )
    seconds = time.perf_counter() - start
    if decision.proof.seconds is None:
        decision = replace(decision, proof=replace(decision.proof, seconds=seconds))
    run = Run(system=system, problem=problem, entry=entry, decision=decision, omniscient=observed is problem)
    if decision.plan is None:
        return run
    violations, metrics = _verify_claims(system, observed, entry.label, decision)
    plan, last = decision.plan, previous.plan if previous else None
    if observed is not problem:
        plan = system.plan.realize(problem, observed, plan)
        violations = system.plan.check(problem, plan)
    if observed is not problem or last is not None:
        metrics = system.plan.measure(problem, plan, last)
    if design.signalling is not None:
        signalling = design.signalling(problem, plan)
        metrics |= {"messages": float(signalling.messages), "signalling_bytes": float(signalling.bytes)}
    return replace(run, plan=plan, violations=violations, metrics=metrics)


# --- verification ------------------------------------------------------------------------


def _verify_claims(
    system: System, observed: Any, label: str, decision: Decision[Any]
) -> tuple[Violations, dict[str, float | None]]:
    """Return violations and metrics on the observed problem; raise PlanRejected where a claim is false."""
    proof = decision.proof
    violations = system.plan.check(observed, decision.plan)
    broken = violations.of_limits(decision.guarantees)
    if len(broken):
        text = "; ".join(broken.sentences())
        raise PlanRejected(f"{label}: the plan violates constraints that it guarantees: {text}")
    metrics = system.plan.measure(observed, decision.plan, None)
    if proof.metric is None or proof.objective is None:
        return violations, metrics
    metric = system.metric(proof.metric)
    value = metrics[metric.name]
    if value is None or _relative_difference(value, proof.objective) > TOLERANCE:
        claimant = proof.backend or "the design"
        raise PlanRejected(
            f"{label}: the plan's {metric.name} is {value}, but {claimant} claimed {proof.objective}"
        )
    if proof.bound is not None:
        beyond = value - proof.bound if metric.better == "more" else proof.bound - value
        if beyond > 0 and _relative_difference(value, proof.bound) > TOLERANCE:
            raise PlanRejected(
                f"{label}: the plan's {metric.name} is {value}, better than its proven bound {proof.bound}"
            )
    return violations, metrics


def _relative_difference(one: float, other: float) -> float:
    # the floor: solvers satisfy constraints to an absolute 1e-9 or so, whatever the objective value
    return abs(one - other) / max(abs(one), abs(other), 1e-3)


def _load(scenario: Scenario | str | Path, options: Options | None) -> Scenario:
    loaded = scenario if isinstance(scenario, Scenario) else load(scenario)
    return loaded if options is None else replace(loaded, options=options)


def entries(scenario: Scenario, labels: Sequence[str] | None = None) -> list[Entry]:
    """Return the designs to run: those of the labels, all of the scenario's, or all of the system's.

    raises  InputError for each unknown label, and for an empty list
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
