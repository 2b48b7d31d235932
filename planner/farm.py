"""Runs on Dask: on this machine by default, or on any cluster by its address.

Here: a scheduler in this process and workers of one thread each in processes of their own, which
share no terminal with it (Ctrl-C is for the sweep) and never run the user's own script again. Elsewhere:

    dask scheduler
    dask worker tcp://HOST:8786 --nthreads 1 --nworkers 8      # on every machine
    planner sweep ... --cluster tcp://HOST:8786

A few runs at a time are handed out, so that a sweep of any length costs the scheduler nothing, and a
worker is given what shares its problem. Tiny runs go several at a time. The runs of a worker that died
go to another; a run that takes several workers down with it is a failure of its own.
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
from distributed import Client, Future, KilledWorker, Scheduler
from distributed.deploy.spec import ProcessInterface, SpecCluster
from distributed.worker_memory import parse_memory_limit

from planner.errors import InputError, PlannerError, SolverFailure
from planner.perform import failed, perform
from planner.record import Record
from planner.request import Request

log = logging.getLogger(__name__)

DEPTH: Final = 2  # parcels that a worker has at a time, so that it never waits for the next
PARCEL_S: Final = 0.25  # of tiny runs so many seconds make a parcel
MOST_PARCEL: Final = 32  # runs in a parcel, so that few are lost with a worker
TICK_S: Final = 0.25
REFRESH_S: Final = 0.5  # between looks at who is there
CONNECT_S: Final = 15.0
LONELY_S: Final = 60.0  # most seconds without any worker
DEATHS: Final = 3  # workers that a run may take down before it counts as failed

THREADS: Final = tuple(
    f"{library}_NUM_THREADS" for library in ("OMP", "MKL", "OPENBLAS", "NUMBA", "VECLIB_MAXIMUM", "NUMEXPR")
)
DASK: Final = {
    "distributed.scheduler.allowed-failures": DEATHS,
    # a solver that lets nothing else run for minutes is no dead worker: those close their connections
    "distributed.scheduler.worker-ttl": None,
    "distributed.comm.timeouts.connect": f"{CONNECT_S:.0f}s",
    "distributed.admin.large-graph-warning-threshold": "1GB",
}


class ClusterLost(PlannerError):
    """The cluster went away while runs were on it."""


@contextlib.contextmanager
def on_cluster(address: str) -> Iterator[Client]:
    """A client of the Dask scheduler at that address; InputError where none answers."""
    with _quiet():
        try:
            client = Client(address, timeout=CONNECT_S, set_as_default=False)
        except (OSError, TimeoutError, ValueError) as error:
            why = " ".join(str(error).split()) or type(error).__name__
            raise InputError(f"--cluster {address}: no Dask scheduler answers there ({why})") from None
        try:
            yield client
        finally:
            with contextlib.suppress(Exception):  # it may be gone, which the caller knows by then
                client.close(timeout=5)


@contextlib.contextmanager
def on_this_machine(workers: int, *, memory: str = "auto", threads: int = 1) -> Iterator[Client]:
    """A client of workers that live as long as this block.

    memory   the most that each may use, e.g. "4GB"; "auto": its share of the machine
    threads  that each solver takes, for the shares only: a worker runs one run at a time
    raises   InputError for a memory limit that is none
    """
    try:
        limit = parse_memory_limit(memory, 1, workers, logger=log)
    except (ValueError, TypeError):
        raise InputError(f"--memory {memory}: must be such as 4GB, 512MiB or auto") from None
    with _quiet(), tempfile.TemporaryDirectory(prefix="planner-", ignore_cleanup_errors=True) as folder:
        options = {
            "nthreads": 1,
            "memory_limit": limit,
            "local_directory": folder,
            "dashboard": False,
            "preload_nanny": ["planner.leash"],
        }
        cluster = SpecCluster(
            scheduler={
                "cls": Scheduler,
                "options": {"host": "127.0.0.1", "port": 0, "dashboard": False, "dashboard_address": ":0"},
            },
            workers={
                name: {"cls": _Worker, "options": {"threads": threads, **options}} for name in range(workers)
            },
            name="planner",
            silence_logs=False,
        )
        try:
            client = Client(cluster, timeout=CONNECT_S, set_as_default=False)
            try:
                yield client
            finally:
                client.close(timeout=5)
        finally:
            with contextlib.suppress(TimeoutError):
                cluster.close(timeout=15)


class _Worker(ProcessInterface):
    """A worker in a session of its own, on a leash; started again whenever its process ends."""

    def __init__(self, scheduler: str, name: Any = None, threads: int = 1, **options: Any) -> None:
        self.scheduler, self.options, self.threads = scheduler, {**options, "name": str(name)}, threads
        self.process: asyncio.subprocess.Process
        self.minder: asyncio.Task[None]
        self.closing = False
        super().__init__()

    async def start(self) -> None:
        await self._spawn()
        self.minder = asyncio.create_task(self._mind())
        await super().start()

    async def _mind(self) -> None:
        # Dask's own minder starts a worker again that died; here the one who minds it did
        while True:
            await self.process.wait()
            if self.closing:
                return
            await asyncio.sleep(1.0)
            await self._spawn()

    async def _spawn(self) -> None:
        spec = json.dumps({"cls": "distributed.Nanny", "opts": self.options})
        one = "1" if self.threads == 1 else str(self.threads)
        debug = bool(os.environ.get("PLANNER_DEBUG"))
        self.process = await asyncio.create_subprocess_exec(
            # -P: modules of the user's folder must not stand in for others
            *(sys.executable, "-P", "-m", "dask", "spec", self.scheduler, "--spec", spec),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=None if debug else asyncio.subprocess.DEVNULL,
            start_new_session=True,
            env={**os.environ, **dict.fromkeys(THREADS, one)},
        )

    async def close(self) -> None:
        self.closing = True
        self.minder.cancel()
        if self.process.returncode is None:
            assert self.process.stdin is not None
            self.process.stdin.close()  # lets go of the leash
            await self.process.wait()
        await super().close()


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Dask tells of every worker that comes and goes, in many lines; we tell what matters in one."""
    families = ("distributed", "asyncio", "tornado")
    names = [*families, *(name for name in logging.root.manager.loggerDict if name.startswith(families))]
    before = {name: logging.getLogger(name).level for name in names}
    if not os.environ.get("PLANNER_DEBUG"):
        for name in names:
            logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    try:
        with dask.config.set(DASK), warnings.catch_warnings():
            warnings.filterwarnings("ignore", module=r"distributed\b.*")
            yield
    finally:
        for name, level in before.items():
            logging.getLogger(name).setLevel(level)


