"""Runs a solver in a thread of its own, so that Ctrl-C can stop it."""

from __future__ import annotations

from collections.abc import Callable
from threading import TIMEOUT_MAX, Event, Thread
from typing import Final, TypeVar

Result = TypeVar("Result")

CANCELLATION_LIMIT_S: Final = 2.0
"""Most seconds to wait for the end of a cancelled solver."""


OVERRUN_S: Final = 0.5
"""Seconds after a time limit in which a solver ends itself, before it is cancelled."""


def run_in_thread(
    work: Callable[[], Result],
    *,
    cancel: Callable[[], object] | None = None,
    time_limit_s: float | None = None,
    overrun_s: float = OVERRUN_S,
) -> Result:
    """Run `work()` in a fresh thread and return its result; Ctrl-C calls `cancel` and is raised.

    time_limit_s  of the solver, which is cancelled soon after it. Solvers read the system's clock, and would
                  search for an hour longer where that is set back by an hour; this is a monotonic clock
    overrun_s     after the limit, in which the solver ends itself; 0 where it does not know of its limit

    Solvers run outside Python, where Ctrl-C would wait for their end. Besides, HiGHS keeps one pool of
    workers per calling thread, of the size that the first solve there requested, and refuses any other
    size afterwards: in fresh threads, solves with different `threads` may follow and overlap each other.
    """
    results: list[Result] = []
    failures: list[BaseException] = []
    finished = Event()

    def body() -> None:
        try:
            results.append(work())
        except BaseException as failure:  # raised again below, in the caller's thread
            failures.append(failure)
        finally:
            finished.set()

    Thread(target=body, name="solver", daemon=True).start()
    try:
        # not `join`: after one interrupt, Python 3.11 considers the thread ended
        if not finished.wait(_wait_s(time_limit_s, overrun_s)) and cancel is not None:
            cancel()
        finished.wait()
    except BaseException:
        if cancel is not None:
            cancel()
            finished.wait(CANCELLATION_LIMIT_S)  # a solver that still runs while Python exits may crash
        raise
    if failures:
        raise failures[0]
    return results[0]


def _wait_s(time_limit_s: float | None, overrun_s: float) -> float | None:
    if time_limit_s is None or time_limit_s > TIMEOUT_MAX - overrun_s:
        return None
    return max(0.0, time_limit_s) + overrun_s
