"""Conformance tests of a backend, for planner's own and for those of other packages.

    from planner.testing import check_backend

    def test_my_solver():
        check_backend("mysolver")

They solve small models whose answers are known, random models that scipy solves as well, and models
without an answer, and check what the backend declares (`planner.backends.backend.Capabilities`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any, Final, Literal, cast, get_args

import numpy as np
import scipy.sparse as sp
from scipy.optimize import Bounds, LinearConstraint, milp

from planner.backends.backend import LIMITS, Capabilities
from planner.backends.dispatch import solve
from planner.backends.linear_program import LinearProgram, Rows
from planner.backends.registry import find_backend, model_faults
from planner.backends.solution import Solution
from planner.contract.proof import Status
from planner.options import Algorithm, Options

INF = np.inf
TOLERANCE: Final = 1e-6
RANDOM_MODELS: Final = 40

OPTION_VALUES: Final = {"time_limit_s": 20.0, "gap": 0.001, "threads": 1, "seed": 7}
"""A value of each option, which any solver of small models can work with."""


def _model(
    matrix: list[list[float]], low: Any, high: Any, *, cost: list[float], **more: Any
) -> LinearProgram:
    rows = Rows("r", sp.csr_array(np.array(matrix, dtype=float)), lower=low, upper=high)
    return LinearProgram.build(cost=cost, rows=[rows], **more)


LINEAR_MODELS: Final = {  # model, optimum
    "minimum": (_model([[1, 1], [1, 0]], [1, -INF], [INF, 3], cost=[1, 2]), 1.0),
    "maximum with offset": (
        _model([[1, 1], [1, 0]], [1, -INF], [4, 3], cost=[1, 2], sense="max", offset=5.0),
        13.0,
    ),
    "range, lower end": (_model([[1, 1]], [2], [5], cost=[1, 1]), 2.0),
    "range, upper end": (_model([[1, 1]], [2], [5], cost=[1, 1], sense="max"), 5.0),
    "equality": (_model([[1, 2]], [4], [4], cost=[3, 1]), 2.0),
    "free variables": (_model([[1, 1], [1, -1]], [1, -4], [INF, 4], cost=[1, 0], lower=-INF), -1.5),
    "negative limits": (_model([[1, 1]], [-INF], [9], cost=[1, -1], lower=-3.0, upper=-1.0), -2.0),
    "fixed variable": (_model([[1, 1]], [3], [INF], cost=[1, 1], lower=[2, 0], upper=[2, INF]), 3.0),
    "degenerate": (
        _model(
            [[1, 1, 0], [1, 0, 1], [0, 1, 1], [1, 1, 1], [2, 2, 2]],
            [0, 0, 0, 1, 2],
            INF,
            cost=[1, 1, 1],
        ),
        1.0,
    ),
    "empty row": (_model([[0, 0], [1, 1]], [-1, 1], [1, INF], cost=[1, 1]), 1.0),
    "unused column": (_model([[1, 0]], [1], [INF], cost=[1, 0]), 1.0),
    "no costs": (_model([[1, 1]], [1], [2], cost=[0, 0], offset=-2.0), -2.0),
    "no rows": (LinearProgram.build(cost=[1, -1], lower=-1.0, upper=3.0), -4.0),
    "no columns": (LinearProgram.build(cost=[], offset=3.0), 3.0),
}

INTEGER_MODELS: Final = {
    "knapsack": (
        _model([[3, 4, 5]], [-INF], [9], cost=[4, 5, 6.5], upper=1.0, sense="max", integer=True),
        11.5,
    ),
    "mixed": (
        _model(
            [[2, 2], [1, 1]], [-INF, 0], [3, 9], cost=[1, 1.5], upper=5.0, sense="max", integer=[True, False]
        ),
        2.25,
    ),
    "rounded up": (_model([[2, 2]], [3], [INF], cost=[1, 1], upper=5.0, integer=True), 2.0),
    "negative integers": (_model([[2]], [-7], [7], cost=[1], lower=-9.0, upper=9.0, integer=True), -3.0),
    "fractional limits": (_model([[1]], [-INF], [9], cost=[-1], lower=0.5, upper=2.5, integer=True), -2.0),
}

MODELS_WITHOUT_OPTIMUM: Final = {
    "infeasible": (
        _model([[1, 1], [1, 0], [0, 1]], [-INF, 2, 2], [3, INF, INF], cost=[1, 1], upper=9.0),
        Status.INFEASIBLE,
    ),
    "infeasible by limits": (_model([[1, 1]], [5], [INF], cost=[1, 1], upper=2.0), Status.INFEASIBLE),
    "unbounded": (_model([[1, -1]], [0], [INF], cost=[-1, 1]), Status.UNBOUNDED),
    "unbounded maximum": (_model([[1, -1]], [0], [INF], cost=[1, 0], sense="max"), Status.UNBOUNDED),
    "infeasible, and unbounded without rows": (
        _model([[1, -1], [1, -1]], [1, -INF], [INF, 0], cost=[-1, 1]),
        Status.INFEASIBLE,
    ),
}


@dataclass(frozen=True, kw_only=True)
class Case:
    """One conformance test; `run` raises AssertionError where the backend fails it."""

    name: str
    run: Callable[[], None]


def check_backend(name: str) -> None:
    """Run every conformance test on a backend, such as "highs" or "ortools:glop".

    raises  AssertionError that lists all the tests that failed, one line each
    """
    failures = []
    for case in conformance_cases(name):
        try:
            case.run()
        except Exception as error:  # a test fails by any error
            failures.append(f"{case.name}: {type(error).__name__}: {error}")
    assert not failures, f"backend '{name}' fails:\n" + "\n".join(failures)


def conformance_cases(name: str) -> list[Case]:
    """Return the conformance tests that apply to a backend by its declared capabilities."""
    family, _, solver = name.partition(":")
    can = find_backend(family).capabilities_of(solver)
    base = Options(backend=name)
    cases = [Case(name=f"refuses {what}", run=run) for what, run in _refusal_cases(base, can)]
    if can.linear:
        for options in _with_algorithms(base, can.linear_algorithms):
            cases += _named_cases(options, _linear_cases(options, can))
    if can.integer:
        for options in _with_algorithms(base, can.integer_algorithms):
            cases += _named_cases(options, _integer_cases(options, can))
        cases += _named_cases(base, _limit_cases(base, can))
    return cases


def _with_algorithms(base: Options, algorithms: Any) -> list[Options]:
    return [base, *(replace(base, algorithm=algorithm) for algorithm in algorithms)]


def _named_cases(options: Options, cases: Iterator[tuple[str, Callable[[], None]]]) -> list[Case]:
    return [Case(name=f"{options.algorithm}: {name}", run=run) for name, run in cases]


def _linear_cases(options: Options, can: Capabilities) -> Iterator[tuple[str, Callable[[], None]]]:
    is_first_order = can.first_order or options.algorithm == "pdlp"
    for name, (model, optimum) in LINEAR_MODELS.items():
        yield name, partial(_check_optimum, options, model, optimum)
    for name, (model, status) in MODELS_WITHOUT_OPTIMUM.items():
        yield name, partial(_check_status, options, model, status)
    if can.dual_values:
        yield "dual values, minimum", partial(_check_dual_values, options, "min")
        yield "dual values, maximum", partial(_check_dual_values, options, "max")
    for seed in range(RANDOM_MODELS):
        model = random_model(seed, integer_share=0.0)
        yield f"random linear program {seed}", partial(check_as_scipy, options, model, is_first_order)
    if "time_limit_s" in can.options:
        yield "time limit, linear program", partial(_check_linear_time_limit, options)
    if "threads" in can.options:
        model, optimum = LINEAR_MODELS["degenerate"]
        yield "threads, linear program", partial(_check_threads, options, model, optimum)


def _integer_cases(options: Options, can: Capabilities) -> Iterator[tuple[str, Callable[[], None]]]:
    for name, (model, optimum) in INTEGER_MODELS.items():
        if _is_within(can, model):
            yield f"integer, {name}", partial(_check_optimum, options, model, optimum)
    for name, (linear, status) in MODELS_WITHOUT_OPTIMUM.items():
        model = replace(linear, integer=np.ones(linear.shape[1], dtype=bool))
        if _is_within(can, model):
            yield f"integer, {name}", partial(_check_status, options, model, status)
    for seed in range(RANDOM_MODELS):
        model = random_model(seed, integer_share=0.7 if can.continuous else 1.0)
        yield f"random integer program {seed}", partial(check_as_scipy, options, model, can.first_order)


def _limit_cases(options: Options, can: Capabilities) -> Iterator[tuple[str, Callable[[], None]]]:
    """Yield the tests of limits on an integer program that takes longer than anyone waits."""
    if "time_limit_s" in can.options:
        for limit_s in (1e-6, 0.3):
            limited = replace(options, time_limit_s=limit_s)
            yield f"time limit {limit_s:g} s", partial(_check_time_limit, limited)
    if "gap" in can.options:
        yield "wide gap", partial(_check_wide_gap, options, can)
    model, optimum = INTEGER_MODELS["knapsack"]
    if "threads" in can.options:
        yield "threads, integer program", partial(_check_threads, options, model, optimum)
    values: dict[str, Any] = {name: value for name, value in OPTION_VALUES.items() if name in can.options}
    yield "all options", partial(_check_optimum, replace(options, **values), model, optimum)


def _refusal_cases(base: Options, can: Capabilities) -> Iterator[tuple[str, Callable[[], None]]]:
    linear, integer = LINEAR_MODELS["minimum"][0], INTEGER_MODELS["rounded up"][0]
    accepted = linear if can.linear else integer
    for option in LIMITS:
        if option not in can.options:
            values: dict[str, Any] = {option: OPTION_VALUES[option]}
            yield option, partial(_check_refusal, replace(base, **values), accepted, f"'{option}'")
    algorithms = can.linear_algorithms if can.linear else can.integer_algorithms
    for algorithm in get_args(Algorithm):
        if algorithm not in ("auto", *algorithms):
            options = replace(base, algorithm=cast("Algorithm", algorithm))
            yield f"algorithm {algorithm}", partial(_check_refusal, options, accepted, f"'{algorithm}'")
    if not can.linear:
        yield "linear programs", partial(_check_refusal, base, linear, "continuous")
    if not can.integer:
        yield "integer programs", partial(_check_refusal, base, integer, "integer programs")
    elif not can.continuous:
        mixed = INTEGER_MODELS["mixed"][0]
        yield "continuous variables", partial(_check_refusal, base, mixed, "continuous")


def _is_within(can: Capabilities, model: LinearProgram) -> bool:
    """Return whether the model has only variables, within limits, that the solver declares to take."""
    assert model.integer is not None
    largest = max(-model.lower.min(initial=0.0), model.upper.max(initial=0.0))
    return (can.continuous or bool(model.integer.all())) and largest <= (can.largest_integer or INF)


def _check_optimum(options: Options, model: LinearProgram, optimum: float) -> None:
    _check_optimal(model, solve(model, options), optimum)


def _check_optimal(model: LinearProgram, solution: Solution, optimum: float) -> None:
    assert solution.status is Status.OPTIMAL, f"{solution.status}, should be optimal with {optimum:g}"
    assert solution.x is not None
    assert solution.objective is not None
    assert solution.bound is not None
    assert _is_close(solution.objective, optimum), f"objective {solution.objective}, should be {optimum:g}"
    assert _is_close(solution.bound, optimum), f"bound {solution.bound}, should be {optimum:g}"
    _check_point(model, solution)
    assert solution.reasons == (), f"reasons for infeasibility of an optimum: {solution.reasons}"
    assert solution.seconds is not None
    assert solution.backend, "the backend is not named"
    if model.is_integer:
        _check_no_duals(solution)


def _check_no_duals(solution: Solution) -> None:
    """Check that an integer program has neither dual values nor reduced costs."""
    assert solution.row_duals is None, "dual values of an integer program"
    assert solution.reduced_costs is None, "reduced costs of an integer program"


def _check_point(model: LinearProgram, solution: Solution) -> None:
    """Check that a solution's values satisfy every constraint and have the stated objective value."""
    assert solution.x is not None
    assert solution.objective is not None
    violation = model.violation(solution.x)
    assert violation <= TOLERANCE, f"constraint violation of {violation:g}"
    value = model.objective_of(solution.x)
    assert abs(value - solution.objective) <= 1e-12, (
        f"objective {solution.objective}, its values have {value}"
    )


