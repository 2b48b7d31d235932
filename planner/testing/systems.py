"""Conformance tests of a system, for planner's own and for those of other packages.

    from planner.testing import check_system
    from mypackage import SYSTEM

    def test_my_system():
        check_system(SYSTEM, problems=[small()])

They check what every system must satisfy: tables that give the same problem again, elements with exact names
and actions that adjust the problem, plans that satisfy their guarantees, bounds that no plan exceeds with any
value of any parameter or on random variants, repeatable decisions, clear errors for bad tables, the same
problem in other words, units, rows, directions and windows, one answer from every verb, and a reference model
with the same optimum.

Conformance tests of a system's declarations: names, descriptions, metrics of studies.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from planner.contract.parameters import parameters_of
from planner.contract.system import System
from planner.options import Options
from planner.testing.cases import OPTIONS, Case, Cases, Runs, repeated, run_cases, tiny_problem
from planner.testing.plans import plan_cases
from planner.testing.problems import problem_cases
from planner.testing.searches import search_cases
from planner.testing.table_forms import answer_cases, table_cases
from planner.testing.variants import variant_cases
from planner.testing.verbs import verb_cases


def check_system(
    system: System,
    *,
    problems: Sequence[Any] = (),
    parameters: Mapping[str, Mapping[str, Any]] | None = None,
    options: Options = OPTIONS,
) -> None:
    """Run every conformance test on a system.

    problems    small instances, solved by every design in seconds; default: the first preset
    parameters  of designs, by their names, where their defaults take too long
    raises      AssertionError that lists all the tests that failed, one line each
    """
    cases = conformance_cases(system, problems=problems, parameters=parameters, options=options)
    run_cases(f"system '{system.name}'", cases)


def conformance_cases(
    system: System,
    *,
    problems: Sequence[Any] = (),
    parameters: Mapping[str, Mapping[str, Any]] | None = None,
    options: Options = OPTIONS,
) -> list[Case]:
    """Return the conformance tests of a system; arguments as for `check_system`."""
    instances = list(problems) or [next(iter(system.problem.presets.values()))()]
    usual = parameters or {}
    cases = [Case(f"declaration: {name}", run) for name, run in declaration_cases(system)]
    for row, problem in enumerate(instances):
        runs = Runs(system, partial(_same, problem), usual, options)
        for made in (problem_cases(system, problem), table_cases(system, problem), plan_cases(system, runs)):
            cases += [Case(f"problem {row}: {name}", run) for name, run in made]
    smallest = Runs(system, partial(tiny_problem, system), usual, options)
    cases += [Case(f"rows: {name}", run) for name, run in answer_cases(smallest)]
    cases += [Case(f"searches: {name}", run) for name, run in search_cases(system, usual, options)]
    cases += [Case(f"variants: {name}", run) for name, run in variant_cases(system, usual, options)]
    cases += [Case(f"verbs: {name}", run) for name, run in verb_cases(system, usual, options)]
    return cases


def _same(problem: Any) -> Any:
    return problem


def declaration_cases(system: System) -> Cases:
    """Yield the tests of a system's declarations."""
    yield "names are unique", partial(_check_names, system)
    yield "metrics that studies name exist", partial(_check_metrics_of_studies, system)
    yield "every design says what it does and where it comes from", partial(_check_descriptions, system)
    yield "every column and parameter is described", partial(_check_parameters, system)


def _check_names(system: System) -> None:
    named: dict[str, Sequence[Any]] = {
        "design": system.designs,
        "metric": system.metrics,
        "table": system.problem.tables,
        "target": system.studies.targets,
    }
    for kind, items in named.items():
        twice = repeated([item.name for item in items])
        assert not twice, f"{kind} {twice[0]} is declared twice"
    assert system.designs, "a system needs a design"
    unknown = sorted(set(system.best) - {design.name for design in system.designs})
    assert not unknown, f"best: {unknown[0]} is no design of the system"
    assert not system.default_design.is_bound, "the default design has a plan"
    if system.usual:
        assert system.usual_designs[0] is system.default_design, "the default is the first usual design"
    assert system.problem.presets, "a system needs a preset, the problem to try it with"


def _check_metrics_of_studies(system: System) -> None:
    metric_names = {metric.name for metric in system.metrics}
    headline = system.plan.headline
    named = {
        "headline": headline.metric,
        **{f"headline's {name}": name for name in (*headline.losses, *headline.fallbacks, *headline.table)},
    }
    named |= {"headline's total": headline.total} if headline.total else {}
    named |= {"headline's second rank": headline.then} if headline.then else {}
    if system.studies.trade_off is not None:
        named |= dict(zip(("trade-off, across", "trade-off, up"), system.studies.trade_off, strict=True))
    if system.studies.coordination is not None:
        named["coordination"] = system.studies.coordination.performance
    for label, name in named.items():
        assert name in metric_names, f"{label} is {name}, which is no metric"
    if system.studies.practice is not None:
        system.design(system.studies.practice)


def _check_descriptions(system: System) -> None:
    for design in system.designs:
        assert design.about, f"design {design.name}: its function has no docstring"
        assert design.source, f"design {design.name}: has no source"
    for metric in system.metrics:
        assert metric.about, f"metric {metric.name}: is not described"


def _check_parameters(system: System) -> None:
    for table in (*system.problem.tables, *system.plan.tables):
        for name, column in table.columns.items():
            assert column.about, f"table {table.name}: column {name} is not described"
    functions: dict[str, Callable[..., Any]] = {"problem": system.problem.adjust}
    functions |= {f"source {name}": read for name, read in system.problem.sources.items()}
    functions |= {f"preset {name}": make for name, make in system.problem.presets.items()}
    functions |= {f"design {design.name}": design.decide for design in system.designs}
    functions |= {f"information of {design.name}": design.observe for design in system.designs}
    for owner, function in functions.items():
        for parameter in parameters_of(function).values():
            assert parameter.about, f"{owner}: parameter {parameter.name} is not described"
