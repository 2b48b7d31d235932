"""SCIP, given the arrays through PySCIPOpt."""

from __future__ import annotations

import math
from importlib import metadata
from typing import Any, Final

import numpy as np
import pyscipopt
from numpy.typing import NDArray
from pyscipopt import Expr, ExprCons

from planner.backends.linear_program import LinearProgram
from planner.backends.solution import Solution
from planner.backends.solver_thread import run_in_thread
from planner.backends.statuses import AMBIGUOUS, read_status
from planner.backends.verification import judge
from planner.contract.proof import Status
from planner.errors import SolverFailure
from planner.options import Options

VERSION: Final = str(pyscipopt.Model().version())
NAME: Final = f"scip {VERSION}"

STATUS: dict[str, Status | str] = {
    # https://www.scipopt.org/doc/html/type__stat_8h.php, by the names of Model.getStatus
    "optimal": Status.OPTIMAL,
    "gaplimit": Status.OPTIMAL,  # within the gap requested
    "infeasible": Status.INFEASIBLE,
    "unbounded": AMBIGUOUS,  # a ray of the relaxation, not always with a point to start from
    "inforunbd": AMBIGUOUS,
    # These become FEASIBLE where SCIP has found a solution.
    "timelimit": Status.UNDECIDED,
    "userinterrupt": Status.UNDECIDED,
    "nodelimit": Status.UNDECIDED,
    "totalnodelimit": Status.UNDECIDED,
    "stallnodelimit": Status.UNDECIDED,
    "memlimit": Status.UNDECIDED,
    "sollimit": Status.UNDECIDED,
    "bestsollimit": Status.UNDECIDED,
    "restartlimit": Status.UNDECIDED,
    "primallimit": Status.UNDECIDED,
    "duallimit": Status.UNDECIDED,
}


def version(solver: str) -> str:  # noqa: ARG001 - it is one solver
    """Return the versions of SCIP and of PySCIPOpt."""
    return f"{VERSION} (pyscipopt {metadata.version('pyscipopt')})"


def solve(model: LinearProgram, options: Options) -> Solution:
    """Solve with SCIP: branch and bound, or the dual simplex of SoPlex for linear programs.

    raises  InfeasibleOrUnbounded where SCIP does not tell which; SolverFailure where it fails
    """
    scip, variables, rows = load(model, options)
    try:
        run_in_thread(
            scip.optimizeNogil,
            cancel=scip.interruptSolve,
            time_limit_s=options.time_limit_s,  # its own follows the clock of the system
            overrun_s=0.0,
        )
    except Exception as error:  # PySCIPOpt raises plain exceptions, by SCIP's return code
        raise SolverFailure(f"{NAME} failed: {error}") from error
    claimed = read_status(STATUS, scip.getStatus(), NAME)
    x = row_duals = None
    if scip.getNSols():
        best = scip.getBestSol()
        x = np.array([best[variable] for variable in variables])
        if claimed is Status.OPTIMAL and not model.is_integer:
            row_duals = _row_duals(model, scip, rows, x)
    return judge(
        model,
        claimed=claimed,
        has_basis=True,
        x=x,
        row_duals=row_duals,
        bound=scip.getDualbound(),
        gap=options.gap,
        backend=NAME,
    )


def load(model: LinearProgram, options: Options = Options()) -> tuple[Any, list[Any], dict[int, Any]]:
    """Return a silent SCIP that is ready to run, its variables, and its constraints by row.

    Rows without coefficients or limits are left out. Linear programs are solved without presolve, which
    would leave no dual values.
    """
    scip = pyscipopt.Model(model.name)
    scip.hideOutput()
    scip.setParams(_parameters(model, options))
    integer = [False] * model.shape[1] if model.integer is None else model.integer.tolist()
    columns = zip(model.lower.tolist(), model.upper.tolist(), model.cost.tolist(), integer, strict=True)
    variables = [
        scip.addVar(
            name=f"x{j}", vtype="I" if is_integer else "C", lb=_finite(low), ub=_finite(high), obj=cost
        )
        for j, (low, high, cost, is_integer) in enumerate(columns)
    ]
    scip.addObjoffset(model.offset)
    if model.sense == "max":
        scip.setMaximize()
    rows: dict[int, Any] = {}
    starts, indices = model.matrix.indptr.tolist(), model.matrix.indices.tolist()
    values = model.matrix.data.tolist()
    for i, (low, high) in enumerate(zip(model.row_lower.tolist(), model.row_upper.tolist(), strict=True)):
        if starts[i] == starts[i + 1] or (math.isinf(low) and math.isinf(high)):
            continue
        rows[i] = scip.addCons(ExprCons(Expr(), _finite(low), _finite(high)), name=f"r{i}")
        for k in range(starts[i], starts[i + 1]):  # the interface takes coefficients one by one
            scip.addCoefLinear(rows[i], variables[indices[k]], values[k])
    return scip, variables, rows


def _parameters(model: LinearProgram, options: Options) -> dict[str, Any]:
    """Return the options by SCIP's own names; it uses one thread whatever `threads` is."""
    values: dict[str, Any] = {"misc/catchctrlc": False}  # left to Python
    if options.gap is not None:
        values["limits/gap"] = float(options.gap)
    if options.seed is not None:
        values["randomization/randomseedshift"] = options.seed
    if not model.is_integer:
        values |= {
            "presolving/maxrounds": 0,
            "propagating/maxroundsroot": 0,
            "separating/maxroundsroot": 0,
            "constraints/linear/propfreq": -1,
        }
    return values


def _finite(limit: float) -> float | None:
    return limit if math.isfinite(limit) else None


def _row_duals(
    model: LinearProgram, scip: Any, rows: dict[int, Any], x: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the dual values of an optimal linear program, (m,).

    SCIP turns rows with one coefficient into limits of their variable: such a row gets the variable's
    reduced cost where it binds and the variable's own limits do not.
    """
    duals = np.zeros(model.shape[0])
    for i, row in rows.items():
        duals[i] = scip.getDualsolLinear(row)
    duals = duals if model.sense == "min" else -duals

    matrix = model.matrix
    single = np.flatnonzero(np.diff(matrix.indptr) == 1)
    single = single[duals[single] == 0.0]
    columns, coefficients = matrix.indices[matrix.indptr[single]], matrix.data[matrix.indptr[single]]
    activity = coefficients * x[columns]
    is_binding = np.isclose(activity, model.row_lower[single]) | np.isclose(activity, model.row_upper[single])
    at_own_limit = np.isclose(x[columns], model.lower[columns]) | np.isclose(x[columns], model.upper[columns])
    is_used = is_binding & ~at_own_limit & (coefficients != 0.0)
    columns, first = np.unique(columns[is_used], return_index=True)  # one row takes a variable's whole cost
    reduced_costs = model.cost - matrix.T @ duals
    duals[single[is_used][first]] = reduced_costs[columns] / coefficients[is_used][first]
    return duals