def _check_status(options: Options, model: LinearProgram, status: Status) -> None:
    solution = solve(model, options)
    assert solution.status is status, f"{solution.status}, should be {status}"
    values = (solution.x, solution.row_duals, solution.objective, solution.bound)
    assert all(value is None for value in values), "values where there is no optimum"
    assert bool(solution.reasons) == (status is Status.INFEASIBLE), f"reasons: {solution.reasons}"


def _check_dual_values(options: Options, sense: Literal["min", "max"]) -> None:
    """Check dual values where both rows bind: one more unit of the first costs 3, of the second saves 1."""
    sign = 1.0 if sense == "min" else -1.0
    model = _model([[1, 1], [1, 0]], [4, -INF], [INF, 3], cost=[2 * sign, 3 * sign], sense=sense)
    solution = solve(model, options)
    assert solution.row_duals is not None, "no dual values"
    assert solution.reduced_costs is not None, "no reduced costs"
    right = sign * np.array([3.0, -1.0])
    assert np.allclose(solution.row_duals, right, atol=1e-5), f"dual values {solution.row_duals}, not {right}"
    assert np.allclose(solution.reduced_costs, 0.0, atol=1e-5), (
        f"reduced costs {solution.reduced_costs}, not 0"
    )


@lru_cache(maxsize=1_000)  # each backend and algorithm solves the same models
def random_model(seed: int, *, integer_share: float) -> LinearProgram:
    """Return a small program with integer coefficients: feasible, infeasible or unbounded.

    integer_share  probability that a variable is integer, which then has limits; 0 for a linear program
    """
    rng = np.random.default_rng(seed)
    rows, columns = int(rng.integers(1, 6)), int(rng.integers(1, 7))
    matrix = rng.integers(-3, 4, (rows, columns)) * (rng.random((rows, columns)) < 0.7)
    activity = matrix @ rng.integers(-2, 4, columns)
    lower = np.where(rng.random(rows) < 0.6, activity - rng.integers(0, 4, rows), -INF)
    upper = np.where(rng.random(rows) < 0.6, activity + rng.integers(-1, 4, rows), INF)
    is_free = (rng.random(columns) < 0.3) & (integer_share == 0.0)
    return LinearProgram.build(
        sense="min" if rng.random() < 0.5 else "max",
        cost=rng.integers(-5, 6, columns).astype(float),
        offset=float(rng.integers(-3, 4)),
        rows=[Rows("r", sp.csr_array(matrix.astype(float)), lower=lower, upper=np.maximum(lower, upper))],
        lower=np.where(is_free, -INF, -2.0),
        upper=np.where(is_free, INF, 4.0),
        integer=rng.random(columns) < integer_share if integer_share else None,
    )


