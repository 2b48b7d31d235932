"""Questions to worker processes: cancelled, too large, more than there are workers, left by their session."""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Callable, Iterator

import pytest

from planner.errors import InputError, PlannerError
from planner_dashboard.jobs import Workers

PATIENCE_S = 60.0

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def workers() -> Iterator[Workers]:
    made = Workers(1, 1024)
    yield made
    made.close()


def until(there: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE_S
    while not there():
        assert time.monotonic() < end
        time.sleep(0.02)


def sleep(seconds: float) -> int:
    time.sleep(seconds)
    return os.getpid()


def hoard() -> int:
    return len(bytearray(4 << 30))


def refuse() -> None:
    raise InputError("no")


def test_a_question_waits_for_a_worker_and_a_cancelled_one_makes_room(workers: Workers) -> None:
    long, short = workers.ask(sleep, 600.0), workers.ask(sleep, 0.0)
    until(lambda: not long.waiting)
    assert short.waiting
    assert short.running
    long.cancel()
    until(lambda: not short.running)
    assert short.answer() != os.getpid()
    with pytest.raises(PlannerError, match="cancelled"):
        long.answer()


def test_a_question_that_nobody_holds_is_cancelled(workers: Workers) -> None:
    held = [workers.ask(sleep, 600.0)]
    until(lambda: not held[0].waiting)
    future = held[0].future
    held.clear()  # as when a session ends
    gc.collect()
    until(future.done)
    assert future.cancelled()


def test_what_takes_too_long_or_too_much_is_one_line(workers: Workers) -> None:
    slow = workers.ask(sleep, 600.0, longest_s=0.2)
    until(lambda: not slow.running)
    with pytest.raises(PlannerError, match=r"no answer within 0\.2 s"):
        slow.answer()
    large = workers.ask(hoard)
    until(lambda: not large.running)
    with pytest.raises(PlannerError, match="out of memory"):
        large.answer()
    bad = workers.ask(refuse)
    until(lambda: not bad.running)
    with pytest.raises(InputError, match="no"):
        bad.answer()
