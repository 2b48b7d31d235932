"""OR-Tools (GLOP, PDLP, CP-SAT, SCIP), fed with sparse arrays."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import version
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from ortools.linear_solver.python.model_builder_helper import (
    ModelBuilderHelper,
    ModelSolverHelper,
    SolveStatus,
)
from ortools.pdlp import solve_log_pb2

from planner.backends import Solution
from planner.backends.apart import apart
from planner.backends.linear import LinearProgram
from planner.backends.verify import InfeasibleOrUnbounded, implied_limits, judge
from planner.errors import InputError, SolverFailure
from planner.options import Options
from planner.proof import Status

import_module("ortools.linear_solver.linear_solver_pb2")  # makes `response()` readable

NAME = f"ortools {version('ortools')}"

AMBIGUOUS = "infeasible or unbounded"

STATUS: dict[SolveStatus, Status | str] = {
    # https://github.com/google/or-tools/blob/stable/ortools/linear_solver/linear_solver.proto
    SolveStatus.OPTIMAL: Status.OPTIMAL,
    SolveStatus.FEASIBLE: Status.FEASIBLE,
    SolveStatus.INFEASIBLE: Status.INFEASIBLE,
    SolveStatus.UNBOUNDED: AMBIGUOUS,  # a ray was found, not always a point to start it from
    SolveStatus.NOT_SOLVED: Status.UNDECIDED,
    SolveStatus.UNKNOWN_STATUS: Status.UNDECIDED,
    SolveStatus.CANCELLED_BY_USER: Status.UNDECIDED,
}


@dataclass(frozen=True, kw_only=True)
class Solver:
    """What one of the solvers can do and how it is told.

    linear, integer   whether it takes such programs
    threads           parameter for the most threads; None where it uses one anyway
    seed              parameter for the seed; None where it has none
    gap               parameter for the relative gap; None where the answer is exact
    least_gap         what the gap is where none is asked for, and at least; None for the solver's own
    own_signals       keeps its hands off Ctrl-C, which is Python's to handle
    infeasible        what it means when the solver says so: GLOP and SCIP say it of unbounded too
    """

    id: str
    linear: bool
    integer: bool
    threads: str | None
    seed: str | None
    gap: str | None
    least_gap: float | None = None
    own_signals: str = ""
    infeasible: Status | str = Status.INFEASIBLE


# Each row on its own, not the norm of all: one row far off is no plan.
PDLP_ENDS = """termination_criteria {
  optimality_norm: OPTIMALITY_NORM_L_INF_COMPONENTWISE
  detailed_optimality_criteria {
    eps_optimal_primal_residual_absolute: 1e-8
    eps_optimal_primal_residual_relative: 1e-8
    eps_optimal_dual_residual_absolute: 1e-8
    eps_optimal_dual_residual_relative: 1e-8
    eps_optimal_objective_gap_absolute: 1e-8
    eps_optimal_objective_gap_relative: {}
  }
}"""

SOLVERS = {
    "glop": Solver(
        id="glop",
        linear=True,
        integer=False,
        threads=None,
        seed="random_seed: {}",
        gap=None,
        infeasible=AMBIGUOUS,
    ),
    "pdlp": Solver(
        id="pdlp",
        linear=True,
        integer=False,
        threads="num_threads: {}",
        seed=None,
        gap=PDLP_ENDS,
        least_gap=1e-8,
    ),
    "cp-sat": Solver(
        id="sat",
        linear=False,
        integer=True,
        threads="num_workers: {}",
        seed="random_seed: {}",
        gap="relative_gap_limit: {}",
        own_signals="catch_sigint_signal: false",
    ),
    "scip": Solver(
        id="scip",
        linear=True,
        integer=True,
        threads=None,
        seed="randomization/randomseedshift = {}",
        gap="limits/gap = {}",
        own_signals="misc/catchctrlc = FALSE",
        infeasible=AMBIGUOUS,
    ),
}

CP_SAT_LIMIT = 1e7
"""CP-SAT cuts variables off here: its answer would be that of another program."""

PDLP_NONZEROS = 100_000
"""Coefficients from which `auto` takes PDLP before GLOP."""


def solve(model: LinearProgram, options: Options) -> Solution:
    """Solve with the solver that `options.backend` names, or that suits the model.

    Raises InputError where the solver cannot take the model or an option, SolverFailure where it
    fails, InfeasibleOrUnbounded where it cannot tell which.
    """
    if refused := faults(model, options):
        raise InputError(*refused)
    name = choose(model, options)
    backend = f"{NAME} {name}"

    told = parameters(options, name)
    program = load(model)
    helper = _run(program, name, told, options.time_limit_s)
    if name == "cp-sat" and helper.has_response() and helper.status() == SolveStatus.MODEL_INVALID:
        # Its presolve of rows may leave `2 x = 1`, and then calls the model invalid.
        helper = _run(program, name, f"{told}\nmip_presolve_level: 0", options.time_limit_s)

    claimed = _status(helper, name, backend)
    found = helper.has_solution()
    has_duals = name in ("glop", "pdlp")  # the others give no dual values
    return judge(
        model,
        claimed=claimed,
        vertex=name != "pdlp",
        x=helper.variable_values() if found else None,
        row_duals=helper.dual_values() if found and has_duals else None,
        bound=helper.best_objective_bound() if found and not has_duals else None,
        gap=options.gap,
        backend=backend,
    )


def _run(program: Any, name: str, told: str, seconds: float | None) -> Any:
    helper: Any = ModelSolverHelper(SOLVERS[name].id)
    helper.enable_output(False)
    if seconds is not None:
        helper.set_time_limit_in_seconds(float(seconds))
    helper.set_solver_specific_parameters(told)
    apart(lambda: helper.solve(program), cancel=helper.interrupt_solve)
    return helper


def choose(model: LinearProgram, options: Options) -> str:
    """The solver that `options.backend` names, or for plain `ortools` the one that suits the model.

    Linear programs go to GLOP, large ones to PDLP. All-integer programs with whole numbers go to
    CP-SAT, other integer programs to SCIP.
    """
    if named := options.backend.partition(":")[2]:
        return named
    if not model.is_integer:
        if options.algorithm == "simplex":
            return "glop"
        large = model.matrix.nnz >= PDLP_NONZEROS and options.seed is None
        return "pdlp" if options.algorithm == "pdlp" or (options.algorithm == "auto" and large) else "glop"
    assert model.integer is not None
    numbers = (model.cost, model.matrix.data, _finite(model.row_lower), _finite(model.row_upper))
    whole = model.integer.all() and all((part == np.round(part)).all() for part in numbers)
    return "cp-sat" if whole and _beyond_cp_sat(model) is None else "scip"


def parameters(options: Options, name: str) -> str:
    """The options in the solver's own parameter text."""
    solver = SOLVERS[name]
    gap = options.gap if solver.least_gap is None else max(options.gap or 0.0, solver.least_gap)
    told = ((options.threads, solver.threads), (options.seed, solver.seed), (gap, solver.gap))
    lines = [text.replace("{}", str(value)) for value, text in told if value is not None and text is not None]
    return "\n".join([*lines, *filter(None, [solver.own_signals])])


