"""Questions on their way: a few worker processes for all sessions, each question to be cancelled.

Pebble's pool is used because it can stop a task that runs, by ending its process and starting
another; the standard library's cannot.
"""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable
from concurrent import futures
from dataclasses import dataclass, field
from typing import Any, Final

from pebble import ProcessExpired, ProcessFuture, ProcessPool

from planner.errors import InputError, PlannerError
from planner_dashboard import work

LONGEST_S: Final = 600.0
"""A question that takes longer is given up."""


class Workers:
    """The processes that answer, the same for all sessions of a server."""

    def __init__(self, count: int, memory_mb: int) -> None:
        self._pool = ProcessPool(
            max_workers=count,
            context=multiprocessing.get_context("spawn"),
            initializer=work.warm,
            initargs=[memory_mb],
        )

    def ask(self, function: Callable[..., Any], *given: Any) -> Job:
        """Put a question; it waits while all workers are busy."""
        return Job(self._pool.schedule(function, args=list(given), timeout=LONGEST_S))

    def close(self) -> None:
        """Stop all workers, whatever they do."""
        self._pool.stop()  # type: ignore[no-untyped-call]
        self._pool.join()


@dataclass
class Job:
    """A question that was put."""

    future: ProcessFuture[Any]
    since: float = field(default_factory=time.monotonic)

    @property
    def running(self) -> bool:
        return not self.future.done()

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.since

    def cancel(self) -> None:
        """Stop it, also where it runs."""
        self.future.cancel()  # type: ignore[no-untyped-call]

    def answer(self) -> Any:
        """What came of it, once it runs no more.

        raises  PlannerError as the worker raised it, or with why there is no answer
        """
        try:
            return self.future.result(timeout=0)
        except PlannerError:
            raise
        except futures.CancelledError:
            raise InputError("cancelled") from None
        except futures.TimeoutError:
            raise InputError(
                f"no answer within {LONGEST_S:g} s; set a shorter time limit for the solver"
            ) from None
        except (ProcessExpired, MemoryError):
            raise InputError(
                "the worker ran out of memory, or was ended: the question is too large"
            ) from None
