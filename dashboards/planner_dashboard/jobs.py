"""Questions on their way: a few worker processes for all sessions, each question to be cancelled.

Pebble's pool is used because it can stop a task that runs, by ending its process and starting
another; the standard library's cannot.
"""

from __future__ import annotations

import multiprocessing
import time
import weakref
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
        # workers are copies of one process that has loaded everything, so that one that was ended to
        # cancel what it did is replaced at once, and what they have in common is in memory once
        self.started = False
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(["planner_dashboard.ready"])
        self._pool = ProcessPool(
            max_workers=count, context=context, initializer=work.limit_memory, initargs=[memory_mb]
        )

    def ask(self, function: Callable[..., Any], *given: Any, longest_s: float = LONGEST_S) -> Job:
        """Put a question; it waits while all workers are busy. The first starts them, which takes seconds."""
        future = self._pool.schedule(function, args=list(given), timeout=longest_s)
        self.started = True
        return Job(future, longest_s=longest_s)

    def close(self) -> None:
        """Stop all workers, whatever they do."""
        self._pool.stop()  # type: ignore[no-untyped-call]
        self._pool.join()


@dataclass(eq=False)
class Job:
    """A question that was put. Where nobody holds it any more, as its session has ended, it is cancelled."""

    future: ProcessFuture[Any]
    longest_s: float = LONGEST_S
    since: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        weakref.finalize(self, self.future.cancel).atexit = False

    @property
    def running(self) -> bool:
        """Whether it is on its way, with a worker or waiting for one."""
        return not self.future.done()

    @property
    def waiting(self) -> bool:
        """Whether all workers are busy with others."""
        return not self.future.running() and not self.future.done()

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
                f"no answer within {self.longest_s:g} s; set a shorter time limit for the solver"
            ) from None
        except (ProcessExpired, MemoryError):
            raise InputError(
                "the worker ran out of memory, or was ended: the question is too large"
            ) from None
        except Exception as error:
            raise PlannerError(f"a fault of planner: {type(error).__name__}: {error}"[:300]) from error
