"""OR-Tools: the choice of a solver, its parameters, and its misleading numbers."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from ortools.linear_solver.python.model_builder_helper import ModelSolverHelper, SolveStatus

from planner.backends import ortools, solve
from planner.backends.linear_program import LinearProgram, Rows
from planner.contract.proof import Status
from planner.errors import InputError, SolverFailure
from planner.options import Options


def program(
    cost: float = 1.0, *, integer: object = None, upper: float = 5.0, matrix: float = 1.0
) -> LinearProgram:
    return LinearProgram.build(
        cost=[cost, 1.0],
        rows=[Rows("r", sp.csr_array([[matrix, 1.0]]), lower=1.0)],
        upper=upper,
        integer=None if integer is None else np.asarray(integer),
    )


@pytest.mark.parametrize(
    ("model", "options", "solver"),
    [
        (program(), Options(), "glop"),
        (program(), Options(algorithm="simplex"), "glop"),
        (program(), Options(algorithm="pdlp"), "pdlp"),
        (program(integer=True), Options(), "cp-sat"),
        (program(integer=[True, False]), Options(), "scip"),
        (program(0.5, integer=True), Options(), "scip"),
        (program(matrix=0.5, integer=True), Options(), "scip"),
        (program(integer=True, upper=np.inf), Options(), "scip"),
    ],
)
def test_plain_ortools_picks_what_suits(model: LinearProgram, options: Options, solver: str) -> None:
    plain = Options(backend="ortools", algorithm=options.algorithm)
    assert ortools.choose_solver(model, plain) == solver
    assert solve(model, plain).backend == f"{ortools.NAME} {solver}"


def test_large_linear_programs_go_to_pdlp(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ortools, "PDLP_NONZEROS", 2)
    assert ortools.choose_solver(program(), Options(backend="ortools")) == "pdlp"
    assert ortools.choose_solver(program(), Options(backend="ortools", algorithm="simplex")) == "glop"
    assert ortools.choose_solver(program(), Options(backend="ortools", seed=1)) == "glop"  # PDLP has no seed


def test_parameters_state_the_options() -> None:
    options = Options(backend="ortools", gap=0.25, threads=3, seed=9)
    assert ortools.parameters(options, "glop") == "random_seed: 9"
    assert ortools.parameters(options, "cp-sat").splitlines() == [
        "num_workers: 3",
        "random_seed: 9",
        "relative_gap_limit: 0.25",
        "catch_sigint_signal: false",
    ]
    assert ortools.parameters(options, "scip").splitlines() == [
        "randomization/randomseedshift = 9",
        "limits/gap = 0.25",
        "misc/catchctrlc = FALSE",
    ]
    pdlp = ortools.parameters(options, "pdlp")
    assert "num_threads: 3" in pdlp
    assert "eps_optimal_objective_gap_relative: 0.25" in pdlp
    assert "eps_optimal_objective_gap_relative: 1e-08" in ortools.parameters(Options(), "pdlp")


@pytest.mark.parametrize("name", ortools.SOLVERS)
def test_every_solver_knows_its_parameters(name: str) -> None:
    helper = ModelSolverHelper(ortools.SOLVERS[name].id)
    helper.set_solver_specific_parameters(
        ortools.parameters(Options(gap=0.1, threads=1, seed=None if name == "pdlp" else 5), name)
    )
    helper.solve(ortools.load(program(integer=True if name == "cp-sat" else None)))
    assert helper.status() == SolveStatus.OPTIMAL


def test_cp_sat_gives_no_objective_where_it_has_no_plan() -> None:
    """It reports 0.0 itself."""
    model = LinearProgram.build(
        cost=[1.0, 1.0],
        rows=[
            Rows("most", sp.csr_array([[1.0, 2.0]]), upper=2.0),
            Rows("least", sp.csr_array([[2.0, 1.0]]), lower=9.0),
        ],
        upper=4.0,
        integer=True,
    )
    solution = solve(model, Options(backend="ortools:cp-sat"))
    assert solution.status is Status.INFEASIBLE
    assert solution.objective is None
    assert solution.bound is None
    assert set(solution.reasons) <= {"most", "least", "x[0] <= 4", "x[1] <= 4"}


def test_cp_sat_refuses_variables_that_it_would_truncate() -> None:
    with pytest.raises(InputError, match=r"variable 'x\[0\]' has none"):
        solve(program(integer=True, upper=1e9), Options(backend="ortools:cp-sat"))
    limited = LinearProgram.build(
        sense="max",
        cost=[1.0, 1.0],
        rows=[Rows("cap", sp.csr_array([[1.0, 2.0]]), upper=9.5)],  # limits both by itself
        integer=True,
    )
    assert solve(limited, Options(backend="ortools:cp-sat")).objective == pytest.approx(9.0)


def test_cp_sat_finds_the_true_optimum_of_fractional_costs() -> None:
    model = program(0.3, integer=True)
    assert solve(model, Options(backend="ortools:cp-sat")).objective == pytest.approx(0.3)


def test_a_solver_that_fails_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(ortools.STATUS, SolveStatus.OPTIMAL)
    with pytest.raises(SolverFailure, match=r"glop failed: SolveStatus\.OPTIMAL"):
        solve(program(), Options(backend="ortools:glop"))
