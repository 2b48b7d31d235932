"""The clock of time limits: seconds on the wall, or where asked the CPU seconds of this process.

It stands still while Numba compiles kernels or loads them from its cache, so that a search has the same time
with an empty cache as with a full one. On a busy machine a limit on the wall ends searches early, and their
answers differ. CPU seconds of the process, of all its threads, are the same there.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

MOST_WALL_S: Final = 10.0
"""Seconds on the wall per CPU second of a limit, after which a solver ends all the same."""

_counts_cpu: ContextVar[bool] = ContextVar("counts_cpu", default=False)


class _Pauses:
    """Seconds in which the clock stood still, on the wall and of the CPU; pauses may nest and overlap."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.depth = 0
        self.wall_s, self.cpu_s = 0.0, 0.0
        self.wall_start, self.cpu_start = 0.0, 0.0


_pauses: Final = _Pauses()


def pause() -> None:
    """Stop the clock until `resume` is called as often."""
    with _pauses.lock:
        if not _pauses.depth:
            _pauses.wall_start, _pauses.cpu_start = time.perf_counter(), time.process_time()
        _pauses.depth += 1


def resume() -> None:
    """End one pause."""
    with _pauses.lock:
        _pauses.depth -= 1
        if not _pauses.depth:
            _pauses.wall_s += time.perf_counter() - _pauses.wall_start
            _pauses.cpu_s += time.process_time() - _pauses.cpu_start


def paused_s() -> float:
    """Return the seconds on the wall in which the clock has stood still, since the process began."""
    with _pauses.lock:
        running = time.perf_counter() - _pauses.wall_start if _pauses.depth else 0.0
        return _pauses.wall_s + running


@contextmanager
def count_cpu_seconds() -> Iterator[None]:
    """Let time limits within the block count CPU seconds of this process."""
    token = _counts_cpu.set(True)
    try:
        yield
    finally:
        _counts_cpu.reset(token)


def is_counting_cpu() -> bool:
    """Return whether time limits count CPU seconds."""
    return _counts_cpu.get()


def now() -> float:
    """Return the seconds that time limits count, from an unknown start."""
    return cpu_now() if _counts_cpu.get() else wall_now()


def wall_now() -> float:
    """Return the seconds on the wall, without pauses, from an unknown start: for times that are reported."""
    with _pauses.lock:
        reading = _pauses.wall_start if _pauses.depth else time.perf_counter()
        return reading - _pauses.wall_s


def cpu_now() -> float:
    """Return the CPU seconds of this process, without pauses.

    Steps of a search that take a share of its limit count these in any case: they are then as long as on a
    machine without other work.
    """
    with _pauses.lock:
        reading = _pauses.cpu_start if _pauses.depth else time.process_time()
        return reading - _pauses.cpu_s


def wall_limit_s(limit_s: float) -> float:
    """Return the seconds on the wall after which a search with a limit ends in any case."""
    return limit_s * MOST_WALL_S if _counts_cpu.get() else limit_s
