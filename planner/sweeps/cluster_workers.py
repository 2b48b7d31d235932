"""Workers of a Dask cluster, by the address of its scheduler.

    dask scheduler
    dask worker tcp://HOST:8786 --nthreads 1 --nworkers 8      # on every machine
    planner sweep ... --cluster tcp://HOST:8786

Whoever reaches the ports of a Dask cluster executes code on it: `tls://` addresses with the certificates of
Dask's own configuration keep others out.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import Any, Final

import dask
from distributed import Client, KilledWorker

from planner.errors import InputError
from planner.log_levels import set_log_levels
from planner.sweeps.workers import MAX_WORKER_DEATHS, ClusterLost, WorkerDied

CONNECTION_LIMIT_S: Final = 15.0
FIRST_WORKER_LIMIT_S: Final = 60.0
DASK_CONFIG: Final = {
    "distributed.scheduler.allowed-failures": MAX_WORKER_DEATHS,
    # a worker that is silent for minutes is busy in a solver; dead ones close their connections
    "distributed.scheduler.worker-ttl": None,
    "distributed.comm.timeouts.connect": f"{CONNECTION_LIMIT_S:.0f}s",
    "distributed.admin.large-graph-warning-threshold": "1GB",
}


@contextlib.contextmanager
def connect_to_cluster(address: str) -> Iterator[ClusterWorkers]:
    """Connect to the Dask scheduler at an address; raise InputError where none answers."""
    with _silence_dask():
        try:
            client = Client(address, timeout=CONNECTION_LIMIT_S, set_as_default=False)
        except (OSError, TimeoutError, ValueError, TypeError) as error:
            why = " ".join(str(error).split()) or type(error).__name__
            raise InputError(f"--cluster {address}: no Dask scheduler answers there ({why})") from None
        try:
            yield ClusterWorkers(client)
        finally:
            with contextlib.suppress(Exception):  # the scheduler may be gone, which the caller knows by then
                client.close(timeout=5)


class ClusterWorkers:
    """Workers of a Dask cluster; see `workers.Workers`."""

    def __init__(self, client: Client) -> None:
        self.client = client

    def wait_for_worker(self) -> None:
        """Wait for the first worker; raise ClusterLost where there is none."""
        try:
            self.client.wait_for_workers(1, timeout=FIRST_WORKER_LIMIT_S)
        except TimeoutError:
            raise ClusterLost(
                f"the cluster has no worker: start one with: dask worker {self.address} --nthreads 1"
            ) from None

    @property
    def address(self) -> str:
        """Address of the scheduler."""
        return str(self.client.scheduler.address) if self.client.scheduler else "ADDRESS"

    def names(self) -> tuple[str, ...]:
        """Return the addresses of the workers; raise ClusterLost where the scheduler is gone."""
        if self.client.status not in ("running", "connecting"):
            raise _connection_lost(None)
        try:
            return tuple(self.client.scheduler_info(n_workers=-1)["workers"])
        except Exception as error:
            raise _connection_lost(error) from error

    def share(self, value: Any) -> Any:
        """Return Dask's handle of a value that each worker gets once."""
        return self.client.scatter(value, broadcast=True)

    def submit(self, function: Callable[..., Any], *arguments: Any, worker: str | None = None) -> Future[Any]:
        """Return the future result of a call; see `workers.Workers`."""
        where = {} if worker is None else {"workers": [worker]}
        remote = self.client.submit(function, *arguments, pure=False, **where)
        future: Future[Any] = Future()
        future.add_done_callback(lambda finished: remote.cancel() if finished.cancelled() else None)
        remote.add_done_callback(lambda _: self._fetch(remote, future))
        return future

    def _fetch(self, remote: Any, future: Future[Any]) -> None:
        """Set the result of a call that has ended, once it has come; a worker may die before that."""
        if future.cancelled() or not future.set_running_or_notify_cancel():
            return
        if remote.status == "finished":
            gathered = self.client.gather([remote], errors="raise", asynchronous=True)
            loop: Any = self.client.loop
            fetching = asyncio.run_coroutine_threadsafe(gathered, loop.asyncio_loop)
            fetching.add_done_callback(lambda finished: _pass_on(finished, future))
        elif remote.status == "error":
            error = remote.exception()
            if isinstance(error, KilledWorker):
                error = WorkerDied(" ".join(str(error).split()), deaths=MAX_WORKER_DEATHS + 1)
            future.set_exception(error)
        else:
            future.set_exception(_connection_lost(None))


def _pass_on(fetched: Future[Any], future: Future[Any]) -> None:
    if fetched.cancelled():
        future.set_exception(_connection_lost(None))
    elif (error := fetched.exception()) is not None:
        future.set_exception(_connection_lost(error))
    else:
        future.set_result(fetched.result()[0])


def _connection_lost(error: BaseException | None) -> ClusterLost:
    why = f" ({type(error).__name__}: {' '.join(str(error).split())})" if error else ""
    return ClusterLost(
        f"the connection to the cluster was lost{why}; every run stored before is kept: "
        "run the same command again"
    )


@contextlib.contextmanager
def _silence_dask() -> Iterator[None]:
    """Silence Dask's log lines on every worker that joins or leaves, unless PLANNER_DEBUG is set."""
    families = ("distributed", "asyncio", "tornado")
    names = [*families, *(name for name in logging.root.manager.loggerDict if name.startswith(families))]
    silenced = [] if os.environ.get("PLANNER_DEBUG") else names
    with (
        set_log_levels(silenced, logging.CRITICAL + 1),
        dask.config.set(DASK_CONFIG),
        warnings.catch_warnings(),
    ):
        warnings.filterwarnings("ignore", module=r"distributed\b.*")
        yield
