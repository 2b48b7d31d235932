"""Progress of a search while it runs: the value of its incumbent and its bound.

A design reports them where its loop has them; who waits for the plan observes them.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Progress:
    """State of a search: None where there is no plan, or no bound, yet.

    metric  the name of the metric that both are values of
    """

    metric: str
    objective: float | None
    bound: float | None


_observers: list[Callable[[Progress], None]] = []


@contextlib.contextmanager
def observe(observer: Callable[[Progress], None]) -> Iterator[None]:
    """Call `observer` with each report of the searches in a block, also from their threads."""
    _observers.append(observer)
    try:
        yield
    finally:
        _observers.remove(observer)


@contextlib.contextmanager
def ignore() -> Iterator[None]:
    """Report nothing in a block, which solves another problem than the one that is asked about."""
    observers, _observers[:] = _observers[:], []
    try:
        yield
    finally:
        _observers[:] = observers


def report(metric: str, objective: float | None, bound: float | None) -> None:
    """Report the incumbent and the bound of a search; values that are not finite are unknown."""
    if not _observers:
        return
    state = Progress(metric, _known(objective), _known(bound))
    for observer in _observers:
        observer(state)


def _known(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else float(value)
