"""The one call to every backend: refusals, missing packages, and the imports that it does not need."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from planner.backends import prefer_interior_point, solve
from planner.backends.linear_program import LinearProgram, Rows
from planner.backends.solution import Solution
from planner.contract.proof import Status
from planner.errors import InputError
from planner.options import Options

REFUSED = [  # backend, other options, integer?, start of the line
    ("highs", {"algorithm": "pdlp"}, True, "highs has no algorithm 'pdlp' for integer programs"),
    ("ortools", {"algorithm": "interior-point"}, False, "ortools has no algorithm 'interior-point'"),
    ("ortools", {"algorithm": "pdlp", "seed": 1}, False, "ortools:pdlp takes no 'seed': leave it unset"),
    ("ortools:glop", {"algorithm": "pdlp"}, False, "ortools:glop has no algorithm 'pdlp'"),
    (
        "ortools:glop",
        {},
        True,
        "ortools:glop solves no integer programs: use 'ortools:cp-sat' or 'ortools:scip'",
    ),
    ("ortools:pdlp", {"seed": 1}, False, "ortools:pdlp takes no 'seed': leave it unset"),
    (
        "ortools:cp-sat",
        {},
        False,
        "ortools:cp-sat takes integer variables only, and 2 are continuous: use 'ortools:scip'",
    ),
    (
        "ortools:scip",
        {"algorithm": "simplex"},
        True,
        "ortools:scip has no algorithm 'simplex' for integer programs: leave it at 'auto'",
    ),
    ("pyomo:highs", {"algorithm": "simplex"}, True, "pyomo:highs has no algorithm 'simplex' for integer"),
    ("scip", {"algorithm": "pdlp"}, False, "scip has no algorithm 'pdlp': leave it at 'auto'"),
    ("pyomo:hihgs", {}, False, "pyomo finds no solver 'hihgs'; did you mean 'highs'?"),
]


@pytest.mark.parametrize(("backend", "others", "integer", "line"), REFUSED)
@pytest.mark.parametrize("contradictory", [False, True])
def test_options_and_models_beyond_a_backend_are_refused_by_name(
    backend: str, others: dict[str, Any], integer: bool, line: str, contradictory: bool
) -> None:
    row = Rows("r", sp.csr_array([[1.0, 1.0]]), lower=1.0, upper=0.0 if contradictory else 2.0)
    model = LinearProgram.build(cost=[1.0, 1.0], rows=[row], upper=3.0, integer=integer)
    with pytest.raises(InputError) as refusal:
        solve(model, Options(backend=backend, **others))
    assert len(refusal.value.faults) == 1
    assert refusal.value.faults[0].startswith(line)


def test_importing_the_backends_loads_no_solver() -> None:
    code = (
        "import sys, planner.backends\n"
        "heavy = {'numpy', 'scipy', 'pandas', 'highspy', 'ortools', 'pyomo'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "planner.backends.ortools", raising=False)
    monkeypatch.setitem(sys.modules, "ortools.linear_solver.python.model_builder_helper", None)
    with pytest.raises(InputError, match="backend 'ortools' needs the package 'ortools"):
        solve(LinearProgram.build(cost=[1.0]), Options(backend="ortools:glop"))


def knapsack(start: list[float] | None) -> LinearProgram:
    row = Rows("weight", sp.csr_array([[3.0, 4.0, 5.0]]), upper=7.0)
    model = LinearProgram.build(sense="max", cost=[3.0, 4.0, 6.0], rows=[row], upper=1.0, integer=True)
    return replace(model, start=None if start is None else np.array(start))


@pytest.mark.parametrize("start", [[1.0, 1.0, 0.0], [1.0], [1.0, 1.0, 1.0], None])
@pytest.mark.parametrize("backend", ["highs", "ortools:cp-sat"])
def test_a_start_changes_no_optimum(backend: str, start: list[float] | None) -> None:
    solution = solve(knapsack(start), Options(backend=backend))
    assert solution.status is Status.OPTIMAL
    assert solution.objective == pytest.approx(7.0)


def test_no_answer_is_worse_than_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    from planner.backends import highs

    def give_up(model: LinearProgram, options: Options) -> Solution:
        return Solution(status=Status.UNDECIDED, backend="highs", bound=7.5)

    monkeypatch.setattr(highs, "solve", give_up)
    solution = solve(knapsack([1.0, 1.0, 0.0]))
    assert (solution.status, solution.objective, solution.bound) == (Status.FEASIBLE, 7.0, 7.5)
    assert solve(knapsack([1.0, 1.0, 0.0]), Options(gap=0.1)).status is Status.OPTIMAL
    assert solve(knapsack([1.0, 1.0, 1.0])).x is None  # heavier than allowed
    assert solve(knapsack([1.0])).x is None


def test_interior_point_is_preferred_where_nobody_asks_for_an_algorithm() -> None:
    assert prefer_interior_point(Options(gap=0.1)) == Options(gap=0.1, algorithm="interior-point")
    for options in (Options(algorithm="simplex"), Options(backend="ortools")):
        assert prefer_interior_point(options) is options
