"""Every backend gives the same honest answers to the same models."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import Bounds, LinearConstraint, milp

from planner.backends import Solution, solve
from planner.backends.linear import LinearProgram, Rows
from planner.errors import InputError
from planner.options import Options
from planner.proof import Status

INF = np.inf

LINEAR = (
    Options(),
    Options(algorithm="simplex"),
    Options(algorithm="interior-point"),
    Options(algorithm="pdlp"),
    Options(backend="ortools"),
    Options(backend="ortools:glop"),
    Options(backend="ortools:pdlp"),
    Options(backend="ortools:scip"),
    Options(backend="pyomo:highs"),
    Options(backend="pyomo:appsi_highs"),
    Options(backend="pyomo:highs", algorithm="interior-point"),
)
INTEGER = (
    Options(),
    Options(backend="ortools"),
    Options(backend="ortools:scip"),
    Options(backend="pyomo:highs"),
)


def named(options: Options) -> str:
    return f"{options.backend} {options.algorithm}"


def model(matrix: list[list[float]], low: Any, high: Any, *, cost: list[float], **more: Any) -> LinearProgram:
    rows = Rows("r", sp.csr_array(np.array(matrix, dtype=float)), lower=low, upper=high)
    return LinearProgram.build(cost=cost, rows=[rows], **more)


SOLVABLE = {  # model, optimum
    "least": (model([[1, 1], [1, 0]], [1, -INF], [INF, 3], cost=[1, 2]), 1.0),
    "most with offset": (
        model([[1, 1], [1, 0]], [1, -INF], [4, 3], cost=[1, 2], sense="max", offset=5.0),
        13.0,
    ),
    "range, its lower end": (model([[1, 1]], [2], [5], cost=[1, 1]), 2.0),
    "range, its upper end": (model([[1, 1]], [2], [5], cost=[1, 1], sense="max"), 5.0),
    "equality": (model([[1, 2]], [4], [4], cost=[3, 1]), 2.0),
    "free variables": (model([[1, 1], [1, -1]], [1, -4], [INF, 4], cost=[1, 0], lower=-INF), -1.5),
    "negative limits": (model([[1, 1]], [-INF], [9], cost=[1, -1], lower=-3.0, upper=-1.0), -2.0),
    "fixed variable": (model([[1, 1]], [3], [INF], cost=[1, 1], lower=[2, 0], upper=[2, INF]), 3.0),
    "degenerate": (
        model(
            [[1, 1, 0], [1, 0, 1], [0, 1, 1], [1, 1, 1], [2, 2, 2]],
            [0, 0, 0, 1, 2],
            INF,
            cost=[1, 1, 1],
        ),
        1.0,
    ),
    "empty row": (model([[0, 0], [1, 1]], [-1, 1], [1, INF], cost=[1, 1]), 1.0),
    "unused column": (model([[1, 0]], [1], [INF], cost=[1, 0]), 1.0),
    "no costs": (model([[1, 1]], [1], [2], cost=[0, 0], offset=-2.0), -2.0),
    "no rows": (LinearProgram.build(cost=[1, -1], lower=-1.0, upper=3.0), -4.0),
    "no columns": (LinearProgram.build(cost=[], offset=3.0), 3.0),
}

SOLVABLE_INTEGER = {
    "knapsack": (
        model([[3, 4, 5]], [-INF], [9], cost=[4, 5, 6.5], upper=1.0, sense="max", integer=True),
        11.5,
    ),
    "mixed": (
        model(
            [[2, 2], [1, 1]], [-INF, 0], [3, 9], cost=[1, 1.5], upper=5.0, sense="max", integer=[True, False]
        ),
        2.25,
    ),
    "rounded up": (model([[2, 2]], [3], [INF], cost=[1, 1], upper=5.0, integer=True), 2.0),
    "negative whole": (model([[2]], [-7], [7], cost=[1], lower=-9.0, upper=9.0, integer=True), -3.0),
    "fractional limits": (model([[1]], [-INF], [9], cost=[-1], lower=0.5, upper=2.5, integer=True), -2.0),
}

UNSOLVABLE = {
    "infeasible": (
        model([[1, 1], [1, 0], [0, 1]], [-INF, 2, 2], [3, INF, INF], cost=[1, 1], upper=9.0),
        Status.INFEASIBLE,
    ),
    "infeasible by limits": (model([[1, 1]], [5], [INF], cost=[1, 1], upper=2.0), Status.INFEASIBLE),
    "unbounded": (model([[1, -1]], [0], [INF], cost=[-1, 1]), Status.UNBOUNDED),
    "unbounded, most": (model([[1, -1]], [0], [INF], cost=[1, 0], sense="max"), Status.UNBOUNDED),
    "infeasible, and unbounded without rows": (
        model([[1, -1], [1, -1]], [1, -INF], [INF, 0], cost=[-1, 1]),
        Status.INFEASIBLE,
    ),
}


def check_optimal(given: LinearProgram, solution: Solution, optimum: float) -> None:
    assert solution.status is Status.OPTIMAL
    assert solution.x is not None
    assert solution.objective == pytest.approx(optimum, rel=1e-6, abs=1e-6)
    assert solution.bound == pytest.approx(optimum, rel=1e-6, abs=1e-6)
    assert given.objective_of(solution.x) == pytest.approx(solution.objective, abs=1e-12)
    assert given.violation(solution.x) <= 1e-6
    assert solution.reasons == ()
    assert solution.seconds is not None
    if given.is_integer:
        assert solution.row_duals is None
        assert solution.reduced_costs is None


@pytest.mark.parametrize("case", SOLVABLE)
@pytest.mark.parametrize("options", LINEAR, ids=named)
def test_linear_optimum(options: Options, case: str) -> None:
    given, optimum = SOLVABLE[case]
    check_optimal(given, solve(given, options), optimum)


@pytest.mark.parametrize("case", SOLVABLE_INTEGER)
@pytest.mark.parametrize("options", INTEGER, ids=named)
def test_integer_optimum(options: Options, case: str) -> None:
    given, optimum = SOLVABLE_INTEGER[case]
    check_optimal(given, solve(given, options), optimum)


@pytest.mark.parametrize("case", [name for name in SOLVABLE_INTEGER if name != "mixed"])
def test_integer_optimum_by_cp_sat(case: str) -> None:
    given, optimum = SOLVABLE_INTEGER[case]
    check_optimal(given, solve(given, Options(backend="ortools:cp-sat")), optimum)


@pytest.mark.parametrize("case", UNSOLVABLE)
@pytest.mark.parametrize(
    ("options", "whole"),
    [*((options, False) for options in LINEAR), *((options, True) for options in INTEGER)],
    ids=lambda value: named(value) if isinstance(value, Options) else f"whole={value}",
)
def test_no_plan(options: Options, case: str, whole: bool) -> None:
    given, status = UNSOLVABLE[case]
    if whole:
        given = replace(given, integer=np.ones(given.shape[1], dtype=bool))
    solution = solve(given, options)
    assert solution.status is status
    assert solution.x is None
    assert solution.row_duals is None
    assert solution.objective is None
    assert solution.bound is None
    assert bool(solution.reasons) == (status is Status.INFEASIBLE)


WITH_DUALS = tuple(o for o in LINEAR if o.backend != "ortools:scip")


@pytest.mark.parametrize("sense", ["min", "max"])
@pytest.mark.parametrize("options", WITH_DUALS, ids=named)
def test_duals_are_what_a_limit_is_worth(options: Options, sense: str) -> None:
    """Both limits bind: one more unit of `need` costs 3, one more of `cap` saves 1."""
    sign = 1.0 if sense == "min" else -1.0
    given = model([[1, 1], [1, 0]], [4, -INF], [INF, 3], cost=[2 * sign, 3 * sign], sense=sense)
    solution = solve(given, options)
    assert solution.row_duals is not None
    assert solution.reduced_costs is not None
    assert solution.row_duals == pytest.approx(sign * np.array([3.0, -1.0]), abs=1e-5)
    assert solution.reduced_costs == pytest.approx(np.zeros(2), abs=1e-5)


def reference(given: LinearProgram) -> tuple[int, float | None]:
    """scipy's own HiGHS: status and optimum in the model's sense."""
    sign = 1.0 if given.sense == "min" else -1.0
    result = milp(
        sign * given.cost,
        constraints=LinearConstraint(given.matrix, given.row_lower, given.row_upper),
        bounds=Bounds(given.lower, given.upper),
        integrality=None if given.integer is None else given.integer.astype(int),
    )
    return int(result.status), None if result.fun is None else sign * float(result.fun) + given.offset


def random_model(seed: int, *, whole: bool) -> LinearProgram:
    rng = np.random.default_rng(seed)
    rows, columns = int(rng.integers(1, 6)), int(rng.integers(1, 7))
    matrix = rng.integers(-3, 4, (rows, columns)) * (rng.random((rows, columns)) < 0.7)
    activity = matrix @ rng.integers(-2, 4, columns)
    lower = np.where(rng.random(rows) < 0.6, activity - rng.integers(0, 4, rows), -INF)
    upper = np.where(rng.random(rows) < 0.6, activity + rng.integers(-1, 4, rows), INF)
    wide = rng.random(columns) < 0.3
    return LinearProgram.build(
        sense="min" if rng.random() < 0.5 else "max",
        cost=rng.integers(-5, 6, columns).astype(float),
        offset=float(rng.integers(-3, 4)),
        rows=[Rows("r", sp.csr_array(matrix.astype(float)), lower=lower, upper=np.maximum(lower, upper))],
        lower=np.where(wide & ~np.array(whole), -INF, -2.0),
        upper=np.where(wide & ~np.array(whole), INF, 4.0),
        integer=rng.random(columns) < 0.7 if whole else None,
    )


@pytest.mark.parametrize("options", LINEAR, ids=named)
@given(seed=st.integers(0, 10**6))
def test_linear_programs_agree_with_scipy(options: Options, seed: int) -> None:
    agrees(random_model(seed, whole=False), options)


@pytest.mark.parametrize("options", INTEGER, ids=named)
@given(seed=st.integers(0, 10**6))
def test_integer_programs_agree_with_scipy(options: Options, seed: int) -> None:
    agrees(random_model(seed, whole=True), options)


def agrees(given: LinearProgram, options: Options) -> None:
    status, optimum = reference(given)
    solution = solve(given, options)
    if "pdlp" in solution.backend and solution.status is Status.FEASIBLE and solution.objective is not None:
        # Exact to the size of what the objective adds up: not enough where that cancels.
        assert solution.objective == pytest.approx(optimum, rel=1e-5, abs=1e-5)
        assert solution.bound == pytest.approx(optimum, rel=1e-5, abs=1e-5)
        return
    if optimum is not None:
        check_optimal(given, solution, optimum)
        return
    if status == 4:  # scipy does not know
        return
    if solution.status is Status.UNDECIDED:
        assert "calls the model infeasible, which it is not" in solution.reasons[0]
    elif status == 2 and solution.x is not None:  # scipy's HiGHS calls a few models infeasible
        assert given.violation(solution.x) <= 1e-6
    else:
        honest = {2: (Status.INFEASIBLE, Status.UNBOUNDED), 3: (Status.UNBOUNDED,)}[status]
        assert solution.status in honest


REFUSED = [  # backend, other options, whole?, what the line says
    ("highs", {"algorithm": "pdlp"}, True, "highs has no algorithm 'pdlp' for integer programs"),
    ("ortools", {"algorithm": "interior-point"}, False, "ortools:glop has no algorithm 'interior-point'"),
    ("ortools:glop", {"algorithm": "pdlp"}, False, "ortools:glop has no algorithm 'pdlp'"),
    ("ortools:glop", {}, True, "ortools:glop solves no integer programs"),
    ("ortools:pdlp", {"seed": 1}, False, "ortools:pdlp has no random seed: leave 'seed' unset"),
    ("ortools:cp-sat", {}, False, "ortools:cp-sat takes whole variables only, and 2 are continuous"),
    ("ortools:scip", {"algorithm": "simplex"}, True, "ortools:scip has no algorithm 'simplex'"),
    ("pyomo:highs", {"algorithm": "simplex"}, True, "pyomo:highs takes no algorithm 'simplex' here"),
    ("pyomo:hihgs", {}, False, "pyomo finds no solver 'hihgs'; did you mean 'highs'?"),
]


@pytest.mark.parametrize(("backend", "others", "whole", "line"), REFUSED)
@pytest.mark.parametrize("contradictory", [False, True])
def test_what_cannot_be_honoured_is_refused_by_name(
    backend: str, others: dict[str, Any], whole: bool, line: str, contradictory: bool
) -> None:
    given = model([[1, 1]], [1], [0 if contradictory else 2], cost=[1, 1], upper=3.0, integer=whole)
    with pytest.raises(InputError) as refusal:
        solve(given, Options(backend=backend, **others))
    assert len(refusal.value.faults) == 1
    assert refusal.value.faults[0].startswith(line)


EVERYTHING = {"time_limit_s": 20.0, "gap": 0.001, "threads": 1, "seed": 7}


@pytest.mark.parametrize("backend", ["highs", "ortools", "ortools:scip", "ortools:cp-sat", "pyomo:highs"])
def test_every_option_is_taken(backend: str) -> None:
    given, optimum = SOLVABLE_INTEGER["knapsack"]
    solution = solve(given, Options(backend=backend, **EVERYTHING))  # type: ignore[arg-type]
    check_optimal(given, solution, optimum)


def market_split(rows: int = 6, columns: int = 50) -> LinearProgram:
    """Split every row's sum in half with 0/1 choices: easy to begin, out of reach to finish."""
    rng = np.random.default_rng(5)
    weights = rng.integers(0, 100, (rows, columns)).astype(float)
    slack = np.hstack([np.eye(rows), -np.eye(rows)])
    return LinearProgram.build(
        cost=np.concatenate([np.zeros(columns), np.ones(2 * rows)]),
        rows=[
            Rows(
                "split",
                sp.csr_array(np.hstack([weights, slack])),
                lower=weights.sum(axis=1) // 2,
                upper=weights.sum(axis=1) // 2,
            )
        ],
        upper=np.concatenate([np.ones(columns), np.full(2 * rows, 5000.0)]),
        integer=True,
    )


