"""Run designs on problems: decide on the observed problem, then check and measure on the true one.

No claim of a design is trusted. Its plan is checked on the problem as the design observed it, its
objective value is recomputed from the plan, and its metrics are measured on the true problem.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import isfinite
from pathlib import Path
from typing import Any, Final

from planner import clock, compile_events, kernels
from planner.contract import progress
from planner.contract.design import Decision
from planner.contract.metrics import Metric
from planner.contract.plan import Violations
from planner.contract.proof import Proof, Status
from planner.contract.ranking import compare_ranks
from planner.contract.system import System
from planner.contract.tolerances import EXACT, RELATIVE, allowance
from planner.errors import InputError, PlannerError, PlanRejected, did_you_mean
from planner.options import OPTION_NAMES, Algorithm, Options, Service
from planner.runs.run import Comparison, Run
from planner.scenarios.arguments import (
    Designs,
    OneDesign,
    Source,
    as_scenario,
    labels_of,
    only_label,
    require_known,
    solver_options,
    verb,
)
from planner.scenarios.existing_plans import take_plan
from planner.scenarios.scenario import Additions, Entry, Scenario, with_additions

log = logging.getLogger(__name__)

_ready: set[tuple[str, str, str, str]] = set()
"""System, design, parameters and backend of the designs whose kernels are ready."""

TOLERANCE: Final = RELATIVE
"""Largest relative amount by which a plan's value may be better than a bound."""


@verb
def solve(
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
) -> Run:
    """Run one design on a problem, and return its plan with proof, metrics and verdict.

    Parameters
    ----------
    parameters
        Of the design by name, such as paths=4; `planner list SYSTEM` shows them with units and defaults.
        One that is named as an argument here goes into `design`: design={"valiant": {"seed": 3}}.

    Returns
    -------
    Run
        The plan with its proof, its metrics by name, constraint violations and a verdict in words; without a
        plan where none exists, which its status says.

    Raises
    ------
    InputError
        For an invalid problem, parameter or name, with every error.
    PlanRejected
        Where a design or a solver returns a plan that is none for the problem.
    SolverFailure
        Where the solver fails.
    """
    settings = solver_options(
        options, backend=backend, algorithm=algorithm, time_limit_s=time_limit_s, gap=gap, threads=threads,
        seed=seed, service=service,
    )  # fmt: skip
    scenario = as_scenario(problem, changes=changes, designs=design, options=settings)
    label = only_label(design)
    if parameters:
        entry = select_entry(scenario, label)
        label, parameters_known = entry.label, [*entry.design.parameters, "information"]
        require_known("solve", parameters, [*parameters_known, *OPTION_NAMES, "changes"], f"design {label}")
        scenario = as_scenario(scenario, designs={label: parameters})
    entry, made = select_entry(scenario, label), scenario.make_problem()
    start = None if previous is None else find_previous(scenario, made, previous)
    return evaluate(scenario.system, made, entry, options=scenario.options, previous=start)


@verb
def compare(
    problem: Source,
    *,
    designs: Designs | None = None,
    plans: Mapping[str, Any] | None = None,
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
) -> Comparison:
    """Run several designs on one problem, and return their metrics side by side with a verdict.

    A design that fails is recorded with its error and does not stop the others.

    Parameters
    ----------
    plans
        Existing plans to check and measure beside the designs, by name, such as {"today": frames}: each a
        plan, its tables by name, one table alone, a folder of tables or a file that the system reads.

    Returns
    -------
    Comparison
        A run for each plan and design, by its label, with tables and charts of all of them.

    Raises
    ------
    InputError
        For an invalid problem, parameter, name or plan, with every error.
    PlanRejected
        Where an existing plan is none for the problem.
    """
    settings = solver_options(
        options, backend=backend, algorithm=algorithm, time_limit_s=time_limit_s, gap=gap, threads=threads,
        seed=seed, service=service,
    )  # fmt: skip
    scenario = as_scenario(problem, changes=changes, designs=designs, options=settings)
    scenario = with_additions(scenario, Additions(plans=plans or {}))
    selected = entries(scenario, labels_of(designs))
    made = scenario.make_problem()
    start = None if previous is None else find_previous(scenario, made, previous)
    runs = [evaluate(scenario.system, made, plan, previous=start) for plan in scenario.plans]
    for entry in [entry for entry in selected if entry not in scenario.plans]:
        try:
            run = evaluate(scenario.system, made, entry, options=scenario.options, previous=start)
        except PlannerError as error:
            run = Run(system=scenario.system, problem=made, entry=entry, error=error)
            log.warning("%s: %s", run.label, run.reason, exc_info=error.__cause__)
        runs.append(run)
    return Comparison(system=scenario.system, problem=made, runs=tuple(runs), scenario=scenario)