# --- handing out --------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, eq=False)
class _Parcel:
    """Runs on their way, and the worker that has them."""

    future: Future[Any]
    requests: tuple[Request, ...]
    worker: str


@dataclass(eq=False)
class Farm:
    """Hands requests to the workers of a client, and their records back.

    Each parcel is bound to its worker. What a worker had when it died is handed out again, one run at
    a time and with nothing else beside it: so the next death tells which run it was.
    """

    client: Client
    waiting: deque[deque[Request]] = field(default_factory=deque)
    suspects: deque[Request] = field(default_factory=deque)
    deaths: Counter[int] = field(default_factory=Counter)  # by the request's identity
    out: dict[str, _Parcel] = field(default_factory=dict)
    ended: queue.SimpleQueue[str] = field(default_factory=queue.SimpleQueue)
    at_hand: dict[str, deque[Request]] = field(default_factory=dict)
    times: deque[float] = field(default_factory=lambda: deque(maxlen=MOST_PARCEL))
    given_up: list[Record] = field(default_factory=list)
    number: int = 0
    workers: tuple[str, ...] = ()
    refreshed: float = 0.0
    seen_workers: float = field(default_factory=time.monotonic)

    def run(
        self,
        groups: Iterable[Sequence[Request]],
        keep: Callable[[list[Record]], None],
        *,
        wanted: Callable[[Request], bool] = lambda request: True,  # noqa: ARG005
        stopped: Callable[[], bool] = lambda: False,
    ) -> None:
        """Run every request, and hand each record to `keep` as it comes, in this thread.

        groups   requests that share a problem stand together
        wanted   asked again when a request's turn comes: another sweep may have been faster
        stopped  once true, nothing more is handed out, and what runs is waited for
        raises   ClusterLost, and what `keep` raises
        """
        self.waiting = deque(deque(group) for group in groups)
        try:
            while True:
                self._refresh()
                self._take_back()
                if not stopped():
                    self._hand_out(wanted)
                if not self.out and not self.given_up and (stopped() or not self._left()):
                    return
                records = self._collect()
                if records:
                    keep(records)
        finally:
            for parcel in self.out.values():
                with contextlib.suppress(Exception):
                    parcel.future.cancel()

    def _left(self) -> bool:
        return bool(self.suspects) or any(self.waiting) or any(self.at_hand.values())

    # --- out ------------------------------------------------------------------------------

    def _hand_out(self, wanted: Callable[[Request], bool]) -> None:
        busy = dict.fromkeys(self.workers, 0)
        for parcel in self.out.values():
            is_suspect = any(self.deaths[id(request)] for request in parcel.requests)
            busy[parcel.worker] = busy.get(parcel.worker, 0) + (DEPTH if is_suspect else 1)
        for worker in self.workers:
            if busy[worker] == 0 and self.suspects:
                self._submit((self.suspects.popleft(),), worker)
                busy[worker] = DEPTH
        for depth in range(DEPTH):
            for worker in self.workers:
                if busy[worker] == depth:
                    requests = self._next(worker, wanted)
                    if requests:
                        self._submit(requests, worker)
                        busy[worker] += 1

    def _next(self, worker: str, wanted: Callable[[Request], bool]) -> tuple[Request, ...]:
        """The next runs for a worker: of the problem it has at hand, of a new one, or of another's."""
        size = 1
        if self.times:  # the median: the first run in a worker waits for the solvers to be loaded
            size = int(min(MOST_PARCEL, max(1.0, PARCEL_S / max(statistics.median(self.times), 1e-9))))
        requests: list[Request] = []
        while len(requests) < size:
            mine = self.at_hand.get(worker)
            if not mine and self.waiting:
                mine = self.at_hand[worker] = self.waiting.popleft()
            if not mine and not requests:
                mine = max(self.at_hand.values(), key=len, default=None)
            if not mine:
                break
            request = mine.popleft()
            if wanted(request):
                requests.append(request)
        return tuple(requests)

    def _submit(self, requests: tuple[Request, ...], worker: str) -> None:
        self.number += 1
        key = f"planner-{os.getpid()}-{id(self)}-{self.number}"
        future = self.client.submit(perform, requests, key=key, workers=[worker], pure=False)
        self.out[key] = _Parcel(future=future, requests=requests, worker=worker)
        future.add_done_callback(lambda done: self.ended.put(done.key))

    # --- and back -------------------------------------------------------------------------

    def _collect(self) -> list[Record]:
        """The records of what has ended by now; waits a little for the first."""
        records, self.given_up = self.given_up, []
        try:
            keys = [self.ended.get(timeout=0.0 if records else TICK_S)]
            with contextlib.suppress(queue.Empty):
                while True:
                    keys.append(self.ended.get_nowait())
        except queue.Empty:
            return records
        ended = {key: self.out[key] for key in keys if key in self.out}
        good = {key: parcel for key, parcel in ended.items() if parcel.future.status == "finished"}
        for key, parcel in ended.items():
            if key not in good:
                del self.out[key]
                records += self._without_answer(parcel)
        for key, answer in self._answers(good).items():
            del self.out[key]
            records += answer
        self.times.extend(record.wall_s for record in records if record.wall_s is not None)
        return records

    def _answers(self, parcels: dict[str, _Parcel]) -> dict[str, list[Record]]:
        """What has been brought from the workers; the others are tried again, or were lost with theirs."""
        if not parcels:
            return {}
        futures = [parcel.future for parcel in parcels.values()]
        loop: Any = self.client.loop
        bringing = self.client.gather(futures, errors="skip", asynchronous=True)
        gathering = asyncio.run_coroutine_threadsafe(bringing, loop.asyncio_loop)
        while True:
            try:
                answers = gathering.result(timeout=1.0)
                break
            except TimeoutError:
                self._refresh()
                gone = [key for key, parcel in parcels.items() if parcel.worker not in self.workers]
                if gone and not gathering.done():
                    gathering.cancel()
                    answers = []
                    break
            except Exception as error:
                raise self._lost(error) from error
        if len(answers) == len(parcels):
            return dict(zip(parcels, answers, strict=True))
        for key, parcel in parcels.items():
            if parcel.worker in self.workers and parcel.future.status == "finished":
                self.ended.put(key)
            else:  # no suspect: it had ended when its worker did
                del self.out[key]
                parcel.future.cancel()
                self.waiting.appendleft(deque(parcel.requests))
        return {}

    def _without_answer(self, parcel: _Parcel) -> list[Record]:
        future = parcel.future
        if future.status in ("cancelled", "lost"):
            raise self._lost(None)
        error = future.exception()
        if isinstance(error, PlannerError):
            raise error
        if isinstance(error, KilledWorker):  # by a worker that always came back under the same address
            return self._bereaved(parcel, DEATHS + 1 if len(parcel.requests) == 1 else 1)
        message = f"internal error: {type(error).__name__}: {' '.join(str(error).split())}"
        return [failed(request, message, exit_code=SolverFailure.exit_code) for request in parcel.requests]

    def _bereaved(self, parcel: _Parcel, deaths: int = 1) -> list[Record]:
        """The worker is dead: what it had becomes suspect, or has failed."""
        records = []
        for request in parcel.requests:
            self.deaths[id(request)] += deaths
            if self.deaths[id(request)] <= DEATHS:
                self.suspects.append(request)
                continue
            message = (
                f"{DEATHS + 1} workers died of this run, one after the other; it may need more memory than "
                "a worker has"
            )
            records.append(failed(request, message, exit_code=SolverFailure.exit_code))
        return records

    # --- who is there ---------------------------------------------------------------------

    def _refresh(self) -> None:
        """Look who is there, once in a while; ClusterLost where nobody is."""
        now = time.monotonic()
        if now - self.refreshed >= REFRESH_S:
            self.refreshed = now
            try:
                self.workers = tuple(self.client.scheduler_info(n_workers=-1)["workers"])
            except Exception as error:
                raise self._lost(error) from error
        if self.client.status not in ("running", "connecting"):
            raise self._lost(None)
        if self.workers:
            self.seen_workers = now
        elif now - self.seen_workers > LONELY_S:
            raise ClusterLost(
                f"no worker has been there for {LONELY_S:.0f} s: start one with: dask worker "
                f"{self.client.scheduler.address if self.client.scheduler else 'ADDRESS'} --nthreads 1"
            )

    def _take_back(self) -> None:
        """What workers had that are gone."""
        for worker in set(self.at_hand) - set(self.workers):
            rest = self.at_hand.pop(worker)
            if rest:
                self.waiting.appendleft(rest)
        for key, parcel in list(self.out.items()):
            if parcel.worker not in self.workers and parcel.future.status == "pending":
                del self.out[key]
                parcel.future.cancel()
                self.given_up += self._bereaved(parcel)

    def _lost(self, error: BaseException | None) -> ClusterLost:
        why = f" ({type(error).__name__}: {' '.join(str(error).split())})" if error else ""
        return ClusterLost(
            f"the cluster went away{why}; every run kept before is there: run the same command again"
        )
