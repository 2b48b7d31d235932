"""Conformance tests of plans: their claims, tables, drawings and explanations, and the same plan again."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import pandas as pd

from planner.contract.drawing import Drawing, NetworkMap, Timeline
from planner.contract.elements import ElementKind, Fact
from planner.contract.frames import MAX_FRAMES
from planner.contract.metrics import SIGNALLING_METRICS
from planner.contract.simulation import Simulation
from planner.contract.studies import Decided, Section
from planner.contract.system import System
from planner.contract.tables import digest
from planner.errors import InputError
from planner.options import Options
from planner.runs.evaluation import evaluate
from planner.runs.run import Run
from planner.testing.bounds import check_bounds, check_optimum
from planner.testing.cases import TOLERANCE, Cases, Runs
from planner.testing.problems import first_and_another


def plan_cases(system: System, runs: Runs) -> Cases:
    """Yield the tests of the plans of every design on one problem."""
    for design in system.designs:
        yield from design_cases(runs, design.name)
    yield "drawings without a plan name its elements", partial(_check_drawing_of_problem, runs)
    for kind in system.problem.elements:
        yield f"elements: {kind.name}: each action has a plan", partial(_check_actions, runs, kind)
    simulation = system.studies.simulation
    if simulation is not None and simulation.has_frames:
        yield "simulation: frames are drawn in order of time", partial(_check_frames, runs, simulation)
    yield "no plan beats a bound", lambda: check_bounds(runs.all())
    yield "no plan beats the optimum", lambda: check_optimum(runs.all())
    if system.formulation is not None and any(design.name == "optimum" for design in system.designs):
        yield "the reference model has the optimum", partial(_check_formulation, runs)


def design_cases(runs: Runs, name: str) -> Cases:
    """Yield the tests of the plan of one design on one problem."""
    yield f"{name}: decides, and its plan keeps what it claims", partial(check_run, runs, name)
    yield f"{name}: its plan's tables make the same plan again", partial(_check_plan_tables, runs, name)
    yield f"{name}: decides the same again", partial(_check_replay, runs, name)
    yield f"{name}: the number of threads changes nothing", partial(_check_threads, runs, name)
    yield f"{name}: is drawn, and explained", partial(_check_shown, runs, name)


def check_run(runs: Runs, name: str) -> None:
    """Check that a design decides, that its plan keeps its guarantees, and that its metrics are finite."""
    run = runs.of(name)  # raises PlanRejected where the plan breaks a guarantee or its objective is wrong
    if run.entry.design.is_bound:
        assert run.plan is None, "a design that is declared to bound only returns a plan"
        assert run.proof.bound is not None, "a design that is declared to bound only proves no bound"
    unknown = runs.reported[name] - {metric.name for metric in runs.system.metrics}
    assert not unknown, f"reports its progress in {sorted(unknown)[0]}, which is no metric"
    if run.plan is not None:
        _check_run_metrics(run)


def _check_run_metrics(run: Run) -> None:
    """Check that a run has all metrics that are declared, each with a finite value or None."""
    expected = {metric.name for metric in run.system.plan.metrics}
    if run.entry.design.signalling is not None:
        expected |= {metric.name for metric in SIGNALLING_METRICS}
    assert run.metrics.keys() == expected, f"metrics differ: {sorted(run.metrics.keys() ^ expected)}"
    for metric, value in run.metrics.items():
        assert value is None or math.isfinite(value), f"{metric} is {value}: unknown is None"


def _check_plan_tables(runs: Runs, name: str) -> None:
    run = runs.of(name)
    if run.plan is None:
        return
    system, problem = runs.system, runs.problem
    tables = {key: frame.copy() for key, frame in run.plan.to_tables().items()}
    again = system.plan.from_tables(problem, tables)
    before, after = (system.plan.measure(problem, plan, None) for plan in (run.plan, again))
    for metric, value in before.items():
        assert _is_same(value, after[metric]), f"{metric}: {value} becomes {after[metric]}"
    undeclared = [name for name in tables if name not in {table.name for table in system.plan.tables}]
    assert not undeclared, f"table {undeclared[0]} of the plan is not declared"


def _is_same(value: float | None, other: float | None) -> bool:
    """Return whether two metrics are close, or both are unknown."""
    if value is None or other is None:
        return value is other
    return _is_close(value, other)


def _check_replay(runs: Runs, name: str) -> None:
    first, again = runs.of(name), runs.fresh(name)
    assert (first.plan is None) == (again.plan is None)
    if first.plan is not None and again.plan is not None:
        assert digest(first.plan.to_tables()) == digest(again.plan.to_tables()), (
            "another plan by the same seed"
        )


def _check_threads(runs: Runs, name: str) -> None:
    single = runs.of(name).proof
    two = runs.fresh(name, Options(threads=2, seed=runs.options.seed)).proof
    assert single.status == two.status, f"{single.status} with one thread, {two.status} with two"
    if single.objective is not None and two.objective is not None:
        apart = abs(single.objective - two.objective) / max(abs(single.objective), 1e-9)
        tolerance = max(TOLERANCE, (single.gap or 0.0) + (two.gap or 0.0))
        assert apart <= tolerance, f"{single.objective} with one thread, {two.objective} with two"


def _check_shown(runs: Runs, name: str) -> None:
    run = runs.of(name)
    if run.plan is None or run.decision is None:
        return
    system = runs.system
    if system.plan.draw is not None:
        _check_drawings(system, runs.problem, system.plan.draw(runs.problem, run.plan))
    entry = runs.entry(name)
    observed = entry.design.observe(runs.problem, **entry.information)
    decided = Decided(
        design=entry.design,
        parameters=entry.parameters,
        decision=run.decision,
        metrics=system.plan.measure(observed, run.decision.plan, None),
        baseline=run.plan,
    )
    if system.studies.what_if is not None:
        explanation = system.studies.what_if(observed, decided, options=runs.options)
        assert explanation.sentences
        for section in explanation.sections:
            _check_role(system, section)
    for kind in system.problem.elements:
        _check_reports(kind, observed, decided, runs.options)


def _check_role(system: System[Any, Any], section: Section) -> None:
    """Check that sections of purchases and budgets have the columns that `Section.role` names."""
    columns_needed = {
        "purchases": {"cost", "step_cost", system.ranks[0].name},
        "budgets": {"budget", "spent", system.ranks[0].name},
        "": set(),
    }
    missing = columns_needed[section.role] - set(section.frame.columns)
    assert not missing, f"section '{section.title}' of role {section.role!r} lacks {sorted(missing)}"
    assert not section.role or system.studies.budget, "a system with purchases names its budget"


def _check_facts(element: str, facts: Sequence[Fact]) -> None:
    assert facts, f"{element}: has no facts"
    for fact in facts:
        is_known = fact.value is None or isinstance(fact.value, str) or math.isfinite(fact.value)
        assert is_known, f"{element}: {fact.label} is {fact.value}: unknown is None"


def _check_reports(kind: ElementKind, observed: Any, decided: Decided, options: Options) -> None:
    names = kind.names(observed)
    for element in first_and_another(names) if kind.describe is not None else ():
        _check_facts(element, kind.describe(observed, decided, element, options).facts)  # type: ignore[misc]
    for action in kind.with_role("upgrade"):
        if kind.ranking is None:
            break
        ranking = kind.ranking(observed, decided, action, options)
        unknown = set(ranking) - set(names)
        assert not unknown, f"{action.name}: ranks {sorted(unknown)[0]}, which is no {kind.name}"
        assert all(bound is None or bound > 0 for bound in ranking.values()), (
            "a bound of a gain is not above 0"
        )


def _check_drawing_of_problem(runs: Runs) -> None:
    if runs.system.problem.draw is not None:
        drawings = runs.system.problem.draw(runs.problem)
        assert drawings, "a problem has no drawing"
        _check_drawings(runs.system, runs.problem, drawings)


def _drawn_elements(drawing: Drawing) -> Iterator[tuple[str, pd.Series]]:
    """Yield kinds of elements that a drawing has, with their names; check that links have nodes."""
    if isinstance(drawing, NetworkMap):
        nodes = set(drawing.nodes["node"])
        assert set(drawing.links["tail"]) | set(drawing.links["head"]) <= nodes, "a link has no node"
        if drawing.link_kind:
            yield drawing.link_kind, drawing.links["element"]
        if drawing.node_kind:
            yield drawing.node_kind, drawing.nodes["element" if "element" in drawing.nodes else "node"]
    elif isinstance(drawing, Timeline) and drawing.kind:
        yield drawing.kind, drawing.frame["element"]


def _check_drawings(system: System, problem: Any, drawings: Sequence[Drawing]) -> None:
    names = {kind.name: set(kind.names(problem)) for kind in system.problem.elements}
    for drawing in drawings:
        assert drawing.title, "a drawing has no title"
        for kind, elements in _drawn_elements(drawing):
            assert kind in names, f"{drawing.title}: {kind} is no kind of elements"
            unknown = {element for element in elements.dropna() if element} - names[kind]
            assert not unknown, f"{drawing.title}: {sorted(unknown)[0]} is no {kind}"


def _check_frames(runs: Runs, simulation: Simulation) -> None:
    entry = runs.entry((simulation.designs or [design.name for design in runs.system.designs])[0])
    arguments = {
        "design": entry.design,
        "information": entry.information,
        "decision_parameters": entry.parameters,
        "options": runs.options,
    }
    plain = simulation.run(runs.problem, **arguments)
    drawn = simulation.run(runs.problem, **arguments, frames=True)
    assert not plain.frames, "has frames though nobody asked for them"
    assert dict(plain.metrics) == dict(drawn.metrics), "frames change the metrics of a run"
    _check_times([frame.time_s for frame in drawn.frames])
    for frame in drawn.frames:
        assert frame.label, f"the frame at {frame.time_s:g} s has no label"
        is_known = frame.value is None or math.isfinite(frame.value)
        assert is_known, f"{frame.label}: the headline metric is {frame.value}: unknown is None"
    _check_drawings(runs.system, runs.problem, [frame.drawing for frame in drawn.frames])


def _check_times(times: Sequence[float]) -> None:
    assert 0 < len(times) <= MAX_FRAMES, f"has {len(times)} frames; valid: 1 to {MAX_FRAMES}"
    assert all(before < after for before, after in pairwise(times)), "times do not ascend"


def _check_actions(runs: Runs, kind: ElementKind) -> None:
    system, entry = runs.system, runs.entry(runs.system.designs[0].name)
    for name in first_and_another(kind.names(runs.problem)):
        for action in kind.actions:
            adjusted = system.problem.adjust(runs.problem, **action.apply({}, name))
            run = evaluate(system, adjusted, entry, options=runs.options)
            assert run.plan is not None or run.proof.reasons, f"{action.name} on {name}: no plan, no reason"


def _check_formulation(runs: Runs) -> None:
    import pyomo.environ as pyo

    from planner.backends.pyomo import solve_model

    best = runs.of("optimum")
    if best.proof.objective is None or str(best.proof.status) != "optimal" or runs.system.formulation is None:
        return
    try:
        model = runs.system.formulation(runs.problem)
    except InputError:  # it has no form for what this problem has
        return
    solution = solve_model(model, Options(threads=1))
    assert solution.objective is not None, f"the reference model is {solution.status}"
    counted = model.find_component("proof_objective")
    objective = solution.objective if counted is None else float(pyo.value(counted))
    # a model may minimize what the metric counts as a loss
    assert _is_close(abs(objective), abs(best.proof.objective)), (
        f"reference model {objective}, optimum {best.proof.objective}"
    )


def _is_close(value: float, other: float) -> bool:
    return math.isclose(value, other, rel_tol=1e-6, abs_tol=1e-9)
