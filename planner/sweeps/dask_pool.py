"""Pool of Dask workers that a sweep's runs go to, on this machine or on any cluster by its address.

On this machine: a scheduler in this process, and workers of one thread each in processes of their own,
which share no terminal with it (Ctrl-C is for the sweep) and never import the user's own script.
Elsewhere:

    dask scheduler
    dask worker tcp://HOST:8786 --nthreads 1 --nworkers 8      # on every machine
    planner sweep ... --cluster tcp://HOST:8786

Few batches are submitted at a time, so that the scheduler's work does not grow with the sweep, and runs
of one problem go to one worker. Short runs are batched. The runs of a worker that died are submitted to
another; a run during which several workers die is recorded as failed.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import queue
import statistics
import sys
import tempfile
import time
import warnings
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import dask
from distributed import Client, Future, KilledWorker, Scheduler, as_completed
from distributed.deploy.spec import ProcessInterface, SpecCluster
from distributed.worker_memory import parse_memory_limit

from planner.errors import InputError, PlannerError, SolverFailure
from planner.store.record import Record
from planner.sweeps.run_request import Request
from planner.sweeps.worker import failure_record, run_requests

log = logging.getLogger(__name__)

BATCHES_PER_WORKER: Final = 2  # so that a worker never waits for the next batch
BATCH_S: Final = 0.25  # duration of a batch of short runs
MAX_BATCH_RUNS: Final = 32  # so that few runs are lost with a worker
POLL_S: Final = 0.25
WORKER_CHECK_S: Final = 0.5  # time between two looks at the list of workers
CONNECTION_LIMIT_S: Final = 15.0
NO_WORKER_LIMIT_S: Final = 60.0  # longest time without any worker
MAX_WORKER_DEATHS: Final = 3  # workers that may die during a run before it is recorded as failed

THREAD_VARIABLES: Final = tuple(
    f"{library}_NUM_THREADS" for library in ("OMP", "MKL", "OPENBLAS", "NUMBA", "VECLIB_MAXIMUM", "NUMEXPR")
)
DASK_CONFIG: Final = {
    "distributed.scheduler.allowed-failures": MAX_WORKER_DEATHS,
    # a worker that is silent for minutes is busy in a solver; dead ones close their connections
    "distributed.scheduler.worker-ttl": None,
    "distributed.comm.timeouts.connect": f"{CONNECTION_LIMIT_S:.0f}s",
    "distributed.admin.large-graph-warning-threshold": "1GB",
}


class ClusterLost(PlannerError):
    """The connection to the cluster was lost while runs were on it."""


@contextlib.contextmanager
def connect_to_cluster(address: str) -> Iterator[Client]:
    """Connect to the Dask scheduler at an address; raise InputError where none answers."""
    with _silence_dask():
        try:
            client = Client(address, timeout=CONNECTION_LIMIT_S, set_as_default=False)
        except (OSError, TimeoutError, ValueError) as error:
            why = " ".join(str(error).split()) or type(error).__name__
            raise InputError(f"--cluster {address}: no Dask scheduler answers there ({why})") from None
        try:
            yield client
        finally:
            with contextlib.suppress(Exception):  # the scheduler may be gone, which the caller knows by then
                client.close(timeout=5)


def map_parts(
    client: Any, function: Callable[[Any, Any], Any], shared: Any, parts: Sequence[Any]
) -> Iterator[tuple[int, Any]]:
    """Yield the place of each part, and function(shared, part), as workers finish; errors are raised.

    shared  sent to each worker once
    """
    sent = client.scatter(shared, broadcast=True)
    futures = {client.submit(function, sent, part, pure=False): place for place, part in enumerate(parts)}
    try:
        for future in as_completed(list(futures), loop=client.loop):
            yield futures[future], future.result()
    finally:
        for future in futures:
            future.cancel()


@contextlib.contextmanager
def start_local_workers(workers: int, *, memory: str = "auto", threads: int = 1) -> Iterator[Client]:
    """Start workers that live as long as this block, and connect to them.

    memory   limit for each worker, e.g. "4GB"; "auto": its share of the machine
    threads  threads of each solver; a worker executes one run at a time
    raises   InputError for a memory limit that cannot be read
    """
    try:
        limit = parse_memory_limit(memory, 1, workers, logger=log)
    except (ValueError, TypeError):
        raise InputError(f"--memory {memory}: must be such as 4GB, 512MiB or auto") from None
    with (
        _silence_dask(),
        tempfile.TemporaryDirectory(prefix="planner-", ignore_cleanup_errors=True) as folder,
    ):
        options = {
            "nthreads": 1,
            "memory_limit": limit,
            "local_directory": folder,
            "dashboard": False,
            "preload_nanny": ["planner.sweeps.parent_watchdog"],
        }
        cluster = SpecCluster(
            scheduler={
                "cls": Scheduler,
                "options": {"host": "127.0.0.1", "port": 0, "dashboard": False, "dashboard_address": ":0"},
            },
            workers={
                name: {"cls": _LocalWorker, "options": {"threads": threads, **options}}
                for name in range(workers)
            },
            name="planner",
            silence_logs=False,
        )
        try:
            client = Client(cluster, timeout=CONNECTION_LIMIT_S, set_as_default=False)
            try:
                yield client
            finally:
                client.close(timeout=5)
        finally:
            with contextlib.suppress(TimeoutError):
                cluster.close(timeout=15)


class _LocalWorker(ProcessInterface):
    """A worker process in a session of its own, restarted whenever it ends; see `parent_watchdog`."""

    def __init__(self, scheduler: str, name: Any = None, threads: int = 1, **options: Any) -> None:
        self.scheduler, self.options, self.threads = scheduler, {**options, "name": str(name)}, threads
        self.process: asyncio.subprocess.Process
        self.supervisor: asyncio.Task[None]
        self.closing = False
        super().__init__()

    async def start(self) -> None:
        await self._start_process()
        self.supervisor = asyncio.create_task(self._supervise())
        await super().start()

    async def _supervise(self) -> None:
        # Dask's nanny restarts a worker that died; this restarts a nanny that died
        while True:
            await self.process.wait()
            if self.closing:
                return
            await asyncio.sleep(1.0)
            await self._start_process()

    async def _start_process(self) -> None:
        spec = json.dumps({"cls": "distributed.Nanny", "opts": self.options})
        one = "1" if self.threads == 1 else str(self.threads)
        debug = bool(os.environ.get("PLANNER_DEBUG"))
        self.process = await asyncio.create_subprocess_exec(
            # -P: modules of the user's folder must not shadow others
            *(sys.executable, "-P", "-m", "dask", "spec", self.scheduler, "--spec", spec),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=None if debug else asyncio.subprocess.DEVNULL,
            start_new_session=True,
            env={**os.environ, **dict.fromkeys(THREAD_VARIABLES, one)},
        )

    async def close(self) -> None:
        self.closing = True
        self.supervisor.cancel()
        if self.process.returncode is None:
            assert self.process.stdin is not None
            self.process.stdin.close()  # ends the worker, by its watchdog
            await self.process.wait()
        await super().close()


@contextlib.contextmanager
def _silence_dask() -> Iterator[None]:
    """Silence Dask's log lines on every worker that joins or leaves, unless PLANNER_DEBUG is set."""
    families = ("distributed", "asyncio", "tornado")
    names = [*families, *(name for name in logging.root.manager.loggerDict if name.startswith(families))]
    before = {name: logging.getLogger(name).level for name in names}
    if not os.environ.get("PLANNER_DEBUG"):
        for name in names:
            logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    try:
        with dask.config.set(DASK_CONFIG), warnings.catch_warnings():
            warnings.filterwarnings("ignore", module=r"distributed\b.*")
            yield
    finally:
        for name, level in before.items():
            logging.getLogger(name).setLevel(level)


