"""Jobs of worker processes: waiting, cancelled, too long, too large, abandoned by their session."""

from __future__ import annotations

import gc
import mmap
import os
import signal
import subprocess
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


@pytest.mark.parametrize("time_limit_s", [5.0, pytest.param(20.0, marks=pytest.mark.exhaustive)])
def test_large_questions_do_not_harm_the_next(tmp_path: Path, time_limit_s: float) -> None:
    """Each search fills what it may of a worker; the exhaustive tests give it four times the time."""
    pool = Workers(1, session.memory_of_worker_mb(2))
    try:
        for index, name in enumerate(LARGE):
            asked = Question(scenario=name, changes={"solver.time_limit_s": time_limit_s})
            job = pool.submit(worker.compare, asked, tmp_path, tmp_path / str(index))
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


# --- several visitors ---------------------------------------------------------------------


def spin(pid_file: str, seconds: float, rest_s: float = 0.0) -> int:
    """Compute, as a solver that looks at no signal, and write the number of the process first.

    rest_s  time without work between two steps, for a question that only has to last
    """
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT, signal.SIGTERM])
    Path(pid_file).write_text(str(os.getpid()))
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if rest_s:
            time.sleep(rest_s)
    return os.getpid()


def wait_for_process(pid_file: Path) -> int:
    wait_until(lambda: pid_file.is_file() and bool(pid_file.read_text()))
    return int(pid_file.read_text())


def is_running(process: int) -> bool:
    """Return whether a process runs; one that has ended but that nobody has waited for does not."""
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


@pytest.fixture(scope="module")
def pool() -> Iterator[Workers]:
    made = Workers(2, 1024)
    yield made
    made.close()


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_cancel_ends_the_process_of_one_visitor_and_no_other(pool: Workers, tmp_path: Path) -> None:
    current = pool.submit(spin, str(tmp_path / "mine"), 600.0)
    theirs = pool.submit(spin, str(tmp_path / "theirs"), 6.0, 0.05)
    process, other = wait_for_process(tmp_path / "mine"), wait_for_process(tmp_path / "theirs")
    current.cancel()
    wait_until(lambda: not is_running(process), 10.0)
    assert is_running(other), "its own question goes on"
    assert answer(pool) not in (process, os.getpid()), "a new question is answered"
    wait_until(lambda: not theirs.is_pending)
    assert theirs.result() == other


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_killed_worker_takes_its_own_question_only(pool: Workers, tmp_path: Path) -> None:
    current = pool.submit(spin, str(tmp_path / "mine"), 600.0)
    theirs = pool.submit(spin, str(tmp_path / "theirs"), 2.0, 0.05)
    os.kill(wait_for_process(tmp_path / "mine"), signal.SIGKILL)
    wait_until(lambda: not current.is_pending, 10.0)
    with pytest.raises(InputError, match="the worker ran out of memory, or was ended"):
        current.result()
    wait_until(lambda: not theirs.is_pending)
    assert theirs.result() == int((tmp_path / "theirs").read_text())
    assert answer(pool) > 0


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_many_visitors_share_a_few_processes(pool: Workers, tmp_path: Path) -> None:
    jobs = [pool.submit(spin, str(tmp_path / str(number)), 0.05) for number in range(40)]
    running = max(sum(not job.is_waiting and job.is_pending for job in jobs) for _ in range(50))
    assert running <= pool.count + 1  # pebble gives a worker its next task a moment before
    wait_until(lambda: not any(job.is_pending for job in jobs))
    assert len({job.result() for job in jobs}) <= pool.count


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_questions_are_answered_after_the_parent_of_the_workers_is_killed(
    pool: Workers, tmp_path: Path
) -> None:
    job = pool.submit(spin, str(tmp_path / "mine"), 600.0)
    worker_process = wait_for_process(tmp_path / "mine")
    server = int(Path(f"/proc/{worker_process}/stat").read_text().rpartition(")")[2].split()[1])
    assert server != os.getpid()
    os.kill(server, signal.SIGKILL)
    wait_until(lambda: not job.is_pending, 30.0)
    with pytest.raises(InputError, match="was ended"):
        job.result()
    wait_until(lambda: not is_running(worker_process), 10.0)
    assert answer(pool) > 0


SERVER = """
import sys, time
from planner_dashboard.jobs import Workers
from tests.dashboards.test_jobs import spin

if __name__ == "__main__":
    job = Workers(1, 1024).submit(spin, sys.argv[1], 600.0)
    time.sleep(600.0)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_no_question_outlives_a_dashboard_that_is_killed(tmp_path: Path) -> None:
    script = tmp_path / "server.py"
    script.write_text(SERVER)
    root = str(Path(__file__).parents[2])
    server = subprocess.Popen(
        [sys.executable, str(script), str(tmp_path / "pid")], env={**os.environ, "PYTHONPATH": root}
    )
    try:
        process = wait_for_process(tmp_path / "pid")
    finally:
        server.kill()
        server.wait()
    wait_until(lambda: not is_running(process), 10.0)
