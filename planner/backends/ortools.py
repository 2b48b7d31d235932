"""OR-Tools (GLOP, PDLP, CP-SAT, SCIP), given sparse arrays."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module, metadata
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

from planner.backends.declarations import ORTOOLS
from planner.backends.linear_program import LinearProgram
from planner.backends.registry import capability_faults
from planner.backends.solution import Solution
from planner.backends.solver_thread import run_in_thread
from planner.backends.verification import InfeasibleOrUnbounded, implied_limits, judge
from planner.contract.proof import Status
from planner.errors import SolverFailure
from planner.options import Options

import_module("ortools.linear_solver.linear_solver_pb2")  # makes `response()` readable

VERSION = metadata.version("ortools")
NAME = f"ortools {VERSION}"

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
    """Names that one of the solvers has for our options; `declarations.ORTOOLS` says which it honours.

    id             name in OR-Tools
    threads        parameter for the most threads; None where it uses one anyway
    seed           parameter for the seed; None where it has none
    gap            parameter for the relative gap; None where the answer is exact
    default_gap    the gap where none is requested, and the smallest; None for the solver's own
    signals        parameter that leaves Ctrl-C to Python
    infeasible     meaning of the answer "infeasible": GLOP and SCIP give it for unbounded too
    """

    id: str
    threads: str | None = None
    seed: str | None = None
    gap: str | None = None
    default_gap: float | None = None
    signals: str = ""
    infeasible: Status | str = Status.INFEASIBLE


# Tolerances per row, not for the norm of all rows: a plan with one row far off is no plan.
PDLP_TERMINATION = """termination_criteria {
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
    "glop": Solver(id="glop", seed="random_seed: {}", infeasible=AMBIGUOUS),
    "pdlp": Solver(id="pdlp", threads="num_threads: {}", gap=PDLP_TERMINATION, default_gap=1e-8),
    "cp-sat": Solver(
        id="sat",
        threads="num_workers: {}",
        seed="random_seed: {}",
        gap="relative_gap_limit: {}",
        signals="catch_sigint_signal: false",
    ),
    "scip": Solver(
        id="scip",
        seed="randomization/randomseedshift = {}",
        gap="limits/gap = {}",
        signals="misc/catchctrlc = FALSE",
        infeasible=AMBIGUOUS,
    ),
}

CP_SAT_LIMIT = 1e7
"""Largest magnitude of a variable in CP-SAT; it truncates the domain of others without a word."""

PDLP_NONZEROS = 100_000
"""Number of coefficients from which `auto` takes PDLP instead of GLOP."""


def solve(model: LinearProgram, options: Options) -> Solution:
    """Solve with the solver that `options.backend` names, or that suits the model.

    raises  SolverFailure where the solver fails; InfeasibleOrUnbounded where it does not tell which
    """
    name = choose_solver(model, options)
    backend = f"{NAME} {name}"

    text = parameters(options, name)
    program = load(model)
    helper = _run(program, name, text, options.time_limit_s)
    if name == "cp-sat" and helper.has_response() and helper.status() == SolveStatus.MODEL_INVALID:
        # Its presolve of rows may leave `2 x = 1`, and then calls the model invalid.
        helper = _run(program, name, f"{text}\nmip_presolve_level: 0", options.time_limit_s)

    claimed = _status(helper, name, backend)
    has_solution = helper.has_solution()
    has_duals = ORTOOLS.solvers[name].dual_values
    return judge(
        model,
        claimed=claimed,
        has_basis=name != "pdlp",
        x=helper.variable_values() if has_solution else None,
        row_duals=helper.dual_values() if has_solution and has_duals else None,
        bound=helper.best_objective_bound() if has_solution and not has_duals else None,
        gap=options.gap,
        backend=backend,
    )


def version(solver: str) -> str:  # noqa: ARG001 - one for all of them
    """Return the version of OR-Tools."""
    return VERSION


def _run(program: Any, name: str, text: str, seconds: float | None) -> Any:
    helper: Any = ModelSolverHelper(SOLVERS[name].id)
    helper.enable_output(False)
    if seconds is not None:
        helper.set_time_limit_in_seconds(float(seconds))
    helper.set_solver_specific_parameters(text)
    run_in_thread(lambda: helper.solve(program), cancel=helper.interrupt_solve, time_limit_s=seconds)
    return helper


def choose_solver(model: LinearProgram, options: Options) -> str:
    """Return the solver that `options.backend` names, or for plain `ortools` one by the model's shape.

    Linear programs go to GLOP, large ones to PDLP. Programs whose variables and numbers are all integer
    go to CP-SAT, other integer programs to SCIP.
    """
    if named := options.backend.partition(":")[2]:
        return named
    if model.integer is not None:
        return "cp-sat" if _is_all_integer(model, model.integer) else "scip"
    is_large = model.matrix.nnz >= PDLP_NONZEROS and options.seed is None
    use_pdlp = options.algorithm == "pdlp" or (options.algorithm == "auto" and is_large)
    return "pdlp" if use_pdlp else "glop"


def _is_all_integer(model: LinearProgram, integer: NDArray[np.bool_]) -> bool:
    """Return whether all variables and numbers are integers, and within the range of CP-SAT."""
    numbers = (model.cost, model.matrix.data, _finite(model.row_lower), _finite(model.row_upper))
    is_all_integer = integer.all() and all((array == np.round(array)).all() for array in numbers)
    return bool(is_all_integer) and _first_beyond_cp_sat(model) is None


def parameters(options: Options, name: str) -> str:
    """Return the options as the solver's own parameter text."""
    solver = SOLVERS[name]
    gap = options.gap if solver.default_gap is None else max(options.gap or 0.0, solver.default_gap)
    pairs = ((options.threads, solver.threads), (options.seed, solver.seed), (gap, solver.gap))
    lines = [
        text.replace("{}", str(value)) for value, text in pairs if value is not None and text is not None
    ]
    return "\n".join([*lines, *filter(None, [solver.signals])])


def load(model: LinearProgram) -> Any:
    """Return the program inside OR-Tools."""
    matrix = model.matrix
    helper: Any = ModelBuilderHelper()  # its type stubs do not accept NumPy's array types
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
    """Return the reasons for which the solver, named or chosen, cannot solve the model, one line each."""
    name = choose_solver(model, options)
    refused = capability_faults(f"ortools:{name}", ORTOOLS.solvers[name], model, options)
    if name == "cp-sat" and not refused and (j := _first_beyond_cp_sat(model)) is not None:
        refused.append(
            f"ortools:cp-sat needs limits within 1e7, and variable '{model.column_name(j)}' has none: "
            "give it limits or use 'ortools:scip'"
        )
    return refused


def _first_beyond_cp_sat(model: LinearProgram) -> int | None:
    """Return the first variable that neither its limits nor a row keeps within CP-SAT's range."""
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
    if claimed is Status.UNDECIDED and _is_ambiguous(helper, name):
        claimed = AMBIGUOUS
    if isinstance(claimed, Status):
        return claimed
    raise InfeasibleOrUnbounded(backend)


def _is_ambiguous(helper: Any, name: str) -> bool:
    """Return whether CP-SAT or PDLP, in another field than the status, says infeasible or unbounded."""
    if name == "pdlp":
        log = solve_log_pb2.SolveLog.FromString(helper.response().solver_specific_info)
        return log.termination_reason in (
            solve_log_pb2.TERMINATION_REASON_DUAL_INFEASIBLE,
            solve_log_pb2.TERMINATION_REASON_PRIMAL_OR_DUAL_INFEASIBLE,
        )
    return "infeasible or unbounded" in helper.status_string()
