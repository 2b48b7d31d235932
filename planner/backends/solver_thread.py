"""Runs a solver in a thread of its own, so that Ctrl-C can stop it."""

from __future__ import annotations

from collections.abc import Callable
from threading import Event, Thread
from typing import Final, TypeVar

Result = TypeVar("Result")

CANCELLATION_LIMIT_S: Final = 2.0
"""Most seconds to wait for the end of a cancelled solver."""


def run_in_thread(work: Callable[[], Result], *, cancel: Callable[[], object] | None = None) -> Result:
    """Run `work()` in a fresh thread and return its result; Ctrl-C calls `cancel` and is raised.

    Solvers run outside Python, where Ctrl-C would wait for their end. Besides, HiGHS keeps one pool of
    workers per calling thread, of the size that the first solve there requested, and refuses any other
    size afterwards: in fresh threads, solves with different `threads` may follow and overlap each other.
    """
    results: list[Result] = []
    failures: list[BaseException] = []
    done = Event()

    def body() -> None:
        try:
            results.append(work())
        except BaseException as failure:  # raised again below, in the caller's thread
            failures.append(failure)
        finally:
            done.set()

    Thread(target=body, name="solver", daemon=True).start()
    try:
        done.wait()  # not `join`: after one interrupt, Python 3.11 considers the thread ended
    except BaseException:
        if cancel is not None:
            cancel()
            done.wait(CANCELLATION_LIMIT_S)  # a solver that still runs while Python exits may crash
        raise
    if failures:
        raise failures[0]
    return results[0]
