"""Jobs of worker processes: a few processes answer the questions of all sessions.

Pebble's pool is used because it can stop a task that runs: it ends the task's process and starts
another. The standard library's pool cannot.
"""

from __future__ import annotations

import multiprocessing
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from concurrent import futures
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from typing import Any, Final

from pebble import ProcessExpired, ProcessFuture, ProcessPool

from planner.errors import InputError, PlannerError
from planner_dashboard import worker

TIME_LIMIT_S: Final = 600.0
"""After this time a job is stopped."""


class Workers:
    """The worker processes, the same for all sessions of a server."""

    def __init__(self, count: int, memory_mb: int) -> None:
        self.are_started = self.is_closed = False
        self.count, self._memory_mb = count, memory_mb
        self._lock = threading.Lock()
        self._pool = self._new_pool()
        self._jobs: weakref.WeakSet[Job] = weakref.WeakSet()
        self._spare: weakref.WeakSet[Job] = weakref.WeakSet()

    def _new_pool(self) -> ProcessPool:
        # workers are forks of one process that has loaded everything: a stopped one is replaced at
        # once, and they share memory
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(["planner_dashboard.preload"])
        return ProcessPool(
            max_workers=self.count,
            max_tasks=worker.TasksUntilLarge(1),
            context=context,
            initializer=worker.begin,
            initargs=[self._memory_mb],
        )

    def submit(
        self, function: Callable[..., Any], *arguments: Any, time_limit_s: float = TIME_LIMIT_S
    ) -> Job:
        """Submit a call; it waits while all workers are busy. The first one starts them, in seconds."""
        job = self._schedule(function, arguments, time_limit_s)
        with self._lock:
            self._jobs.add(job)
            if len(self._pending()) >= self.count:
                for spare in list(self._spare):
                    spare.cancel()
        return job

    def submit_spare(
        self, function: Callable[..., Any], *arguments: Any, time_limit_s: float = TIME_LIMIT_S
    ) -> Job | None:
        """Submit a call that is cancelled when a visitor's needs its worker; None while any is pending."""
        with self._lock:
            if self.is_closed or self._pending():
                return None
        job = self._schedule(function, arguments, time_limit_s)
        with self._lock:
            self._spare.add(job)
        return job

    def _pending(self) -> list[Job]:
        return [job for job in self._jobs if job.is_pending]

    def _schedule(self, function: Callable[..., Any], arguments: Sequence[Any], time_limit_s: float) -> Job:
        with self._lock:  # of the sessions' threads
            if not self._pool.active:  # pebble gives up when a worker ends while none has a task
                self._stop()
                self._pool = self._new_pool()
            pool = self._pool
            future = pool.schedule(function, args=list(arguments), timeout=time_limit_s)
        self.are_started = True
        return Job(future, pool, time_limit_s=time_limit_s)

    def close(self) -> None:
        """Stop all workers, also busy ones."""
        self.is_closed = True
        self._stop()

    def _stop(self) -> None:
        self._pool.stop()  # type: ignore[no-untyped-call]
        self._pool.join()


@dataclass(eq=False)
class Job:
    """A submitted call. It is cancelled when nothing refers to it any more, as when its session ends."""

    future: ProcessFuture[Any]
    pool: ProcessPool
    time_limit_s: float = TIME_LIMIT_S
    start: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        weakref.finalize(self, self.future.cancel).atexit = False

    @property
    def is_pending(self) -> bool:
        """True until the job has a result, or its worker ended: it runs, or waits for a worker."""
        return not self.future.done() and self.pool.active

    @property
    def is_waiting(self) -> bool:
        """True while all workers are busy with other jobs."""
        return self.is_pending and not self.future.running()

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.start

    def cancel(self) -> None:
        """Stop the job, also while it runs."""
        self.future.cancel()  # type: ignore[no-untyped-call]

    def result(self) -> Any:
        """Return the result of a job that is no longer pending.

        raises  PlannerError as the worker raised it, or with the reason for having no result
        """
        try:
            if not self.future.done():
                raise BrokenProcessPool
            return self.future.result()
        except PlannerError:
            raise
        except futures.CancelledError:
            raise InputError("cancelled") from None
        except futures.TimeoutError:
            raise InputError(
                f"no answer within {self.time_limit_s:g} s; set a shorter time limit for the solver: designs "
                "then show their incumbent and its bound"
            ) from None
        except (ProcessExpired, MemoryError):
            raise InputError(worker.OUT_OF_MEMORY) from None
        except BrokenProcessPool:
            raise InputError("the worker was ended before it had the question: ask again") from None
        except Exception as error:
            raise PlannerError(f"a fault of planner: {type(error).__name__}: {error}"[:300]) from error
