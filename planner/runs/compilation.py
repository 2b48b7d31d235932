"""Compiles the kernels of a design ahead, where asked."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable
from typing import Any

from planner import clock, kernels
from planner.contract import progress
from planner.contract.system import System
from planner.errors import PlannerError
from planner.options import Options
from planner.scenarios.scenario import Entry

log = logging.getLogger(__name__)

_ready: set[tuple[str, str, str, str]] = set()


def compile_ahead(system: System, entry: Entry, options: Options, run: Callable[[Any, Entry], Any]) -> float:
    """Decide the system's sample problem, once per process and design, so that its kernels are ready.

    No run needs this: kernels are compiled when they are reached.

    run      (problem, entry) -> runs the design on a problem
    returns  seconds of compiling; 0 where all is ready
    """
    key = (system.name, entry.design.name, repr(sorted(entry.parameters.items())), options.backend)
    if system.problem.sample is None or key in _ready:
        return 0.0
    _ready.add(key)
    start = clock.paused_s()
    sample = system.problem.sample()
    with progress.ignore(), kernels.compile_all():
        try:
            run(sample, entry)
        except PlannerError:  # its parameters may name parts that the sample does not have
            log.debug("%s: the sample is run without parameters", entry.label)
            with contextlib.suppress(PlannerError):  # the design's own error comes from its own problem
                run(sample, Entry(label=entry.label, design=entry.design))
    return clock.paused_s() - start
