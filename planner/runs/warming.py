"""Compiling of a system's kernels ahead of its first run."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from planner.compile_events import observe_compiling
from planner.contract.system import System
from planner.options import Options
from planner.runs.evaluation import compile_ahead
from planner.scenarios.scenario import Entry


@dataclass(frozen=True, kw_only=True)
class Warmed:
    """A system with compiled kernels.

    designs  designs that decided the system's sample problem; 0 for a system without kernels
    kernels  kernels compiled now; the others were in Numba's cache
    """

    system: str
    designs: int
    kernels: int
    seconds: float


def warm(system: System, advance: Callable[[], object] = lambda: None) -> Warmed:
    """Compile, or load from the cache, the kernels that the designs of a system reach on its sample.

    advance  called after each design
    """
    start = time.perf_counter()
    compiled: list[str] = []
    with observe_compiling(compiled.append):
        for design in system.designs:
            compile_ahead(system, Entry(label=design.name, design=design), Options())
            advance()
    return Warmed(
        system=system.name,
        designs=0 if system.problem.sample is None else len(system.designs),
        kernels=len(compiled),
        seconds=time.perf_counter() - start,
    )
