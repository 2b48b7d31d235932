"""FICO Xpress, given the arrays through its Python interface; a licence is needed for large programs."""

from __future__ import annotations

import warnings
from importlib import metadata
from typing import Any, Final

import numpy as np

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # the name of the licence, at each import
    import xpress

from planner.backends import statuses
from planner.backends.linear_program import LinearProgram
from planner.backends.solution import Solution
from planner.backends.solver_thread import run_in_thread
from planner.backends.verification import judge
from planner.contract.proof import Status
from planner.errors import SolverFailure
from planner.options import Options

VERSION: Final = metadata.version("xpress")
NAME: Final = f"xpress {VERSION}"
FLAGS: Final = {"auto": "", "simplex": "d", "interior-point": "b"}
"""Flags of `optimize` by algorithm: dual simplex, or the barrier method with crossover."""


def version(solver: str) -> str:  # noqa: ARG001 - it is one solver
    """Return the version of Xpress."""
    return VERSION


def solve(model: LinearProgram, options: Options) -> Solution:
    """Solve with Xpress.

    raises  InfeasibleOrUnbounded where Xpress does not tell which; SolverFailure where it fails, as on a
            program beyond its licence
    """
    try:
        loaded = load(model, options)
        flags = FLAGS[options.algorithm]
        run_in_thread(
            lambda: loaded.optimize(flags), cancel=loaded.interrupt, time_limit_s=options.time_limit_s
        )
        if int(loaded.attributes.solvestatus) == int(xpress.SolveStatus.FAILED):
            raise SolverFailure(f"{NAME} failed: status {loaded.attributes.solvestatus}")
        claimed = statuses.read_status(statuses.XPRESS, int(loaded.attributes.solstatus), NAME)
        x = row_duals = None
        has_point = int(loaded.attributes.solstatus) in (1, 2)
        if has_point:
            x = np.asarray(loaded.getSolution(), dtype=float)
            if claimed is Status.OPTIMAL and not model.is_integer:
                row_duals = np.asarray(loaded.getDuals() if model.shape[0] else [], dtype=float)
        return judge(
            model,
            claimed=claimed,
            has_basis=True,
            x=x,
            row_duals=row_duals,
            bound=loaded.attributes.bestbound if model.is_integer and has_point else None,
            gap=options.gap,
            backend=NAME,
        )
    except (xpress.SolverError, xpress.ModelError, xpress.InterfaceError) as error:
        raise SolverFailure(f"{NAME} failed: {' '.join(str(error).split())}") from error


def load(model: LinearProgram, options: Options = Options()) -> Any:
    """Return a silent Xpress problem that is ready to run."""
    loaded = xpress.problem()
    loaded.controls.outputlog = 0
    for name, value in (
        ("timelimit", options.time_limit_s),
        ("miprelstop", options.gap),
        ("threads", options.threads),
        ("randomseed", options.seed),
    ):
        if value is not None:
            setattr(loaded.controls, name, value)
    low, high = model.row_lower, model.row_upper
    free = np.isinf(low) & np.isinf(high)
    kinds = np.where(low == high, "E", np.where(np.isinf(high), "G", np.where(np.isinf(low), "L", "R")))
    kinds[free] = "N"
    finite_low, finite_high = np.where(np.isfinite(low), low, 0.0), np.where(np.isfinite(high), high, 0.0)
    rhs = np.where(kinds == "G", finite_low, finite_high)
    ranges = np.where(kinds == "R", finite_high - finite_low, 0.0)
    matrix = model.matrix.tocsc()
    largest = xpress.infinity
    columns: dict[str, Any] = {
        "probname": "",
        "rowtype": kinds.tolist(),
        "rhs": rhs,
        "rng": ranges,
        "objcoef": model.cost,
        "start": matrix.indptr.astype(np.int64),
        "collen": None,
        "rowind": matrix.indices.astype(np.int32),
        "rowcoef": matrix.data,
        "lb": np.clip(model.lower, -largest, largest),
        "ub": np.clip(model.upper, -largest, largest),
    }
    if model.integer is None:
        loaded.loadLP(**columns)
    else:
        whole = np.flatnonzero(model.integer)
        loaded.loadMIP(**columns, coltype=["I"] * len(whole), entind=whole.astype(np.int32))
    loaded.chgObj([-1], [-model.offset])
    loaded.chgObjSense(xpress.minimize if model.sense == "min" else xpress.maximize)
    return loaded
