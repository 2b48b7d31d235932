"""CPLEX, given the arrays through its Python interface; a licence of its own is needed for large programs."""

from __future__ import annotations

from typing import Any, Final

import cplex
import numpy as np
from cplex.exceptions import CplexError

from planner.backends import statuses
from planner.backends.linear_program import LinearProgram
from planner.backends.solution import Solution
from planner.backends.solver_thread import run_in_thread
from planner.backends.verification import judge
from planner.contract.proof import Status
from planner.errors import SolverFailure
from planner.options import Options

VERSION: Final = cplex.__version__
NAME: Final = f"cplex {VERSION}"
METHODS: Final = {"auto": 0, "simplex": 2, "interior-point": 4}
"""Parameter lpmethod by algorithm: dual simplex, or the barrier method with crossover."""


def version(solver: str) -> str:  # noqa: ARG001 - it is one solver
    """Return the version of CPLEX."""
    return str(VERSION)


def solve(model: LinearProgram, options: Options) -> Solution:
    """Solve with CPLEX.

    raises  InfeasibleOrUnbounded where CPLEX does not tell which; SolverFailure where it fails, as on a
            program beyond its licence
    """
    try:
        loaded = load(model, options)
        aborter = loaded.use_aborter(cplex.Aborter())
        run_in_thread(loaded.solve, cancel=aborter.abort, time_limit_s=options.time_limit_s)
        answer = loaded.solution
        claimed = statuses.read_status(statuses.CPLEX, answer.get_status(), NAME, answer.get_status_string())
        x = row_duals = bound = None
        if answer.is_primal_feasible():
            x = np.array(answer.get_values())
            if claimed is Status.OPTIMAL and not model.is_integer:
                row_duals = np.array(answer.get_dual_values())
        if model.is_integer and claimed is not Status.INFEASIBLE:
            bound = answer.MIP.get_best_objective()
        return judge(
            model,
            claimed=claimed,
            has_basis=True,
            x=x,
            row_duals=row_duals,
            bound=bound,
            gap=options.gap,
            backend=NAME,
        )
    except CplexError as error:
        raise SolverFailure(f"{NAME} failed: {' '.join(str(error).split())}") from error


def load(model: LinearProgram, options: Options = Options()) -> Any:
    """Return a silent CPLEX that is ready to run."""
    loaded = cplex.Cplex()
    for stream in ("set_log_stream", "set_error_stream", "set_warning_stream", "set_results_stream"):
        getattr(loaded, stream)(None)
    _set_parameters(loaded, options)
    loaded.objective.set_sense(
        loaded.objective.sense.minimize if model.sense == "min" else loaded.objective.sense.maximize
    )
    loaded.objective.set_offset(model.offset)
    types = "" if model.integer is None else "".join(np.where(model.integer, "I", "C"))
    largest = cplex.infinity
    loaded.variables.add(
        obj=model.cost.tolist(),
        lb=np.clip(model.lower, -largest, largest).tolist(),
        ub=np.clip(model.upper, -largest, largest).tolist(),
        types=types,
    )
    low, high = model.row_lower, model.row_upper
    senses = np.where(low == high, "E", np.where(np.isinf(high), "G", np.where(np.isinf(low), "L", "R")))
    # a range is from its right-hand side on; a row without limits is one of a range without end
    free = np.isinf(low) & np.isinf(high)
    rhs = np.where(np.isfinite(low), low, np.where(np.isfinite(high), high, -largest))
    senses[free] = "G"
    ranges = np.where(senses == "R", high - np.where(np.isfinite(low), low, 0.0), 0.0)
    loaded.linear_constraints.add(rhs=rhs.tolist(), senses="".join(senses), range_values=ranges.tolist())
    entries = model.matrix.tocoo()
    if entries.nnz:
        loaded.linear_constraints.set_coefficients(
            zip(entries.row.tolist(), entries.col.tolist(), entries.data.tolist(), strict=True)
        )
    return loaded


def _set_parameters(loaded: Any, options: Options) -> None:
    parameters = loaded.parameters
    parameters.lpmethod.set(METHODS[options.algorithm])
    for parameter, value in (
        (parameters.timelimit, options.time_limit_s),
        (parameters.mip.tolerances.mipgap, options.gap),
        (parameters.threads, options.threads),
        (parameters.randomseed, options.seed),
    ):
        if value is not None:
            parameter.set(value)
