"""Running a solver in a thread of its own."""

from __future__ import annotations

from collections.abc import Callable
from threading import Thread
from typing import TypeVar

Result = TypeVar("Result")


def apart(work: Callable[[], Result], *, cancel: Callable[[], object] | None = None) -> Result:
    """Result of `work()`, run in a fresh thread; Ctrl-C calls `cancel` and is raised at once.

    Solvers run outside Python, where Ctrl-C would wait for their end. HiGHS gains more: it keeps
    one pool of workers per calling thread, of the size that the first solve there asked for, and
    refuses any other size afterwards. A fresh thread has no such past, so solves with different
    `threads` may follow and overlap each other.
    """
    results: list[Result] = []
    failures: list[BaseException] = []

    def body() -> None:
        try:
            results.append(work())
        except BaseException as failure:  # raised again below, in the caller's thread
            failures.append(failure)

    worker = Thread(target=body, name="solver", daemon=True)
    worker.start()
    try:
        worker.join()
    except BaseException:
        if cancel is not None:
            cancel()
        raise
    if failures:
        raise failures[0]
    return results[0]
