"""Diagnosis of the backends: which are installed, and whether each solves a tiny model correctly."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Final

import numpy as np
import scipy.sparse as sp

from planner.backends.backend import Backend
from planner.backends.dispatch import solve
from planner.backends.linear_program import LinearProgram, Rows
from planner.backends.registry import backend_names, find_backend
from planner.contract.proof import Status
from planner.options import Options


@dataclass(frozen=True, kw_only=True)
class Diagnosis:
    """State of one backend, by the name that `Options.backend` takes.

    version   of the solver; None where it is missing
    missing   why it cannot be used; None where it can
    passed    whether the tiny model was solved correctly; None where the solver is missing
    seconds   wall time of the tiny solve, imports aside
    problem   what went wrong where it did not pass
    """

    backend: str
    version: str | None = None
    missing: str | None = None
    passed: bool | None = None
    seconds: float | None = None
    problem: str | None = None


def diagnose() -> list[Diagnosis]:
    """Solve a tiny model with every solver of every declared backend, once each."""
    return [diagnosis for name in backend_names() for diagnosis in _diagnose_backend(name)]


def _diagnose_backend(backend_name: str) -> list[Diagnosis]:
    declared = [backend_name]
    try:
        backend = find_backend(backend_name)
        declared = backend.names() or declared
        implementation, names = backend.load(), backend.installed_names()
    except Exception as error:  # whatever breaks, the others are still to be tried
        return [Diagnosis(backend=name, missing=str(error)) for name in declared]
    if not names:
        return [Diagnosis(backend=backend.name, missing=f"{backend.name} finds none of the solvers it knows")]
    return [_diagnose_solver(backend, name, implementation.version(name.partition(":")[2])) for name in names]


def _diagnose_solver(backend: Backend, name: str, version: str) -> Diagnosis:
    started = time.perf_counter()
    problem = None
    try:
        is_integer = not backend.capabilities_of(name.partition(":")[2]).linear
        solution = solve(_tiny_model(is_integer), Options(backend=name))
        if solution.status is not Status.OPTIMAL or not np.isclose(
            solution.objective or np.nan, TINY_OPTIMUM
        ):
            problem = f"{solution.status} with {solution.objective}, not optimal with {TINY_OPTIMUM:g}"
    except Exception as error:  # as above
        problem = f"{type(error).__name__}: {error}"
    seconds = time.perf_counter() - started
    return Diagnosis(backend=name, version=version, passed=problem is None, seconds=seconds, problem=problem)


def _tiny_model(is_integer: bool) -> LinearProgram:
    """Return max 3 x + 2 y + 1 with x + y <= 4 and x <= 3; its optimum is integer in either case."""
    return LinearProgram.build(
        sense="max",
        cost=[3.0, 2.0],
        rows=[Rows("sum", sp.csr_array([[1.0, 1.0]]), upper=4.0)],
        upper=[3.0, 4.0],
        integer=is_integer,
        offset=1.0,
        name="tiny",
    )


TINY_OPTIMUM: Final = 12.0