@lru_cache(maxsize=1_000)
def _solve_with_scipy(model: LinearProgram) -> tuple[int, float | None]:
    """Return the status and the optimum, in the model's sense, by scipy's own HiGHS."""
    sign = 1.0 if model.sense == "min" else -1.0
    result = milp(
        sign * model.cost,
        constraints=LinearConstraint(model.matrix, model.row_lower, model.row_upper),
        bounds=Bounds(model.lower, model.upper),
        integrality=None if model.integer is None else model.integer.astype(int),
    )
    return int(result.status), None if result.fun is None else sign * float(result.fun) + model.offset


def check_as_scipy(options: Options, model: LinearProgram, is_first_order: bool) -> None:
    """Check that a backend and scipy agree on a model.

    is_first_order  an answer that is accurate to 1e-5 may be feasible instead of optimal
    """
    status, optimum = _solve_with_scipy(model)
    solution = solve(model, options)
    if optimum is None:
        _check_without_optimum(model, solution, status)
    elif is_first_order and solution.status is Status.FEASIBLE:
        for value in (solution.objective, solution.bound):
            assert value is not None
            assert np.isclose(value, optimum, rtol=1e-5, atol=1e-5), f"{value}, should be {optimum:g}"
    else:
        _check_optimal(model, solution, optimum)


