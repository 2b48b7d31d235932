"""Workers that a sweep or a search sends functions to: the shared interface of both kinds.

`local_workers` are processes of this machine, reached over pipes; `cluster_workers` those of a Dask cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, as_completed
from typing import Any, Final, Protocol

from planner.errors import PlannerError

MAX_WORKER_DEATHS: Final = 3
"""Workers that may die during a call before it is given up."""


class ClusterLost(PlannerError):
    """The workers were lost while runs were on them."""


class WorkerDied(PlannerError):
    """The worker of a call died.

    deaths  workers that died during the call; 0 where the call only waited for the one that died
    """

    def __init__(self, text: str, *, deaths: int = 1) -> None:
        super().__init__(text)
        self.deaths = deaths


class Workers(Protocol):
    """Workers that execute one call at a time each."""

    def names(self) -> tuple[str, ...]:
        """Return the names of the workers that there are now; raise ClusterLost where the cluster is gone.

        A worker that replaces a dead one has another name.
        """
        ...

    def share(self, value: Any) -> Any:
        """Return a handle of a value that each worker gets once; it can be an argument of `submit`."""
        ...

    def submit(self, function: Callable[..., Any], *arguments: Any, worker: str | None = None) -> Future[Any]:
        """Return the future result of a call; its exception is WorkerDied where its worker died.

        worker  name of the only worker that may execute the call; None: any, and another if that one dies
        """
        ...


def map_shares(
    workers: Workers, function: Callable[[Any, Any], Any], shared: Any, shares: Sequence[Any]
) -> Iterator[tuple[int, Any]]:
    """Yield the index of each share, and function(shared, share), as workers finish; errors are raised.

    shared  sent to each worker once
    """
    sent = workers.share(shared)
    futures = {workers.submit(function, sent, share): index for index, share in enumerate(shares)}
    try:
        for future in as_completed(futures):
            yield futures[future], future.result()
    finally:
        for future in futures:
            future.cancel()
