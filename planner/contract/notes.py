"""Notes on data: conversions, ignored and doubtful values, reported when found and kept with a problem."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any, TypeVar

Made = TypeVar("Made")

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


def keep_notes(problem: Made, notes: tuple[str, ...]) -> Made:
    """Return the problem with notes on its data, for reports; a problem that takes no attributes has none."""
    if notes:
        with contextlib.suppress(AttributeError, TypeError):
            object.__setattr__(problem, "data_notes", notes)
    return problem


def make_with_notes(make: Callable[[], Made]) -> Made:
    """Return a problem with the notes that were added while it was made."""
    notes: dict[str, None] = {}
    with observe_notes(lambda note: notes.update({note: None})):
        problem = make()
    return keep_notes(problem, tuple(notes))


def notes_of(problem: Any) -> list[str]:
    """Return the notes on a problem's data."""
    return list(getattr(problem, "data_notes", ()))


def doubts_of(problem: Any) -> list[str]:
    """Return the notes on a problem's data that state an assumption or a doubt."""
    return [note for note in notes_of(problem) if note.startswith(("assumed: ", "warning: "))]
