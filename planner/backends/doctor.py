"""Which backends this system has, and whether each solves a tiny model right."""

from __future__ import annotations

import time
from dataclasses import dataclass
from importlib import import_module, metadata

import numpy as np
import scipy.sparse as sp

from planner.backends import solve
from planner.backends.linear import LinearProgram, Rows
from planner.options import ORTOOLS_SOLVERS, Options
from planner.proof import Status


@dataclass(frozen=True, kw_only=True)
class Found:
    """One backend, by the name that `Options.backend` takes.

    version   of what solves; None where it is missing
    missing   why it is; None where it is there
    passed    whether the tiny model came out right; None where it is missing
    seconds   wall time of the tiny solve, imports aside
    problem   what went wrong where it did not pass
    """

    backend: str
    version: str | None = None
    missing: str | None = None
    passed: bool | None = None
    seconds: float | None = None
    problem: str | None = None


def find() -> list[Found]:
    """HiGHS, OR-Tools' solvers, and the solvers that Pyomo finds, each tried once."""
    return [
        *_package("highs", "highspy", ("highs",)),
        *_package("ortools", "ortools", tuple(f"ortools:{solver}" for solver in ORTOOLS_SOLVERS)),
        *_pyomo(),
    ]


def _package(module: str, distribution: str, backends: tuple[str, ...]) -> list[Found]:
    if missing := _missing(module):
        return [Found(backend=backend, missing=missing) for backend in backends]
    return [_tried(backend, metadata.version(distribution)) for backend in backends]


def _pyomo() -> list[Found]:
    if missing := _missing("pyomo"):
        return [Found(backend="pyomo", missing=missing)]
    from planner.backends import pyomo

    return [_tried(f"pyomo:{name}", pyomo.version(name)) for name in pyomo.found()]


def _missing(module: str) -> str | None:
    try:
        import_module(f"planner.backends.{module}")
    except ImportError as error:
        return str(error)
    return None


def _tried(backend: str, version: str) -> Found:
    started = time.perf_counter()
    problem = None
    try:
        solution = solve(_tiny(whole=backend == "ortools:cp-sat"), Options(backend=backend))
        if solution.status is not Status.OPTIMAL or not np.isclose(solution.objective or np.nan, _OPTIMUM):
            problem = f"{solution.status} with {solution.objective}, not optimal with {_OPTIMUM:g}"
    except Exception as error:  # whatever breaks, the others are still to be tried
        problem = f"{type(error).__name__}: {error}"
    seconds = time.perf_counter() - started
    return Found(backend=backend, version=version, passed=problem is None, seconds=seconds, problem=problem)


def _tiny(whole: bool) -> LinearProgram:
    """Most of 3 x + 2 y within x + y <= 4, x <= 3; the best point is whole, so any solver may take it."""
    return LinearProgram.build(
        sense="max",
        cost=[3.0, 2.0],
        rows=[Rows("sum", sp.csr_array([[1.0, 1.0]]), upper=4.0)],
        upper=[3.0, 4.0],
        integer=whole,
        offset=1.0,
        name="tiny",
    )


_OPTIMUM = 12.0