def find_previous(scenario: Scenario, problem: Any, previous: Any) -> Run:
    """Return the run of a plan before, from which a design starts or to which it is compared.

    previous  a run, a decision, the name of a design, or a plan in any form that `take_plan` reads
    raises    InputError for another form or an unknown name, PlanRejected for no plan of the problem
    """
    system = scenario.system
    if isinstance(previous, Run):
        if previous.system.name != system.name:
            raise PlanRejected(f"previous: is a plan of {previous.system.name}, not of {system.name}")
        if previous.plan is None:
            raise InputError(f"previous: {previous.label} has no plan ({previous.status})")
        return previous
    if isinstance(previous, str) and not Path(previous).exists():
        return _run_named(scenario, problem, previous)
    if isinstance(previous, Decision):
        decision, plan = previous, previous.plan
        if plan is None:
            raise InputError(f"previous: has no plan ({previous.proof.status})")
    else:
        plan = take_plan(system, problem, previous, "previous")
        plan = previous if hasattr(previous, "to_tables") else plan
        decision = Decision(plan=plan, proof=Proof(status=Status.FEASIBLE))
    try:
        system.plan.check(problem, plan)
    except PlanRejected as error:
        where = previous if isinstance(previous, str | Path) else "previous"
        raise PlanRejected(f"{where}: {error}") from None
    entry = Entry(label="previous", design=system.default_design)
    return Run(system=system, problem=None, entry=entry, decision=decision, plan=plan)


def _run_named(scenario: Scenario, problem: Any, name: str) -> Run:
    """Return the run of a design by its name, as the plan before."""
    entries_known = [*scenario.designs, *scenario.plans]
    labels = [entry.label for entry in entries_known] + [design.name for design in scenario.system.designs]
    if name not in labels:
        raise InputError(
            f"{name}: is neither a folder with a plan nor a design of {scenario.system.name}"
            + did_you_mean(name, labels)
        )
    run = evaluate(scenario.system, problem, scenario.entry(name), options=scenario.options)
    if run.plan is None:
        raise InputError(f"{name}: has no plan to start from or to compare to ({run.proof.status})")
    return run


def evaluate(
    system: System, problem: Any, entry: Entry, *, options: Options | None = None, previous: Run | None = None
) -> Run:
    """Run one design on one problem, verify its claims, and measure its plan on the true problem."""
    design, options = entry.design, options or Options()
    compile_events.listen()  # to kernels that do not come from planner.compiled
    compiled_s = clock.paused_s()
    observed = design.observe(problem, **entry.information)
    start = clock.wall_now()
    decision = design.run(
        observed,
        options=options,
        previous=previous.decision if previous else None,
        parameters=entry.parameters,
    )
    own_s = decision.proof.seconds
    seconds = clock.wall_now() - start if own_s is None else own_s
    decision = _with_times(decision, seconds, clock.paused_s() - compiled_s)
    run = Run(
        system=system,
        problem=problem,
        entry=entry,
        decision=decision,
        options=options,
        omniscient=observed is problem,
    )
    if decision.plan is None:
        return run
    last = previous.plan if previous else None
    violations, metrics = _verify_claims(system, observed, entry.label, decision, last)
    plan = decision.plan
    if observed is not problem:
        plan = system.plan.realize(problem, observed, plan)
        violations = system.plan.check(problem, plan)
        metrics = system.plan.measure(problem, plan, last)
    if design.signalling is not None:
        signalling = design.signalling(problem, plan)
        metrics |= {"messages": float(signalling.messages), "signalling_bytes": float(signalling.bytes)}
    decision = _with_times(decision, seconds, clock.paused_s() - compiled_s)
    return replace(run, decision=decision, plan=plan, violations=violations, metrics=metrics)


def _with_times(decision: Decision[Any], seconds: float, compile_s: float) -> Decision[Any]:
    """Return the decision with the seconds of deciding, and those of compiling."""
    return replace(decision, proof=replace(decision.proof, seconds=seconds, compile_s=compile_s))


def compile_ahead(system: System, entry: Entry, options: Options) -> float:
    """Decide the system's sample problem, once per process and design, so that its kernels are ready.

    No run needs this: kernels are compiled when they are reached.

    returns  seconds of compiling; 0 where all is ready
    """
    key = (system.name, entry.design.name, repr(sorted(entry.parameters.items())), options.backend)
    if system.problem.sample is None or key in _ready:
        return 0.0
    _ready.add(key)
    start = clock.paused_s()
    sample = system.problem.sample()
    with progress.ignore(), kernels.compile_all():
        try:
            evaluate(system, sample, entry, options=options)
        except PlannerError:  # its parameters may name parts that the sample does not have
            log.debug("%s: the sample is run without parameters", entry.label)
            with contextlib.suppress(PlannerError):  # the design's own error comes from its own problem
                evaluate(system, sample, Entry(label=entry.label, design=entry.design), options=options)
    return clock.paused_s() - start


