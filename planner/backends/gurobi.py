"""Gurobi, given the arrays through gurobipy; a licence of its own is needed for large programs."""

from __future__ import annotations

import functools
from typing import Any, Final

import gurobipy
import numpy as np
import scipy.sparse as sp

from planner.backends import statuses
from planner.backends.linear_program import LinearProgram
from planner.backends.solution import Solution
from planner.backends.solver_thread import run_in_thread
from planner.backends.verification import judge
from planner.contract.proof import Status
from planner.errors import SolverFailure
from planner.options import Options

VERSION: Final = ".".join(map(str, gurobipy.gurobi.version()))
NAME: Final = f"gurobi {VERSION}"
METHODS: Final = {"auto": -1, "simplex": 1, "interior-point": 2}
"""Parameter Method by algorithm: dual simplex, or the barrier method with crossover."""


def version(solver: str) -> str:  # noqa: ARG001 - it is one solver
    """Return the version of Gurobi."""
    return VERSION


def solve(model: LinearProgram, options: Options) -> Solution:
    """Solve with Gurobi.

    raises  InfeasibleOrUnbounded where Gurobi does not tell which; SolverFailure where it fails, as without
            a licence
    """
    try:
        loaded, variables, rows = load(model, options)
        run_in_thread(loaded.optimize, cancel=loaded.terminate, time_limit_s=options.time_limit_s)
        claimed = statuses.read_status(statuses.GUROBI, loaded.Status, NAME)
        x = row_duals = None
        if loaded.SolCount:
            x = np.asarray(variables.X)
            if claimed is Status.OPTIMAL and not model.is_integer:
                row_duals = np.asarray(rows.Pi) if model.shape[0] else np.zeros(0)
        return judge(
            model,
            claimed=claimed,
            has_basis=True,
            x=x,
            row_duals=row_duals,
            bound=loaded.ObjBound if model.is_integer and claimed is not Status.INFEASIBLE else None,
            gap=options.gap,
            backend=NAME,
        )
    except gurobipy.GurobiError as error:
        raise SolverFailure(f"{NAME} failed: {' '.join(str(error).split())}") from error


@functools.cache
def _environment() -> Any:
    """Return a silent environment, which asks for the licence once."""
    return gurobipy.Env(params={"OutputFlag": 0})


def load(model: LinearProgram, options: Options = Options()) -> tuple[Any, Any, Any]:
    """Return a silent Gurobi model that is ready to run, its variables, and its rows.

    A row with two different limits gets a variable for its amount, as Gurobi itself does.
    """
    loaded = gurobipy.Model(model.name, env=_environment())
    for name, value in _parameters(options).items():
        loaded.setParam(name, value)
    integer = np.zeros(model.shape[1], dtype=bool) if model.integer is None else model.integer
    variables = loaded.addMVar(
        model.shape[1], lb=model.lower, ub=model.upper, obj=model.cost, vtype=np.where(integer, "I", "C")
    )
    loaded.ObjCon = model.offset
    loaded.ModelSense = 1 if model.sense == "min" else -1
    low, high = model.row_lower, model.row_upper
    ranged = np.flatnonzero((low != high) & (np.isfinite(low) | np.isinf(high)) & ~np.isinf(high))
    ranged = ranged[np.isfinite(low[ranged])]
    free = np.isinf(low) & np.isinf(high)
    matrix, columns = model.matrix, variables
    if len(ranged) or free.any():
        two_sided = np.union1d(ranged, np.flatnonzero(free))
        amounts = loaded.addMVar(len(two_sided), lb=low[two_sided], ub=high[two_sided])
        of_row = sp.csr_array(
            (-np.ones(len(two_sided)), (two_sided, np.arange(len(two_sided)))),
            shape=(model.shape[0], len(two_sided)),
        )
        matrix = sp.csr_array(sp.hstack([matrix, of_row], format="csr"))
        columns = gurobipy.concatenate([variables, amounts])
        low, high = low.copy(), high.copy()
        low[two_sided] = high[two_sided] = 0.0
    sense = np.where(low == high, "=", np.where(np.isfinite(low), ">", "<"))
    rows = loaded.addMConstr(matrix, columns, sense, np.where(np.isfinite(low), low, high))
    loaded.update()
    return loaded, variables, rows


def _parameters(options: Options) -> dict[str, Any]:
    """Return the options by Gurobi's own names."""
    given = {
        "TimeLimit": options.time_limit_s,
        "MIPGap": options.gap,
        "Threads": options.threads,
        "Seed": options.seed,
    }
    return {
        "Method": METHODS[options.algorithm],
        **{name: value for name, value in given.items() if value is not None},
    }
