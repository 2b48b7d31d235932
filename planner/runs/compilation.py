"""Compiled kernels: a cache that cannot be read is made again, and all are compiled ahead where asked."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

from planner import clock, compiled
from planner.contract import progress
from planner.contract.system import System
from planner.errors import PlannerError
from planner.options import Options
from planner.scenarios.scenario import Entry

log = logging.getLogger(__name__)

ResultT = TypeVar("ResultT")

_ready: set[tuple[str, str, str, str]] = set()


def call_with_fresh_kernels(call: Callable[[], ResultT]) -> ResultT:
    """Return `call()`; a cache of a kernel that cannot be read is removed first, so that it is compiled anew.

    A cache names classes of the planner that wrote it: after an upgrade in place some may be gone.
    """
    removed: set[Path] = set()
    while True:
        try:
            return call()
        except Exception as error:
            index = _find_unreadable_cache(error.__traceback__)
            if index is None or index in removed:
                raise
            try:
                index.unlink(missing_ok=True)
            except OSError:
                raise error from None
            log.info("%s: cannot be read and is compiled anew", index)
            removed.add(index)


def _find_unreadable_cache(trace: TracebackType | None) -> Path | None:
    """Return the index of the kernel's cache that Numba was reading where an error was raised."""
    while trace is not None:
        path = getattr(trace.tb_frame.f_locals.get("self"), "_index_path", None)
        if path is not None and trace.tb_frame.f_code.co_name in ("_load_index", "_load_data"):
            return Path(path)
        trace = trace.tb_next
    return None


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
    with progress.ignore(), compiled.compile_all():
        try:
            run(sample, entry)
        except PlannerError:  # its parameters may name parts that the sample does not have
            log.debug("%s: the sample is run without parameters", entry.label)
            with contextlib.suppress(PlannerError):  # the design's own error comes from its own problem
                run(sample, Entry(label=entry.label, design=entry.design))
    return clock.paused_s() - start