def _check_without_optimum(model: LinearProgram, solution: Solution, scipy_status: int) -> None:
    """Check the solution of a model for which scipy finds no optimum.

    scipy_status  2 for infeasible, 3 for unbounded
    """
    if scipy_status not in (2, 3):
        return
    if solution.status is Status.UNDECIDED:
        assert "calls the model infeasible, which it is not" in solution.reasons[0], "undecided"
    elif scipy_status == 2 and solution.x is not None:  # scipy's HiGHS calls a few feasible models infeasible
        assert model.violation(solution.x) <= TOLERANCE
    else:  # 2 may stand for unbounded too
        honest = [Status.UNBOUNDED, *([Status.INFEASIBLE] if scipy_status == 2 else [])]
        assert solution.status in honest, f"{solution.status}, should be {' or '.join(map(str, honest))}"


def market_split(*, rows: int = 6, columns: int = 50) -> LinearProgram:
    """Return a market split problem: halve each row's sum by 0/1 choices, with least deviation.

    A first solution is easy, a proof of optimality out of reach (Cornuéjols and Dawande 1999).
    """
    rng = np.random.default_rng(5)
    weights = rng.integers(0, 100, (rows, columns)).astype(float)
    deviations = np.hstack([np.eye(rows), -np.eye(rows)])
    half = weights.sum(axis=1) // 2
    return LinearProgram.build(
        cost=np.concatenate([np.zeros(columns), np.ones(2 * rows)]),
        rows=[Rows("split", sp.csr_array(np.hstack([weights, deviations])), lower=half, upper=half)],
        upper=np.concatenate([np.ones(columns), np.full(2 * rows, 5000.0)]),
        integer=True,
    )


