"""Pyomo: solvers that only Pyomo can call, and models that are written in Pyomo."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from threading import RLock
from typing import Any

import numpy as np

from planner.backends.backend import LIMITS, Capabilities
from planner.backends.dispatch import EXPLANATION_LIMIT_S
from planner.backends.dispatch import solve as solve_program
from planner.backends.infeasibility import contradictory_limits, explain
from planner.backends.linear_program import LinearProgram
from planner.backends.registry import refusals
from planner.backends.solution import Solution
from planner.backends.solver_thread import run_in_thread
from planner.backends.verification import InfeasibleOrUnbounded, judge
from planner.contract.proof import Status
from planner.errors import InputError, SolverFailure, did_you_mean
from planner.extras import needed_by
from planner.options import Options

with needed_by("backend 'pyomo'"):
    import pyomo.environ as pyo
    from pyomo.common.errors import ApplicationError
    from pyomo.common.log import LoggingIntercept
    from pyomo.core.expr.numeric_expr import LinearExpression
    from pyomo.opt import SolverStatus, TerminationCondition
    from pyomo.version import version as pyomo_version

    from planner.backends.standard_form import from_pyomo, only_objective, to_arrays

AMBIGUOUS = "infeasible or unbounded"

STATUS: dict[TerminationCondition, Status | str] = {
    # https://pyomo.readthedocs.io/en/stable/reference/topical/solvers/
    TerminationCondition.optimal: Status.OPTIMAL,
    TerminationCondition.globallyOptimal: Status.OPTIMAL,
    TerminationCondition.locallyOptimal: Status.FEASIBLE,
    TerminationCondition.feasible: Status.FEASIBLE,
    TerminationCondition.infeasible: Status.INFEASIBLE,
    TerminationCondition.unbounded: Status.UNBOUNDED,
    TerminationCondition.infeasibleOrUnbounded: AMBIGUOUS,
    # FEASIBLE where a plan came along
    TerminationCondition.maxTimeLimit: Status.UNDECIDED,
    TerminationCondition.maxIterations: Status.UNDECIDED,
    TerminationCondition.maxEvaluations: Status.UNDECIDED,
    TerminationCondition.minStepLength: Status.UNDECIDED,
    TerminationCondition.minFunctionValue: Status.UNDECIDED,
    TerminationCondition.userInterrupt: Status.UNDECIDED,
    TerminationCondition.resourceInterrupt: Status.UNDECIDED,
    TerminationCondition.intermediateNonInteger: Status.UNDECIDED,
    TerminationCondition.noSolution: Status.UNDECIDED,
    TerminationCondition.unknown: Status.UNDECIDED,
    TerminationCondition.other: Status.UNDECIDED,
}

ONE_THREAD = "one thread"
"""Instead of an option's name: the solver uses one thread, within any limit."""


@dataclass(frozen=True, kw_only=True)
class Keywords:
    """Names that a solver has for our options; None where it has none, so that the option is refused."""

    time_limit_s: str | None = None
    gap: str | None = None
    threads: str | None = None
    seed: str | None = None
    whole_seconds: bool = False  # takes no fractions of a second
    algorithm: Mapping[str, tuple[str, str]] = field(default_factory=dict)  # ours: its option and value
    integer: bool = True
    dual_values: bool = True


_HIGHS = Keywords(
    time_limit_s="time_limit",
    gap="mip_rel_gap",
    threads="threads",
    seed="random_seed",
    algorithm={
        "simplex": ("solver", "simplex"),
        "interior-point": ("solver", "ipm"),
        "pdlp": ("solver", "pdlp"),
    },
)
_GUROBI = Keywords(time_limit_s="TimeLimit", gap="MIPGap", threads="Threads", seed="Seed")

