"""Pyomo: solvers that only Pyomo reaches, and models that are written in Pyomo."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from threading import RLock
from typing import Any

import numpy as np
import pyomo.environ as pyo
from pyomo.common.errors import ApplicationError
from pyomo.common.log import LoggingIntercept
from pyomo.core.expr.numeric_expr import LinearExpression
from pyomo.opt import SolverStatus, TerminationCondition
from pyomo.version import version as pyomo_version

from planner.backends import Solution
from planner.backends.apart import apart
from planner.backends.linear import LinearProgram
from planner.backends.standard_form import from_pyomo, only_objective, to_arrays
from planner.backends.verify import InfeasibleOrUnbounded, judge
from planner.errors import InputError, SolverFailure, did_you_mean
from planner.options import Options
from planner.proof import Status

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
"""In place of an option's name: the solver uses one thread, which is at most any number."""


@dataclass(frozen=True, kw_only=True)
class Keywords:
    """What a solver calls our options; None where it has none, which refuses the option."""

    time_limit_s: str | None = None
    gap: str | None = None
    threads: str | None = None
    seed: str | None = None
    whole_seconds: bool = False  # takes no fractions of a second
    algorithm: Mapping[str, tuple[str, str]] | None = None  # ours: its option and value


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
    "gurobi_persistent": _GUROBI,
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
    ),
    "ipopt": Keywords(time_limit_s="max_cpu_time", threads=ONE_THREAD),
}

_CALLS = RLock()
"""Pyomo keeps global state and captures the process' output: one solve at a time."""


def solve(model: LinearProgram, options: Options) -> Solution:
    """Solve through a Pyomo model built from the arrays.

    Raises InputError where the solver is unknown, missing, or cannot honour an option,
    SolverFailure where it fails, InfeasibleOrUnbounded where it cannot tell which.
    """
    if refused := faults(model, options):
        raise InputError(*refused)
    name = options.backend.partition(":")[2]
    program = _program(model)
    with _run(program, name, options) as (claimed, loaded, bound, backend):
        x = row_duals = None
        if loaded:
            x = _values(model, program)
            row_duals = None if model.is_integer else _duals(model, program)
    if claimed == AMBIGUOUS:
        raise InfeasibleOrUnbounded(backend)
    assert isinstance(claimed, Status)
    return judge(
        model,
        claimed=claimed,
        vertex=options.algorithm != "pdlp" and name != "ipopt",
        x=x,
        row_duals=row_duals,
        bound=None if bound is None else (bound if model.sense == "min" else -bound),
        gap=options.gap,
        backend=backend,
    )


def solve_model(model: pyo.ConcreteModel, options: Options = Options()) -> Solution:
    """Solve a Pyomo model, linear or not, and leave the values in it where there are any.

    Through `pyomo:<solver>` the model goes to Pyomo as it is. Other backends solve its linear
    program (`standard_form.from_pyomo`); ValueError where it has none. The Solution's `x` and duals
    are None: look into the model. Raises as `solve` does.
    """
    started = time.perf_counter()
    family, _, name = options.backend.partition(":")
    if family != "pyomo":
        return _through_arrays(model, options)
    integer = any(v.is_integer() for v in model.component_data_objects(pyo.Var))
    if refused := _faults(options, integer=integer):
        raise InputError(*refused)
    with _run(model, name, options) as (claimed, loaded, bound, backend):
        pass
    if claimed == AMBIGUOUS:
        return replace(_ambiguity(model, options, backend), seconds=time.perf_counter() - started)
    assert isinstance(claimed, Status)
    if claimed in (Status.INFEASIBLE, Status.UNBOUNDED) or not loaded:
        status = claimed if claimed in (Status.INFEASIBLE, Status.UNBOUNDED) else Status.UNDECIDED
        return Solution(
            status=status,
            backend=backend,
            bound=bound if status is Status.UNDECIDED else None,
            reasons=_reasons(model) if status is Status.INFEASIBLE else (),
            seconds=time.perf_counter() - started,
        )
    objective = float(pyo.value(only_objective(model)))
    if claimed is Status.OPTIMAL and not integer:
        bound = objective
    return Solution(
        status=Status.OPTIMAL if claimed is Status.OPTIMAL else Status.FEASIBLE,
        backend=backend,
        objective=objective,
        bound=bound,
        seconds=time.perf_counter() - started,
    )


def found() -> tuple[str, ...]:
    """Solvers among those whose options are known here that Pyomo can run on this system."""
    return tuple(name for name in KEYWORDS if _available(name))


def version(name: str) -> str:
    """Version of the solver behind `pyomo:<name>`, and Pyomo's; it must be there."""
    return f"{_solver_version(pyo.SolverFactory(name))} (pyomo {pyomo_version})".lstrip()


def faults(model: LinearProgram, options: Options) -> list[str]:
    """Why this cannot run, one line each; [] if it can."""
    return _faults(options, integer=model.is_integer)


def _faults(options: Options, *, integer: bool) -> list[str]:
    name = options.backend.partition(":")[2]
    if not _available(name):
        return [f"pyomo finds no solver '{name}'{did_you_mean(name, found())}"]
    known = KEYWORDS.get(name, Keywords())
    refused = [
        f"pyomo:{name} takes no '{field}': leave it unset"
        for field in ("time_limit_s", "gap", "threads", "seed")
        if getattr(options, field) is not None and getattr(known, field) is None
    ]
    if options.algorithm != "auto" and (integer or options.algorithm not in (known.algorithm or {})):
        refused.append(f"pyomo:{name} takes no algorithm '{options.algorithm}' here: leave it at 'auto'")
    return refused


