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
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from planner.contract.system import System
from planner.options import Options
from planner.testing.cases import OPTIONS, Case, Runs, run_cases, tiny_problem
from planner.testing.declarations import declaration_cases
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