KEYWORDS = {
    "highs": _HIGHS,
    "appsi_highs": _HIGHS,
    "gurobi": _GUROBI,
    "gurobi_direct": _GUROBI,
    "appsi_gurobi": _GUROBI,
    "cplex": Keywords(
        time_limit_s="timelimit", gap="mip_tolerances_mipgap", threads="threads", seed="randomseed"
    ),
    "xpress": Keywords(time_limit_s="maxtime", gap="miprelstop", threads="threads", seed="randomseed"),
    "cbc": Keywords(time_limit_s="sec", gap="ratioGap", threads="threads", seed="randomCbcSeed"),
    "glpk": Keywords(time_limit_s="tmlim", gap="mipgap", threads=ONE_THREAD, seed="seed", whole_seconds=True),
    "scip": Keywords(
        time_limit_s="limits/time",
        gap="limits/gap",
        threads=ONE_THREAD,
        seed="randomization/randomseedshift",
        dual_values=False,
    ),
    "ipopt": Keywords(time_limit_s="max_cpu_time", threads=ONE_THREAD, integer=False),
}

_LOCK = RLock()
"""Held while Pyomo runs, which has global state and captures the process' output: one solve at a time."""


def solve(model: LinearProgram, options: Options) -> Solution:
    """Solve through a Pyomo model built from the arrays.

    raises  SolverFailure where the solver fails; InfeasibleOrUnbounded where it does not tell which
    """
    name = options.backend.partition(":")[2]
    program = _program(model)
    with _run(program, name, options) as (claimed, has_values, bound, backend):
        x = row_duals = None
        if has_values:
            x = _values(model, program)
            row_duals = None if model.is_integer else _duals(model, program)
    if claimed == AMBIGUOUS:
        raise InfeasibleOrUnbounded(backend)
    assert isinstance(claimed, Status)
    return judge(
        model,
        claimed=claimed,
        has_basis=options.algorithm != "pdlp" and name != "ipopt",
        x=x,
        row_duals=row_duals,
        bound=None if bound is None else (bound if model.sense == "min" else -bound),
        gap=options.gap,
        backend=backend,
    )


def _require_capable(model: pyo.ConcreteModel, name: str, options: Options) -> bool:
    """Return whether a model has integer variables; raise InputError where the solver cannot take it."""
    integers = [variable.is_integer() for variable in model.component_data_objects(pyo.Var)]
    faults = refusals(
        options.backend,
        capabilities(name),
        options,
        integer_count=sum(integers),
        continuous_count=len(integers) - sum(integers),
    )
    if faults:
        raise InputError(*faults)
    return any(integers)


def solve_model(model: pyo.ConcreteModel, options: Options = Options()) -> Solution:
    """Solve a Pyomo model, linear or not, and leave the values in it where there are any.

    Through `pyomo:<solver>` the model goes to Pyomo as it is. Other backends solve its linear
    program (`standard_form.from_pyomo`). The Solution's `x` and dual values are None: the model has them.

    raises  InputError where the solver is unknown, missing, or cannot honour an option; ValueError where
            another backend is named and the model is not linear; SolverFailure where the solver fails
    """
    started = time.perf_counter()
    family, _, name = options.backend.partition(":")
    if family != "pyomo":
        return _solve_as_arrays(model, options)
    is_integer = _require_capable(model, name, options)
    with _run(model, name, options) as (claimed, has_values, bound, backend):
        pass
    if claimed == AMBIGUOUS:
        return replace(_resolve_ambiguity(model, options, backend), seconds=time.perf_counter() - started)
    assert isinstance(claimed, Status)
    has_no_optimum = claimed in (Status.INFEASIBLE, Status.UNBOUNDED)
    if has_no_optimum or not has_values:
        status = claimed if has_no_optimum else Status.UNDECIDED
        return Solution(
            status=status,
            backend=backend,
            bound=bound if status is Status.UNDECIDED else None,
            reasons=_reasons(model) if status is Status.INFEASIBLE else (),
            seconds=time.perf_counter() - started,
        )
    objective = float(pyo.value(only_objective(model)))
    if claimed is Status.OPTIMAL and not is_integer:
        bound = objective
    return Solution(
        status=Status.OPTIMAL if claimed is Status.OPTIMAL else Status.FEASIBLE,
        backend=backend,
        objective=objective,
        bound=bound,
        seconds=time.perf_counter() - started,
    )


