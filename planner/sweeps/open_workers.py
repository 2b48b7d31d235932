"""Workers of a command: processes of this machine, or those of a Dask cluster."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from planner.extras import needed_by
from planner.sweeps.local_workers import start_local_workers
from planner.sweeps.workers import Workers


@contextlib.contextmanager
def open_workers(
    workers: int, *, memory: str = "auto", threads: int = 1, cluster: str | None = None
) -> Iterator[Workers]:
    """Start workers on this machine for as long as the block, or connect to those of a Dask cluster.

    memory   limit for each worker of this machine; see `start_local_workers`
    threads  threads of each solver on this machine
    cluster  address of a Dask scheduler; its workers are used instead
    """
    if cluster is None:
        with start_local_workers(workers, memory=memory, threads=threads) as here:
            yield here
        return
    with needed_by("a cluster"):
        from planner.sweeps import cluster_workers
    with cluster_workers.connect_to_cluster(cluster) as there:
        there.wait_for_worker()
        yield there