def _check_time_limit(options: Options) -> None:
    model = market_split()
    solution = solve(model, options)
    assert options.time_limit_s is not None
    assert solution.seconds is not None
    assert solution.seconds <= options.time_limit_s + 30.0, f"{solution.seconds:g} s"
    assert solution.status in (Status.FEASIBLE, Status.UNDECIDED), f"{solution.status} at the time limit"
    if solution.status is Status.FEASIBLE:
        _check_point(model, solution)
        assert solution.objective is not None
        assert solution.bound is None or solution.bound <= solution.objective, "bound above the objective"
    else:
        assert solution.x is None, "values of an undecided model"
        assert solution.objective is None, "objective of an undecided model"


def _check_linear_time_limit(options: Options) -> None:
    rng = np.random.default_rng(3)
    matrix = sp.random_array((300, 900), density=0.05, rng=rng, format="csr")
    model = LinearProgram.build(cost=rng.random(900) + 0.1, rows=[Rows("cover", matrix, lower=1.0)])
    _, optimum = _solve_with_scipy(model)
    assert optimum is not None
    solution = solve(model, replace(options, time_limit_s=1e-6))
    allowed = (Status.OPTIMAL, Status.FEASIBLE, Status.UNDECIDED)
    assert solution.status in allowed, f"{solution.status} at the time limit"
    if solution.objective is not None:
        assert solution.objective >= optimum * (1 - TOLERANCE), "objective better than the optimum"
    if solution.bound is not None:
        assert solution.bound <= optimum * (1 + TOLERANCE), "bound above the optimum"


def _check_wide_gap(options: Options, can: Capabilities) -> None:
    """Check that a solve ends at the gap: with this offset any bound is near enough."""
    model = replace(market_split(), offset=1e6)
    limit_s = 60.0 if "time_limit_s" in can.options else None
    solution = solve(model, replace(options, gap=0.5, time_limit_s=limit_s))
    assert solution.status is Status.OPTIMAL, f"{solution.status}, should be optimal at a gap of 0.5"
    assert solution.bound is not None
    assert solution.objective is not None
    assert solution.objective >= solution.bound, "bound above the objective"


def _check_threads(options: Options, model: LinearProgram, optimum: float) -> None:
    """Check that solves with other numbers of threads follow each other with the same optimum."""
    for threads in (1, 2, 1):
        _check_optimum(replace(options, threads=threads), model, optimum)


def _check_refusal(options: Options, model: LinearProgram, named: str) -> None:
    faults = model_faults(model, options)
    assert any(named in fault for fault in faults), f"{named} is not refused by name: {faults}"


def _is_close(value: float, right: float) -> bool:
    return bool(np.isclose(value, right, rtol=TOLERANCE, atol=TOLERANCE))
