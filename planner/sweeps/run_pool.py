"""Pool that a sweep's runs go to: batches of runs on workers, here or on a cluster.

Few batches are submitted at a time, so that a cluster's work does not grow with the sweep, and runs of one
problem go to one worker. Short runs are batched. The runs of a worker that died are submitted to another; a
run during which several workers die is recorded as failed.
"""

from __future__ import annotations

import contextlib
import queue
import statistics
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Final

from planner.errors import PlannerError, SolverFailure
from planner.store.record import Record
from planner.sweeps.run_request import Request
from planner.sweeps.worker import failure_record, run_requests
from planner.sweeps.workers import MAX_WORKER_DEATHS, ClusterLost, WorkerDied, Workers

BATCHES_PER_WORKER: Final = 2  # so that a worker never waits for the next batch
BATCH_S: Final = 0.25  # duration of a batch of short runs
MAX_BATCH_RUNS: Final = 32  # so that few runs are lost with a worker
POLL_S: Final = 0.25
WORKER_CHECK_S: Final = 0.5  # time between two looks at the list of workers
NO_WORKER_LIMIT_S: Final = 60.0  # longest time without any worker


@dataclass(frozen=True, kw_only=True, eq=False)
class _Batch:
    """Requests submitted together, and their worker."""

    future: Future[Any]
    requests: tuple[Request, ...]
    worker: str