def installed_solvers() -> tuple[str, ...]:
    """Return the solvers of KEYWORDS that Pyomo can run on this system."""
    return tuple(name for name in KEYWORDS if _is_available(name))


def version(solver: str) -> str:
    """Return the version of the solver behind `pyomo:<solver>`, which must be there, and Pyomo's."""
    return f"{_solver_version(pyo.SolverFactory(solver))} (pyomo {pyomo_version})".lstrip()


def capabilities(solver: str) -> Capabilities:
    """Return the capabilities of the solver of `pyomo:<solver>`; raise InputError if Pyomo finds none."""
    if not _is_available(solver):
        advice = did_you_mean(solver, installed_solvers())
        raise InputError(f"pyomo finds no solver '{solver}'{advice}")
    supported = KEYWORDS.get(solver, Keywords())
    return Capabilities(
        integer=supported.integer,
        options=[option for option in LIMITS if getattr(supported, option) is not None],
        linear_algorithms=tuple(supported.algorithm),
        dual_values=supported.dual_values,
    )


def keywords(name: str, options: Options) -> dict[str, Any]:
    """Return the options by the solver's own names."""
    supported, values = KEYWORDS.get(name, Keywords()), {}
    for option in LIMITS:
        value, keyword = getattr(options, option), getattr(supported, option)
        if value is not None and keyword is not None and keyword != ONE_THREAD:
            rounds_up = option == "time_limit_s" and supported.whole_seconds
            values[keyword] = math.ceil(value) if rounds_up else value
    if options.algorithm in supported.algorithm:
        keyword, value = supported.algorithm[options.algorithm]
        values[keyword] = value
    return values


@cache
def _is_available(name: str) -> bool:
    if name not in pyo.SolverFactory:
        return False
    with _LOCK, LoggingIntercept(module="pyomo"):  # Pyomo logs what is missing
        try:
            return bool(pyo.SolverFactory(name).available(exception_flag=False))
        except Exception:  # a plug-in that fails here is not available either
            return False


def _solver_version(solver: Any) -> str:
    return ".".join(str(number) for number in (solver.version() or ())[:3])


@contextmanager
def _run(
    model: pyo.ConcreteModel, name: str, options: Options
) -> Iterator[tuple[Status | str, bool, float | None, str]]:
    """Yield the claimed status, whether the model has values, the bound and the backend; hold the lock."""
    with _LOCK:
        solver = pyo.SolverFactory(name)
        solver.options.update(keywords(name, options))
        backend = f"pyomo {pyomo_version} {name} {_solver_version(solver)}".rstrip()
        try:
            results = run_in_thread(lambda: solver.solve(model, load_solutions=False, tee=False))
        except (ApplicationError, RuntimeError, ValueError, OSError) as error:
            raise SolverFailure(f"{backend} failed: {' '.join(str(error).split())[:300]}") from error
        condition = results.solver.termination_condition
        if condition not in STATUS:
            message = getattr(results.solver, "message", None) or ""
            raise SolverFailure(f"{backend} failed: {condition} {message}".rstrip())
        claimed = STATUS[condition]
        has_values = (
            claimed in (Status.OPTIMAL, Status.FEASIBLE, Status.UNDECIDED) and len(results.solution) > 0
        )
        if has_values:
            results.solver.status = (
                SolverStatus.ok
            )  # loading refuses values of a solve that stopped at a limit
            model.solutions.load_from(results)
        yield claimed, has_values, _bound(model, results), backend


def _bound(model: pyo.ConcreteModel, results: Any) -> float | None:
    side = (
        results.problem.lower_bound if only_objective(model).is_minimizing() else results.problem.upper_bound
    )
    try:
        value = float(side)
    except (TypeError, ValueError):
        return None
    return value if abs(value) < 1e20 else None


