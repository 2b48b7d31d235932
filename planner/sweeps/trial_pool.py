"""Trials of one design, here or on workers: processes of this machine, or a Dask cluster."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import as_completed
from typing import Any, Final, Protocol

from planner.contract.design import Decision
from planner.errors import InputError
from planner.runs.run import Run
from planner.runs.trials import Adjustments, Outcome, Trials, key_of, outcome_of
from planner.sweeps.open_workers import open_workers
from planner.sweeps.run_request import sweep_options
from planner.sweeps.worker import RUN_LOCK
from planner.sweeps.workers import ClusterLost, Workers

MOST_KEPT: Final = 4
"""Runs that a pool keeps with their plans."""


class TrialPool(Protocol):
    """Makes trials; `width` of them at the same time."""

    width: int

    def make(self, asked: Sequence[Adjustments], start: Run | None = None) -> Iterator[tuple[int, Outcome]]:
        """Yield the place in `asked` and the outcome of each trial, as they are finished.

        start  of a neighbour, by `start_of`, to start from
        """
        ...

    def run(self, adjustments: Adjustments) -> Run:
        """Return the whole run of a trial, which is repeated unless it was one of the last."""
        ...


@contextlib.contextmanager
def open_pool(
    trials: Trials, *, workers: int = 1, cluster: str | None = None, find_busiest: bool = False
) -> Iterator[TrialPool]:
    """Open a maker of trials for the block: this process, or workers.

    workers       processes on this machine; 1: this process makes the trials itself
    cluster       address of a Dask scheduler instead
    find_busiest  as in `Trials.outcome`
    raises        InputError for a number of workers below 1, and where no scheduler answers
    """
    if workers < 1:
        raise InputError(f"workers is {workers}, must be at least 1")
    if workers == 1 and cluster is None:
        yield _Here(trials, find_busiest)
        return
    with open_workers(workers, threads=trials.options.threads or 1, cluster=cluster) as pool:
        width = workers if cluster is None else len(pool.names())
        yield _OnWorkers(trials.with_options(sweep_options(trials.options)), find_busiest, pool, width)


class _Here:
    """Makes trials in this process, one after the other."""

    width = 1

    def __init__(self, trials: Trials, find_busiest: bool) -> None:
        self._trials, self._find_busiest = trials, find_busiest
        self._last: dict[str, Run] = {}

    def make(self, asked: Sequence[Adjustments], start: Run | None = None) -> Iterator[tuple[int, Outcome]]:
        for index, adjustments in enumerate(asked):
            run = self._trials.run(adjustments, start)
            self._last[key_of(adjustments)] = run
            if len(self._last) > MOST_KEPT:
                del self._last[next(iter(self._last))]
            yield index, outcome_of(run, adjustments, find_busiest=self._find_busiest)

    def run(self, adjustments: Adjustments) -> Run:
        outcome = self._last.get(key_of(adjustments))
        return self._trials.run(adjustments) if outcome is None else outcome


class _OnWorkers:
    """Makes trials on workers; the problem is sent to each of them once."""

    def __init__(self, trials: Trials, find_busiest: bool, workers: Workers, width: int) -> None:
        self._find_busiest, self._workers, self.width = find_busiest, workers, width
        self._trials = trials
        self._sent = workers.share(trials)

    def make(self, asked: Sequence[Adjustments], start: Run | None = None) -> Iterator[tuple[int, Outcome]]:
        decision = None if start is None else (start.decision, start.problem)
        futures = {
            self._workers.submit(make_trial, self._sent, adjustments, decision, self._find_busiest): index
            for index, adjustments in enumerate(asked)
        }
        try:
            for future in as_completed(futures):
                index = futures[future]
                error = future.exception()
                if error is None:
                    yield index, future.result()
                elif isinstance(error, ClusterLost):
                    raise error
                else:
                    text = " ".join(str(error).split()) or type(error).__name__
                    yield index, Outcome(adjustments=asked[index], error=f"the worker failed: {text}")
        finally:
            for future in futures:
                future.cancel()

    def run(self, adjustments: Adjustments) -> Run:
        return self._trials.run(adjustments)


def make_trial(
    trials: Trials,
    adjustments: Adjustments,
    start: tuple[Decision[Any], Mapping[str, int]] | None,
    find_busiest: bool,
) -> Outcome:
    """Make one trial in a worker; one at a time, whatever its threads.

    start  decision of a neighbour, and the size of its problem
    """
    neighbour = None
    if start is not None:
        decision, size = start
        neighbour = Run(system=trials.system, problem=size, entry=trials.entry, decision=decision)
    with RUN_LOCK:
        return trials.outcome(adjustments, start=neighbour, find_busiest=find_busiest)
