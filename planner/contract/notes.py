"""Notes on data: what was converted, ignored or looks wrong, said as it is found and kept with a problem."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any

_observers: ContextVar[tuple[Callable[[str], None], ...]] = ContextVar("observers", default=())


def add_note(text: str) -> None:
    """Tell all observers a note, one line; a doubt begins with `warning:`."""
    for observer in _observers.get():
        observer(text)


@contextlib.contextmanager
def observe_notes(observer: Callable[[str], None]) -> Iterator[None]:
    """Call `observer` with each note that is added in this block, beside those of outer blocks."""
    token = _observers.set((*_observers.get(), observer))
    try:
        yield
    finally:
        _observers.reset(token)


def keep_notes(problem: Any, notes: tuple[str, ...]) -> Any:
    """Return the problem with notes on its data, for reports; a problem that takes no attributes has none."""
    if notes:
        with contextlib.suppress(AttributeError, TypeError):
            object.__setattr__(problem, "data_notes", notes)
    return problem


def notes_of(problem: Any) -> list[str]:
    """Return the notes on a problem's data."""
    return list(getattr(problem, "data_notes", ()))