@dataclass(eq=False)
class RunPool:
    """Distributes requests over workers and collects their records.

    Each batch is bound to one worker. Requests of a worker that died are quarantined: they are submitted
    again one at a time, to a worker that has nothing else, so that the next death identifies its cause.
    """

    source: Workers
    waiting_groups: deque[deque[Request]] = field(default_factory=deque)
    quarantined: deque[Request] = field(default_factory=deque)
    worker_deaths: Counter[int] = field(default_factory=Counter)  # by identity of the request
    running: dict[int, _Batch] = field(default_factory=dict)
    finished: queue.SimpleQueue[int] = field(default_factory=queue.SimpleQueue)
    group_of_worker: dict[str, deque[Request]] = field(default_factory=dict)
    run_times_s: deque[float] = field(default_factory=lambda: deque(maxlen=MAX_BATCH_RUNS))
    failures: list[Record] = field(default_factory=list)
    batch_number: int = 0
    workers: tuple[str, ...] = ()
    workers_checked: float = 0.0
    last_worker_seen: float = field(default_factory=time.monotonic)

    def run(
        self,
        groups: Iterable[Sequence[Request]],
        store_records: Callable[[list[Record]], None],
        *,
        is_needed: Callable[[Request], bool] = lambda request: True,  # noqa: ARG005
        is_stopping: Callable[[], bool] = lambda: False,
    ) -> None:
        """Run every request, and pass its record to `store_records` once it is there, in this thread.

        groups       requests, those of one problem together
        is_needed    called when a request's turn comes: another sweep may have stored its run meanwhile
        is_stopping  once it returns true, nothing more is submitted, and running batches are awaited
        raises       ClusterLost, and any exception of `store_records`
        """
        self.waiting_groups = deque(deque(group) for group in groups)
        try:
            while True:
                self._update_workers()
                self._requeue_lost_batches()
                if not is_stopping():
                    self._submit_batches(is_needed)
                if not self.running and not self.failures and (is_stopping() or not self._has_more()):
                    return
                records = self._collect_records()
                if records:
                    store_records(records)
        finally:
            for batch in self.running.values():
                batch.future.cancel()

    def _has_more(self) -> bool:
        return bool(self.quarantined) or any(self.waiting_groups) or any(self.group_of_worker.values())

    # --- submission -----------------------------------------------------------------------

    def _submit_batches(self, is_needed: Callable[[Request], bool]) -> None:
        busy = dict.fromkeys(self.workers, 0)
        for batch in self.running.values():
            is_quarantined = any(self.worker_deaths[id(request)] for request in batch.requests)
            busy[batch.worker] = busy.get(batch.worker, 0) + (BATCHES_PER_WORKER if is_quarantined else 1)
        for worker in self.workers:
            if busy[worker] == 0 and self.quarantined:
                self._submit_batch((self.quarantined.popleft(),), worker)
                busy[worker] = BATCHES_PER_WORKER
        for depth in range(BATCHES_PER_WORKER):
            for worker in self.workers:
                if busy[worker] == depth:
                    requests = self._next_batch(worker, is_needed)
                    if requests:
                        self._submit_batch(requests, worker)
                        busy[worker] += 1

    def _next_batch(self, worker: str, is_needed: Callable[[Request], bool]) -> tuple[Request, ...]:
        """Return the next requests for a worker: of its problem, of a new one, or of another worker's."""
        size = 1
        if self.run_times_s:  # the median: the first run in a worker waits for the solvers to be loaded
            run_s = max(statistics.median(self.run_times_s), 1e-9)
            size = int(min(MAX_BATCH_RUNS, max(1.0, BATCH_S / run_s)))
        requests: list[Request] = []
        while len(requests) < size:
            group = self.group_of_worker.get(worker)
            if not group and self.waiting_groups:
                group = self.group_of_worker[worker] = self.waiting_groups.popleft()
            if not group and not requests:
                group = max(self.group_of_worker.values(), key=len, default=None)
            if not group:
                break
            request = group.popleft()
            if is_needed(request):
                requests.append(request)
        return tuple(requests)

    def _submit_batch(self, requests: tuple[Request, ...], worker: str) -> None:
        self.batch_number += 1
        number = self.batch_number
        future = self.source.submit(run_requests, requests, worker=worker)
        self.running[number] = _Batch(future=future, requests=requests, worker=worker)
        future.add_done_callback(lambda _: self.finished.put(number))

    # --- results --------------------------------------------------------------------------

    def _collect_records(self) -> list[Record]:
        """Return the records of the batches that have ended; wait up to POLL_S for the first."""
        records, self.failures = self.failures, []
        numbers = []
        with contextlib.suppress(queue.Empty):
            numbers.append(self.finished.get(timeout=0.0 if records else POLL_S))
            while True:
                numbers.append(self.finished.get_nowait())
        for number in numbers:
            batch = self.running.pop(number, None)
            if batch is None or batch.future.cancelled():
                continue
            if batch.future.exception() is None:
                ended: list[Record] = batch.future.result()
                self.run_times_s.extend(record.wall_s for record in ended if record.wall_s is not None)
                records += ended
            else:
                records += self._handle_failed_batch(batch)
        return records

    def _handle_failed_batch(self, batch: _Batch) -> list[Record]:
        error = batch.future.exception()
        if isinstance(error, WorkerDied):
            self.workers_checked = 0.0
            return self._on_worker_lost(batch, error.deaths)
        if isinstance(error, PlannerError):
            raise error
        message = f"internal error: {type(error).__name__}: {' '.join(str(error).split())}"
        return [
            failure_record(request, message, exit_code=SolverFailure.exit_code) for request in batch.requests
        ]

    def _on_worker_lost(self, batch: _Batch, deaths: int = 1) -> list[Record]:
        """Quarantine the requests of a dead worker; return records of those that failed for good.

        deaths  of workers during the batch; 0 where it only waited
        """
        if deaths == 0:
            self.waiting_groups.appendleft(deque(batch.requests))
            return []
        records = []
        for request in batch.requests:
            self.worker_deaths[id(request)] += deaths if len(batch.requests) == 1 else 1
            if self.worker_deaths[id(request)] <= MAX_WORKER_DEATHS:
                self.quarantined.append(request)
                continue
            message = (
                f"{MAX_WORKER_DEATHS + 1} workers died during this run, one after the other; "
                "it may need more memory than a worker has"
            )
            records.append(failure_record(request, message, exit_code=SolverFailure.exit_code))
        return records

    # --- workers --------------------------------------------------------------------------

    def _update_workers(self) -> None:
        """Update the list of workers every WORKER_CHECK_S; raise ClusterLost if it stays empty."""
        now = time.monotonic()
        if now - self.workers_checked >= WORKER_CHECK_S:
            self.workers_checked = now
            self.workers = self.source.names()
        if self.workers:
            self.last_worker_seen = now
        elif now - self.last_worker_seen > NO_WORKER_LIMIT_S:
            raise ClusterLost(
                f"the cluster has had no worker for {NO_WORKER_LIMIT_S:.0f} s: start one with: "
                "dask worker ADDRESS --nthreads 1"
            )

    def _requeue_lost_batches(self) -> None:
        """Queue the requests of workers that are gone again."""
        for worker in set(self.group_of_worker) - set(self.workers):
            requests = self.group_of_worker.pop(worker)
            if requests:
                self.waiting_groups.appendleft(requests)
        for number, batch in list(self.running.items()):
            if batch.worker not in self.workers and not batch.future.done():
                del self.running[number]
                batch.future.cancel()
                self.failures += self._on_worker_lost(batch)
