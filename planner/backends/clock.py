"""The clock of time limits: seconds on the wall, or where asked the CPU seconds of this process.

On a busy machine a limit on the wall ends searches early, and their answers differ. CPU seconds of the
process, of all its threads, are the same there.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

MOST_WALL_S: Final = 10.0
"""Seconds on the wall per CPU second of a limit, after which a solver ends all the same."""

_counts_cpu: ContextVar[bool] = ContextVar("counts_cpu", default=False)


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
    return cpu_now() if _counts_cpu.get() else time.perf_counter()


def cpu_now() -> float:
    """Return the CPU seconds of this process.

    Steps of a search that take a share of its limit count these in any case: they are then as long as on a
    machine without other work.
    """
    return time.process_time()


def wall_limit_s(limit_s: float) -> float:
    """Return the seconds on the wall after which a search with a limit ends in any case."""
    return limit_s * MOST_WALL_S if _counts_cpu.get() else limit_s