def load(model: LinearProgram) -> Any:
    """The program inside OR-Tools."""
    matrix = model.matrix
    helper: Any = ModelBuilderHelper()  # its stubs do not know how NumPy's types are written
    helper.fill_model_from_sparse_data(
        model.lower,
        model.upper,
        model.cost,
        model.row_lower,
        model.row_upper,
        sp.csr_matrix((matrix.data, matrix.indices, matrix.indptr), shape=matrix.shape),
    )
    helper.set_maximize(model.sense == "max")
    helper.set_objective_offset(model.offset)
    if model.integer is not None:
        for j in np.flatnonzero(model.integer).tolist():  # the interface takes them one by one
            helper.set_var_integrality(j, True)
    return helper


def faults(model: LinearProgram, options: Options) -> list[str]:
    """Why this cannot run, one line each; [] if it can."""
    name = choose(model, options)
    solver, refused = SOLVERS[name], []
    if model.is_integer and not solver.integer:
        refused.append(f"ortools:{name} solves no integer programs: use 'ortools:cp-sat' or 'ortools:scip'")
    if name == "cp-sat":
        if model.integer is None or not model.integer.all():
            continuous = model.shape[1] - (0 if model.integer is None else int(model.integer.sum()))
            refused.append(
                f"ortools:cp-sat takes whole variables only, and {continuous} are continuous: "
                "use 'ortools:scip'"
            )
        elif (j := _beyond_cp_sat(model)) is not None:
            refused.append(
                f"ortools:cp-sat needs limits within 1e7, and variable '{model.column_name(j)}' has none: "
                "give it limits or use 'ortools:scip'"
            )
    if options.seed is not None and solver.seed is None:
        refused.append(f"ortools:{name} has no random seed: leave 'seed' unset")
    own = {"glop": ("auto", "simplex"), "pdlp": ("auto", "pdlp")}.get(name, ("auto",))
    if options.algorithm not in own:
        refused.append(f"ortools:{name} has no algorithm '{options.algorithm}': leave 'algorithm' at 'auto'")
    return refused


def _beyond_cp_sat(model: LinearProgram) -> int | None:
    """First variable that neither its limits nor a row keeps within CP-SAT's range."""
    if max(-model.lower.min(initial=0.0), model.upper.max(initial=0.0)) <= CP_SAT_LIMIT:
        return None
    low, high = implied_limits(model)
    beyond = np.flatnonzero((low < -CP_SAT_LIMIT) | (high > CP_SAT_LIMIT))
    return int(beyond[0]) if beyond.size else None


def _finite(limits: NDArray[np.float64]) -> NDArray[np.float64]:
    return limits[np.isfinite(limits)]


def _status(helper: Any, name: str, backend: str) -> Status:
    status = helper.status() if helper.has_response() else None
    claimed = STATUS.get(status) if status is not None else None
    if claimed is None:
        raise SolverFailure(f"{backend} failed: {status} {helper.status_string()}".rstrip())
    if claimed is Status.INFEASIBLE:
        claimed = SOLVERS[name].infeasible
    if claimed is Status.UNDECIDED and _says_ambiguous(helper, name):
        claimed = AMBIGUOUS
    if isinstance(claimed, Status):
        return claimed
    raise InfeasibleOrUnbounded(backend)


def _says_ambiguous(helper: Any, name: str) -> bool:
    """CP-SAT and PDLP report it as not solved, and the reason elsewhere."""
    if name == "pdlp":
        log = solve_log_pb2.SolveLog.FromString(helper.response().solver_specific_info)
        return log.termination_reason in (
            solve_log_pb2.TERMINATION_REASON_DUAL_INFEASIBLE,
            solve_log_pb2.TERMINATION_REASON_PRIMAL_OR_DUAL_INFEASIBLE,
        )
    return "infeasible or unbounded" in helper.status_string()