def keywords(name: str, options: Options) -> dict[str, Any]:
    """The options in the solver's own words."""
    known, told = KEYWORDS.get(name, Keywords()), {}
    for field in ("time_limit_s", "gap", "threads", "seed"):
        value, keyword = getattr(options, field), getattr(known, field)
        if value is not None and keyword is not None and keyword != ONE_THREAD:
            whole = field == "time_limit_s" and known.whole_seconds
            told[keyword] = math.ceil(value) if whole else value
    if options.algorithm != "auto" and known.algorithm is not None:
        option, value = known.algorithm[options.algorithm]
        told[option] = value
    return told


@cache
def _available(name: str) -> bool:
    if name not in pyo.SolverFactory:
        return False
    with _CALLS, LoggingIntercept(module="pyomo"):  # what is missing is for us to say
        try:
            return bool(pyo.SolverFactory(name).available(exception_flag=False))
        except Exception:  # a plug-in that breaks while it is asked is not available either
            return False


def _solver_version(solver: Any) -> str:
    return ".".join(str(part) for part in (solver.version() or ())[:3])


@contextmanager
def _run(
    model: pyo.ConcreteModel, name: str, options: Options
) -> Iterator[tuple[Status | str, bool, float | None, str]]:
    """Claimed status, whether values were loaded, bound, and what ran; Pyomo is held meanwhile."""
    with _CALLS:
        solver = pyo.SolverFactory(name)
        solver.options.update(keywords(name, options))
        backend = f"pyomo {pyomo_version} {name} {_solver_version(solver)}".rstrip()
        try:
            results = apart(lambda: solver.solve(model, load_solutions=False, tee=False))
        except (ApplicationError, RuntimeError, ValueError, OSError) as error:
            raise SolverFailure(f"{backend} failed: {' '.join(str(error).split())[:300]}") from error
        condition = results.solver.termination_condition
        if condition not in STATUS:
            message = getattr(results.solver, "message", None) or ""
            raise SolverFailure(f"{backend} failed: {condition} {message}".rstrip())
        claimed = STATUS[condition]
        loaded = claimed in (Status.OPTIMAL, Status.FEASIBLE, Status.UNDECIDED) and len(results.solution) > 0
        if loaded:
            results.solver.status = SolverStatus.ok  # a stop at a limit is no fault, as loading has it
            model.solutions.load_from(results)
        yield claimed, loaded, _bound(model, results), backend


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
    """The arrays as a Pyomo model that minimises: signs of dual values differ when maximising."""
    program = pyo.ConcreteModel()
    rows, columns = model.shape
    bounds = list(zip(_optional(model.lower), _optional(model.upper), strict=True))
    whole = [False] * columns if model.integer is None else model.integer.tolist()
    program.x = pyo.Var(
        range(columns),
        bounds=lambda _, j: bounds[j],
        domain=lambda _, j: pyo.Integers if whole[j] else pyo.Reals,
    )
    x = [program.x[j] for j in range(columns)]
    sign = 1.0 if model.sense == "min" else -1.0
    program.objective = pyo.Objective(
        expr=LinearExpression(
            constant=sign * model.offset, linear_coefs=(sign * model.cost).tolist(), linear_vars=x
        )
    )
    low, high = _optional(model.row_lower), _optional(model.row_upper)
    starts, indices = model.matrix.indptr.tolist(), model.matrix.indices.tolist()
    values = model.matrix.data.tolist()

    def row(_: Any, i: int) -> Any:
        part = slice(starts[i], starts[i + 1])
        body = LinearExpression(
            constant=0, linear_coefs=values[part], linear_vars=[x[j] for j in indices[part]]
        )
        return body == low[i] if low[i] == high[i] else (low[i], body, high[i])

    limited = [
        i for i in range(rows) if starts[i] < starts[i + 1] and (low[i] is not None or high[i] is not None)
    ]
    program.rows = pyo.Constraint(limited, rule=row)
    if not model.is_integer:
        program.dual = pyo.Suffix(direction=pyo.Suffix.IMPORT)
    return program


def _optional(limits: np.typing.NDArray[np.float64]) -> list[float | None]:
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


def _through_arrays(model: pyo.ConcreteModel, options: Options) -> Solution:
    from planner.backends import solve as solve_arrays

    program, variables = to_arrays(model)
    solution = solve_arrays(program, options)
    if solution.x is not None:
        for variable, value in zip(variables, solution.x.tolist(), strict=True):
            variable.set_value(value, skip_validation=True)
    return replace(solution, x=None, row_duals=None, reduced_costs=None)


def _ambiguity(model: pyo.ConcreteModel, options: Options, backend: str) -> Solution:
    """Ask again without costs: where there is a plan then, the costs have no limit."""
    probe = model.clone()
    only_objective(probe).set_value(0.0)
    answer = solve_model(probe, options)
    if answer.status in (Status.OPTIMAL, Status.FEASIBLE):
        return Solution(status=Status.UNBOUNDED, backend=backend)
    return replace(answer, backend=backend)


def _reasons(model: pyo.ConcreteModel) -> tuple[str, ...]:
    from planner.backends.conflict import contradictory_limits, explain

    try:
        program = from_pyomo(model)
    except ValueError:  # not linear: no proof of this kind
        return ()
    return contradictory_limits(program) or explain(program, seconds=10.0) or ()
