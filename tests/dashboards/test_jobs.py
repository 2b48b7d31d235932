"""Jobs of worker processes: waiting, cancelled, too long, too large, abandoned by their session."""

from __future__ import annotations

import gc
import mmap
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from types import ModuleType

import pytest

from planner.errors import InputError, PlannerError
from planner_dashboard import session, worker
from planner_dashboard.jobs import Workers
from planner_dashboard.question import Question

TIME_LIMIT_S = 180.0
LARGE = ("traffic/world", "brokering/market_33k", "multicast/figure_5a", "traffic/germany50")

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def workers() -> Iterator[Workers]:
    pool = Workers(1, 1024)
    yield pool
    pool.close()


def wait_until(is_done: Callable[[], bool], limit_s: float = TIME_LIMIT_S) -> None:
    end = time.monotonic() + limit_s
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


def end() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def answer(workers: Workers) -> int:
    job = workers.submit(sleep, 0.0)
    wait_until(lambda: not job.is_pending)
    return int(job.result())


def keep(megabytes: int) -> int:
    kept.append(bytearray(megabytes << 20))
    return os.getpid()


kept: list[bytearray] = []


def test_a_worker_that_keeps_much_memory_is_replaced(workers: Workers) -> None:
    first = finished(workers, sleep, 0.0)
    assert finished(workers, sleep, 0.0) == first
    assert finished(workers, keep, int(worker.KEPT_MB) + 50) == first
    assert finished(workers, sleep, 0.0) != first


def reserve(gigabytes: int) -> int:
    reserved.append(mmap.mmap(-1, gigabytes << 30, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS))
    return os.getpid()


reserved: list[mmap.mmap] = []


def test_a_worker_that_only_reserves_memory_stays() -> None:
    pool = Workers(1, 0)
    try:
        first = finished(pool, sleep, 0.0)
        assert finished(pool, reserve, 1) == first
        assert finished(pool, sleep, 0.0) == first
    finally:
        pool.close()


def finished(workers: Workers, function: Callable[..., int], *arguments: float) -> int:
    job = workers.submit(function, *arguments)
    wait_until(lambda: not job.is_pending)
    return int(job.result())


def test_large_questions_do_not_harm_the_next(tmp_path: Path) -> None:
    pool = Workers(1, session.memory_of_worker_mb(2))
    try:
        for place, name in enumerate(LARGE):
            asked = Question(scenario=name, changes={"solver.time_limit_s": 20.0})
            job = pool.submit(worker.compare, asked, tmp_path, tmp_path / str(place))
            wait_until(lambda job=job: not job.is_pending, 600.0)  # type: ignore[misc]
            answer = job.result()
            assert not any("ran out of memory" in str(note) for note in answer.notes), name
    finally:
        pool.close()


def test_a_worker_that_ends_is_replaced(workers: Workers) -> None:
    ended = workers.submit(end)
    wait_until(lambda: not ended.is_pending)
    with pytest.raises(InputError, match="the worker ran out of memory, or was ended"):
        ended.result()
    assert answer(workers) != os.getpid()


def test_workers_that_end_without_a_job_are_replaced(workers: Workers) -> None:
    for _ in range(3):
        first = answer(workers)
        os.kill(first, signal.SIGKILL)
        job = workers.submit(sleep, 0.0)  # before or after the pool sees it
        wait_until(lambda job=job: not job.is_pending)  # type: ignore[misc]
        if not job.future.done() or isinstance(job.future.exception(), BrokenProcessPool):
            with pytest.raises(InputError, match="ask again"):
                job.result()
        else:
            assert job.result() != first
    workers._pool._pool_manager.handle_broken_pool(BrokenProcessPool("All workers expired"))
    assert answer(workers) != os.getpid()


def test_workers_do_not_run_the_script_of_their_parent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / "page.py"
    script.write_text(f"open({str(tmp_path / 'ran')!r}, 'w').close()\nthis_name_is_unknown\n")
    main = ModuleType("__main__")
    main.__file__ = str(script)
    monkeypatch.setitem(sys.modules, "__main__", main)
    pool = Workers(1, 1024)
    try:
        assert answer(pool) != os.getpid()
        script.unlink()
        assert answer(pool) != os.getpid()
    finally:
        pool.close()
    assert not list(tmp_path.iterdir())


def test_a_visitor_takes_the_worker_of_a_spare_job() -> None:
    pool = Workers(1, 1024)
    try:
        spare = pool.submit_spare(sleep, 600.0)
        assert spare is not None
        wait_until(lambda: not spare.is_waiting)
        asked = pool.submit(sleep, 0.0)
        wait_until(lambda: not asked.is_pending)
        assert asked.result() > 0
        assert spare.future.cancelled()
        long = pool.submit(sleep, 600.0)
        assert pool.submit_spare(sleep, 0.0) is None, "a visitor comes first"
        long.cancel()
        wait_until(lambda: not long.is_pending)
        another = pool.submit_spare(sleep, 0.0)
        assert another is not None
        wait_until(lambda: not another.is_pending)
    finally:
        pool.close()
    assert pool.submit_spare(sleep, 0.0) is None, "a closed pool starts no workers"
