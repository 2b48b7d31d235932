"""Jobs of worker processes: waiting, cancelled, too long, too large, abandoned by their session."""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Callable, Iterator

import pytest

from planner.errors import InputError, PlannerError
from planner_dashboard.jobs import Workers

TIME_LIMIT_S = 180.0

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def workers() -> Iterator[Workers]:
    pool = Workers(1, 1024)
    yield pool
    pool.close()


def wait_until(is_done: Callable[[], bool]) -> None:
    end = time.monotonic() + TIME_LIMIT_S
    while not is_done():
        assert time.monotonic() < end
        time.sleep(0.02)


def sleep(seconds: float) -> int:
    time.sleep(seconds)
    return os.getpid()


def allocate() -> int:
    return len(bytearray(4 << 30))


def refuse() -> None:
    raise InputError("no")


def test_a_job_waits_until_the_one_before_it_is_cancelled(workers: Workers) -> None:
    long, short = workers.submit(sleep, 600.0), workers.submit(sleep, 0.0)
    wait_until(lambda: not long.is_waiting)
    assert short.is_waiting
    assert short.is_pending
    long.cancel()
    wait_until(lambda: not short.is_pending)
    assert short.result() != os.getpid()
    with pytest.raises(PlannerError, match="cancelled"):
        long.result()


def test_a_job_without_references_is_cancelled(workers: Workers) -> None:
    jobs = [workers.submit(sleep, 600.0)]
    wait_until(lambda: not jobs[0].is_waiting)
    future = jobs[0].future
    jobs.clear()  # as when a session ends
    gc.collect()
    wait_until(future.done)
    assert future.cancelled()


def test_a_job_over_its_limits_is_one_line(workers: Workers) -> None:
    slow = workers.submit(sleep, 600.0, time_limit_s=0.2)
    wait_until(lambda: not slow.is_pending)
    with pytest.raises(PlannerError, match=r"no answer within 0\.2 s"):
        slow.result()
    large = workers.submit(allocate)
    wait_until(lambda: not large.is_pending)
    with pytest.raises(PlannerError, match="out of memory"):
        large.result()
    bad = workers.submit(refuse)
    wait_until(lambda: not bad.is_pending)
    with pytest.raises(InputError, match="no"):
        bad.result()
