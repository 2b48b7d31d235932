"""Conformance of every registered backend, and backends that fail it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from planner.backends import Solution, highs
from planner.backends.linear_program import LinearProgram
from planner.backends.registry import backend_names, find_backend
from planner.contract.proof import Status
from planner.errors import InputError, SolverFailure
from planner.options import Options
from planner.testing import backends as testing
from planner.testing import check_backend
from planner.testing.backends import conformance_cases
from tests.commercial_solvers import PACKAGES


def is_installed(backend: str) -> bool:
    try:
        find_backend(backend).load()
    except InputError:
        return backend not in PACKAGES
    return True


INSTALLED = [
    name
    for backend in backend_names()
    if is_installed(backend)
    for name in find_backend(backend).installed_names()
]


def test_every_backend_of_planner_is_tested() -> None:
    """All extras are installed where these tests run."""
    ortools = ("ortools", "ortools:glop", "ortools:pdlp", "ortools:cp-sat", "ortools:scip")
    assert {"highs", *ortools, "pyomo:highs", "pyomo:appsi_highs", "scip"} <= set(INSTALLED)


@pytest.mark.parametrize(
    "case",
    [pytest.param(case, id=f"{name}: {case.name}") for name in INSTALLED for case in conformance_cases(name)],
)
def test_every_backend_conforms(case: testing.Case) -> None:
    case.run()


def failures(monkeypatch: pytest.MonkeyPatch, change: object) -> str:
    """Return the report on HiGHS where `change(model, options, solution)` makes its answers wrong."""
    honest = highs.solve

    def solve(model: LinearProgram, options: Options) -> Solution:
        return change(model, options, honest(model, options))  # type: ignore[operator, no-any-return]

    monkeypatch.setattr(highs, "solve", solve)
    monkeypatch.setattr(testing, "RANDOM_MODELS", 2)
    with pytest.raises(AssertionError, match="backend 'highs' fails:") as report:
        check_backend("highs")
    return str(report.value)


def test_a_wrong_objective_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def change(model: LinearProgram, options: Options, solution: Solution) -> Solution:
        return solution if solution.objective is None else replace(solution, objective=solution.objective + 1)

    assert "auto: equality: AssertionError: objective 3" in failures(monkeypatch, change)


def test_a_point_that_violates_a_row_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def change(model: LinearProgram, options: Options, solution: Solution) -> Solution:
        return solution if solution.x is None else replace(solution, x=np.zeros_like(solution.x))

    assert "auto: minimum: AssertionError: constraint violation of 1" in failures(monkeypatch, change)


def test_a_guessed_status_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def change(model: LinearProgram, options: Options, solution: Solution) -> Solution:
        wrong = {Status.UNBOUNDED: Status.INFEASIBLE, Status.UNDECIDED: Status.OPTIMAL}
        return replace(solution, status=wrong.get(solution.status, solution.status))

    report = failures(monkeypatch, change)
    assert "auto: unbounded: AssertionError: undecided, should be unbounded" in report
    assert "auto: time limit 1e-06 s: AssertionError: optimal at the time limit" in report


def test_wrong_dual_values_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def change(model: LinearProgram, options: Options, solution: Solution) -> Solution:
        return solution if solution.row_duals is None else replace(solution, row_duals=-solution.row_duals)

    report = failures(monkeypatch, change)
    assert "auto: dual values, minimum: AssertionError: dual values [-3.  1.], not [ 3. -1.]" in report


def test_a_crash_is_listed_and_the_other_tests_run(monkeypatch: pytest.MonkeyPatch) -> None:
    def change(model: LinearProgram, options: Options, solution: Solution) -> Solution:
        if model.is_integer:
            raise SolverFailure("no licence")
        return solution

    report = failures(monkeypatch, change)
    assert "auto: integer, knapsack: SolverFailure: no licence" in report
    assert "auto: minimum" not in report


def test_capabilities_select_the_tests() -> None:
    names = {case.name for case in conformance_cases("ortools:cp-sat")}
    assert "refuses linear programs" in names
    assert "refuses continuous variables" in names
    assert "auto: integer, mixed" not in names
    assert "auto: minimum" not in names