# --- verification ------------------------------------------------------------------------


def _verify_claims(
    system: System, observed: Any, label: str, decision: Decision[Any], last: Any
) -> tuple[Violations, dict[str, float | None]]:
    """Return violations and metrics on the observed problem; raise PlanRejected where a claim is false.

    last  plan before; None where there is none
    """
    violations = system.plan.check(observed, decision.plan)
    broken = violations.of_limits(decision.guarantees)
    if len(broken):
        text = "; ".join(broken.sentences())
        raise PlanRejected(f"{label}: the plan violates constraints that it guarantees: {text}")
    metrics = system.plan.measure(observed, decision.plan, last)
    proof = decision.proof
    if proof.metric is None or proof.objective is None:
        return violations, metrics
    metric = system.metric(proof.metric)
    value = metrics[metric.name]
    if value is None or _is_false(value, proof.objective, _largest_amount(system, metrics, metric.unit)):
        claimant = proof.backend or "the design"
        raise PlanRejected(
            f"{label}: the plan's {metric.name} is {value}, but {claimant} claimed {proof.objective}"
        )
    if proof.bound is not None:
        _require_within(label, metrics, [metric], [proof.bound])
    if proof.ranks:
        ranks = [system.metric(rank.metric) for rank in proof.ranks]
        _require_within(label, metrics, ranks, [rank.bound for rank in proof.ranks])
    return violations, metrics


def _require_within(
    label: str, metrics: Mapping[str, float | None], ranks: Sequence[Metric], bounds: Sequence[float]
) -> None:
    """Raise PlanRejected where the metrics of the ranks are better than their proven bounds."""
    reached = [value for rank in ranks if (value := metrics[rank.name]) is not None]
    if compare_ranks(ranks, reached, bounds, TOLERANCE) > 0:
        says = " and ".join(f"{rank.name} is {value}" for rank, value in zip(ranks, reached, strict=False))
        shown = " and ".join(str(bound) for bound in bounds)
        raise PlanRejected(f"{label}: the plan's {says}, better than its proven bound {shown}")


def _largest_amount(system: System, metrics: Mapping[str, float | None], unit: str) -> float:
    """Return the largest absolute metric in a unit, which others in it may be a difference or a share of."""
    values = [metrics.get(metric.name) for metric in system.plan.metrics if metric.unit == unit]
    return max((abs(value) for value in values if value is not None and isfinite(value)), default=0.0)


def _is_false(value: float, claimed: float, amount: float) -> bool:
    """Return whether a claimed objective value is not that of the plan.

    amount  what the value is computed from; solvers satisfy constraints to 1e-9 or so of it, or of 1, where
            that is less
    """
    floor = EXACT * (min(amount, 1.0) if amount > EXACT else 1.0)
    larger = max(abs(value), abs(claimed))
    return not abs(value - claimed) <= float(allowance(larger, amount)) + floor


def select_entry(scenario: Scenario, label: str | None = None) -> Entry:
    """Return the one design to run: that of the label, else the best by `System.best` of the scenario's.

    Where the scenario names no designs, it is the system's default design; of several entries of one design
    it is the one without parameters, else the first.

    raises  InputError for an unknown label
    """
    system = scenario.system
    if label is not None:
        return scenario.entry(label)
    if not scenario.designs:
        return Entry(label=system.default_design.name, design=system.default_design)
    return min(scenario.designs, key=lambda entry: (system.preference(entry.design), bool(entry.parameters)))


def entries(scenario: Scenario, labels: Sequence[str] | None = None) -> list[Entry]:
    """Return the designs to run: those of the labels, all of the scenario's, or the system's usual ones.

    raises  InputError for each unknown label, and for an empty list
    """
    if labels is None:
        entries_given = list(scenario.designs)
        return entries_given or [
            Entry(label=design.name, design=design) for design in scenario.system.usual_designs
        ]
    if not labels:
        raise InputError(f"{scenario.name}: designs: none is named")
    faults: list[str] = []
    selected: list[Entry] = []
    for label in dict.fromkeys(labels):
        try:
            selected.append(scenario.entry(label))
        except InputError as error:
            faults += error.faults
    if faults:
        raise InputError(*faults)
    return selected
