"""Compiled kernels: compiled, or loaded from the cache, before the time of a decision is measured."""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Final, TypeVar

from planner.contract import progress
from planner.contract.system import System
from planner.errors import PlannerError
from planner.options import Options
from planner.scenarios.scenario import Entry

log = logging.getLogger(__name__)

EVENT: Final = "numba:compile"
ResultT = TypeVar("ResultT")

_ready: set[tuple[str, str, str, str]] = set()
_observers: list[Callable[[str], None]] = []


@contextlib.contextmanager
def observe_compiling(observer: Callable[[str], None]) -> Iterator[None]:
    """Call `observer` with the name of each kernel that begins to compile."""
    _observers.append(observer)
    try:
        yield
    finally:
        _observers.remove(observer)


class Stopwatch:
    """Listens to Numba and adds up the seconds in which it compiles."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._depth, self._start = 0, 0.0

    def notify(self, event: Any) -> None:
        """Take the start or the end of a compilation; Numba calls this, also for nested ones."""
        if event.is_start:
            if not self._depth:
                self._start = time.perf_counter()
            self._depth += 1
            for observer in _observers:
                observer(event.data["dispatcher"].py_func.__qualname__)
        else:
            self._depth -= 1
            if not self._depth:
                self.seconds += time.perf_counter() - self._start


@contextlib.contextmanager
def time_compiling(system: System) -> Iterator[Stopwatch]:
    """Measure the time of compiling in a block, for systems with kernels."""
    stopwatch = Stopwatch()
    if system.problem.sample is None:
        yield stopwatch
        return
    from numba.core import event

    event.Listener.register(Stopwatch)  # Numba wants its own class, which is not imported before now
    with event.install_listener(EVENT, stopwatch):
        yield stopwatch


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


def prepare(system: System, entry: Entry, options: Options, run: Callable[[Any, Entry], Any]) -> float:
    """Decide the system's sample problem, once per process and design, so that its kernels are ready.

    run      (problem, entry) -> runs the design on a problem
    returns  seconds that this took; 0 where all is ready
    """
    key = (system.name, entry.design.name, repr(sorted(entry.parameters.items())), options.backend)
    if system.problem.sample is None or key in _ready:
        return 0.0
    _ready.add(key)
    start = time.perf_counter()
    sample = system.problem.sample()
    with progress.ignore():
        try:
            run(sample, entry)
        except PlannerError:  # its parameters may name parts that the sample does not have
            log.debug("%s: the sample is run without parameters", entry.label)
            with contextlib.suppress(PlannerError):  # the design's own error comes from its own problem
                run(sample, Entry(label=entry.label, design=entry.design))
    return time.perf_counter() - start