def _program(model: LinearProgram) -> pyo.ConcreteModel:
    """Return the arrays as a Pyomo model that minimises: signs of dual values differ when maximising."""
    program = pyo.ConcreteModel()
    rows, columns = model.shape
    bounds = list(zip(_finite_or_none(model.lower), _finite_or_none(model.upper), strict=True))
    is_integer = [False] * columns if model.integer is None else model.integer.tolist()
    program.x = pyo.Var(
        range(columns),
        bounds=lambda _, j: bounds[j],
        domain=lambda _, j: pyo.Integers if is_integer[j] else pyo.Reals,
    )
    x = [program.x[j] for j in range(columns)]
    sign = 1.0 if model.sense == "min" else -1.0
    program.objective = pyo.Objective(
        expr=LinearExpression(
            constant=sign * model.offset, linear_coefs=(sign * model.cost).tolist(), linear_vars=x
        )
    )
    low, high = _finite_or_none(model.row_lower), _finite_or_none(model.row_upper)
    starts, indices = model.matrix.indptr.tolist(), model.matrix.indices.tolist()
    values = model.matrix.data.tolist()

    def row(_: Any, i: int) -> Any:
        entries = slice(starts[i], starts[i + 1])
        body = LinearExpression(
            constant=0, linear_coefs=values[entries], linear_vars=[x[j] for j in indices[entries]]
        )
        return body == low[i] if low[i] == high[i] else (low[i], body, high[i])

    rows_with_limits = [
        i for i in range(rows) if starts[i] < starts[i + 1] and (low[i] is not None or high[i] is not None)
    ]
    program.rows = pyo.Constraint(rows_with_limits, rule=row)
    if not model.is_integer:
        program.dual = pyo.Suffix(direction=pyo.Suffix.IMPORT)
    return program


def _finite_or_none(limits: np.typing.NDArray[np.float64]) -> list[float | None]:
    return [limit if math.isfinite(limit) else None for limit in limits.tolist()]


def _values(model: LinearProgram, program: pyo.ConcreteModel) -> np.typing.NDArray[np.float64]:
    nearest_to_zero = np.clip(0.0, model.lower, model.upper)  # for variables that nothing refers to
    values = [variable.value for variable in program.x.values()]
    return np.array([z if v is None else v for v, z in zip(values, nearest_to_zero, strict=True)])


def _duals(model: LinearProgram, program: pyo.ConcreteModel) -> np.typing.NDArray[np.float64] | None:
    duals = np.zeros(model.shape[0])
    for i, constraint in program.rows.items():
        value = program.dual.get(constraint)
        if value is None:
            return None
        duals[i] = value
    return duals if model.sense == "min" else -duals


def _solve_as_arrays(model: pyo.ConcreteModel, options: Options) -> Solution:
    program, variables = to_arrays(model)
    solution = solve_program(program, options)
    if solution.x is not None:
        for variable, value in zip(variables, solution.x.tolist(), strict=True):
            variable.set_value(value, skip_validation=True)
    return replace(solution, x=None, row_duals=None, reduced_costs=None)


def _resolve_ambiguity(model: pyo.ConcreteModel, options: Options, backend: str) -> Solution:
    """Solve again without costs: unbounded where that model is feasible."""
    probe = model.clone()
    only_objective(probe).set_value(0.0)
    solution = solve_model(probe, options)
    if solution.status in (Status.OPTIMAL, Status.FEASIBLE):
        return Solution(status=Status.UNBOUNDED, backend=backend)
    return replace(solution, backend=backend)


def _reasons(model: pyo.ConcreteModel) -> tuple[str, ...]:
    try:
        program = from_pyomo(model)
    except ValueError:  # not linear: no such proof
        return ()
    return contradictory_limits(program) or explain(program, seconds=EXPLANATION_LIMIT_S) or ()