@pytest.mark.parametrize("limit", [1e-6, 0.3])
@pytest.mark.parametrize("backend", ["highs", "ortools:scip", "ortools:cp-sat", "pyomo:highs"])
def test_a_time_limit_leaves_an_incumbent_or_nothing(backend: str, limit: float) -> None:
    given = market_split()
    solution = solve(given, Options(backend=backend, time_limit_s=limit, threads=1))
    assert solution.status in (Status.FEASIBLE, Status.UNDECIDED)
    if solution.status is Status.FEASIBLE:
        assert solution.x is not None
        assert given.violation(solution.x) <= 1e-6
        assert solution.objective is not None
        assert solution.bound is None or solution.bound <= solution.objective
    else:
        assert solution.x is None
        assert solution.objective is None


@pytest.mark.parametrize("options", LINEAR, ids=named)
def test_a_time_limit_on_a_linear_program_claims_nothing_false(options: Options) -> None:
    rng = np.random.default_rng(3)
    matrix = sp.random_array((300, 900), density=0.05, rng=rng, format="csr")
    given = LinearProgram.build(cost=rng.random(900) + 0.1, rows=[Rows("cover", matrix, lower=1.0)])
    optimum = solve(given).objective
    assert optimum is not None
    limited = solve(given, Options(backend=options.backend, algorithm=options.algorithm, time_limit_s=1e-6))
    assert limited.status in (Status.OPTIMAL, Status.FEASIBLE, Status.UNDECIDED)
    if limited.objective is not None:
        assert limited.objective >= optimum * (1 - 1e-6)
    if limited.bound is not None:
        assert limited.bound <= optimum * (1 + 1e-6)


@pytest.mark.parametrize("backend", ["highs", "ortools:scip", "ortools:cp-sat", "pyomo:highs"])
def test_a_wide_gap_is_enough(backend: str) -> None:
    """With this offset any bound is near enough; without it the last bit would take very long."""
    given = market_split()
    solution = solve(replace(given, offset=1e6), Options(backend=backend, gap=0.5, time_limit_s=60.0))
    assert solution.status is Status.OPTIMAL
    assert solution.bound is not None
    assert solution.objective is not None
    assert solution.objective >= solution.bound


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
    with pytest.raises(InputError, match="backend 'ortools:glop' needs the package 'ortools"):
        solve(SOLVABLE["least"][0], Options(backend="ortools:glop"))
