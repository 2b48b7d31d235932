"""Running a solver in a thread of its own."""

from __future__ import annotations

from collections.abc import Callable
from threading import Event, Thread
from typing import TypeVar

Result = TypeVar("Result")

LINGER_S = 2.0
"""Most seconds to wait for a cancelled solver."""


def apart(work: Callable[[], Result], *, cancel: Callable[[], object] | None = None) -> Result:
    """Result of `work()`, run in a fresh thread; Ctrl-C calls `cancel` and is raised.

    Solvers run outside Python, where Ctrl-C would wait for their end. HiGHS gains more: it keeps
    one pool of workers per calling thread, of the size that the first solve there asked for, and
    refuses any other size afterwards. A fresh thread has no such past, so solves with different
    `threads` may follow and overlap each other.
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
        done.wait()  # not `join`: interrupted once, Python 3.11's takes the thread for ended
    except BaseException:
        if cancel is not None:
            cancel()
            done.wait(LINGER_S)  # a solver that still runs while Python ends may crash
        raise
    if failures:
        raise failures[0]
    return results[0]