# --- batches ------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, eq=False)
class _Batch:
    """Requests submitted together, and their worker."""

    future: Future[Any]
    requests: tuple[Request, ...]
    worker: str


@dataclass(eq=False)
class DaskPool:
    """Distributes requests over the workers of a client and collects their records.

    Each batch is bound to one worker. Requests of a worker that died are quarantined: they are submitted
    again one at a time, to a worker that has nothing else, so that the next death identifies its cause.
    """

    client: Client
    waiting_groups: deque[deque[Request]] = field(default_factory=deque)
    quarantined: deque[Request] = field(default_factory=deque)
    worker_deaths: Counter[int] = field(default_factory=Counter)  # by identity of the request
    running: dict[str, _Batch] = field(default_factory=dict)
    finished_keys: queue.SimpleQueue[str] = field(default_factory=queue.SimpleQueue)
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
                with contextlib.suppress(Exception):
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
        key = f"planner-{os.getpid()}-{id(self)}-{self.batch_number}"
        future = self.client.submit(run_requests, requests, key=key, workers=[worker], pure=False)
        self.running[key] = _Batch(future=future, requests=requests, worker=worker)
        future.add_done_callback(lambda done: self.finished_keys.put(done.key))

    # --- results --------------------------------------------------------------------------

    def _collect_records(self) -> list[Record]:
        """Return the records of the batches that have ended; wait up to POLL_S for the first."""
        records, self.failures = self.failures, []
        try:
            keys = [self.finished_keys.get(timeout=0.0 if records else POLL_S)]
            with contextlib.suppress(queue.Empty):
                while True:
                    keys.append(self.finished_keys.get_nowait())
        except queue.Empty:
            return records
        ended = {key: self.running[key] for key in keys if key in self.running}
        succeeded = {key: batch for key, batch in ended.items() if batch.future.status == "finished"}
        for key, batch in ended.items():
            if key not in succeeded:
                del self.running[key]
                records += self._handle_failed_batch(batch)
        for key, batch_records in self._gather_records(succeeded).items():
            del self.running[key]
            records += batch_records
        self.run_times_s.extend(record.wall_s for record in records if record.wall_s is not None)
        return records

    def _gather_records(self, batches: dict[str, _Batch]) -> dict[str, list[Record]]:
        """Return the records of finished batches by key; {} where some must be gathered or run again."""
        if not batches:
            return {}
        futures = [batch.future for batch in batches.values()]
        loop: Any = self.client.loop
        gathered = self.client.gather(futures, errors="skip", asynchronous=True)
        gathering = asyncio.run_coroutine_threadsafe(gathered, loop.asyncio_loop)
        while True:
            try:
                results = gathering.result(timeout=1.0)
                break
            except TimeoutError:
                self._update_workers()
                is_worker_lost = any(batch.worker not in self.workers for batch in batches.values())
                if is_worker_lost and not gathering.done():
                    gathering.cancel()
                    results = []
                    break
            except Exception as error:
                raise self._cluster_failure(error) from error
        if len(results) == len(batches):
            return dict(zip(batches, results, strict=True))
        for key, batch in batches.items():
            if batch.worker in self.workers and batch.future.status == "finished":
                self.finished_keys.put(key)
            else:  # not quarantined: the batch had ended before its worker died
                del self.running[key]
                batch.future.cancel()
                self.waiting_groups.appendleft(deque(batch.requests))
        return {}

    def _handle_failed_batch(self, batch: _Batch) -> list[Record]:
        future = batch.future
        if future.status in ("cancelled", "lost"):
            raise self._cluster_failure(None)
        error = future.exception()
        if isinstance(error, PlannerError):
            raise error
        if isinstance(error, KilledWorker):  # a worker that came back under the same address each time
            return self._on_worker_lost(batch, MAX_WORKER_DEATHS + 1 if len(batch.requests) == 1 else 1)
        message = f"internal error: {type(error).__name__}: {' '.join(str(error).split())}"
        return [
            failure_record(request, message, exit_code=SolverFailure.exit_code) for request in batch.requests
        ]

    def _on_worker_lost(self, batch: _Batch, deaths: int = 1) -> list[Record]:
        """Quarantine the requests of a dead worker; return records of those that failed for good."""
        records = []
        for request in batch.requests:
            self.worker_deaths[id(request)] += deaths
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
            try:
                self.workers = tuple(self.client.scheduler_info(n_workers=-1)["workers"])
            except Exception as error:
                raise self._cluster_failure(error) from error
        if self.client.status not in ("running", "connecting"):
            raise self._cluster_failure(None)
        if self.workers:
            self.last_worker_seen = now
        elif now - self.last_worker_seen > NO_WORKER_LIMIT_S:
            raise ClusterLost(
                f"the cluster has had no worker for {NO_WORKER_LIMIT_S:.0f} s: start one with: dask worker "
                f"{self.client.scheduler.address if self.client.scheduler else 'ADDRESS'} --nthreads 1"
            )

    def _requeue_lost_batches(self) -> None:
        """Queue the requests of workers that are gone again."""
        for worker in set(self.group_of_worker) - set(self.workers):
            rest = self.group_of_worker.pop(worker)
            if rest:
                self.waiting_groups.appendleft(rest)
        for key, batch in list(self.running.items()):
            if batch.worker not in self.workers and batch.future.status == "pending":
                del self.running[key]
                batch.future.cancel()
                self.failures += self._on_worker_lost(batch)

    def _cluster_failure(self, error: BaseException | None) -> ClusterLost:
        why = f" ({type(error).__name__}: {' '.join(str(error).split())})" if error else ""
        return ClusterLost(
            f"the connection to the cluster was lost{why}; every run stored before is kept: "
            "run the same command again"
        )
