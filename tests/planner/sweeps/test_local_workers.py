"""Local workers: calls reach them over no port, dead ones are replaced, and all end with their parent."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import CancelledError
from pathlib import Path

import numpy as np
import pytest

from planner.errors import InputError
from planner.sweeps.local_workers import LocalWorkers, machine_memory, memory_limit, start_local_workers
from planner.sweeps.workers import MAX_WORKER_DEATHS, ClusterLost, WorkerDied, map_shares
from tests import sockets

LIMIT_S = 60.0


@pytest.fixture(scope="module")
def workers() -> Iterator[LocalWorkers]:
    with start_local_workers(2) as pool:
        yield pool


def test_results_and_errors_come_back(workers: LocalWorkers) -> None:
    assert workers.submit(divmod, 7, 2).result(LIMIT_S) == (3, 1)
    with pytest.raises(ZeroDivisionError, match="division"):
        workers.submit(divmod, 7, 0).result(LIMIT_S)
    with pytest.raises(InputError, match="no JSON"):  # made again from its text
        workers.submit(exec, "from planner.errors import InputError; raise InputError('no JSON')").result(
            LIMIT_S
        )


def test_an_error_that_cannot_be_sent_comes_as_text(workers: LocalWorkers) -> None:
    code = "class Odd(Exception):\n    pass\nraise Odd('strange')"
    with pytest.raises(Exception, match="Odd: strange"):
        workers.submit(exec, code).result(LIMIT_S)


def test_a_shared_value_is_an_argument_on_each_worker(workers: LocalWorkers) -> None:
    shared = np.arange(5.0)
    results = dict(map_shares(workers, np.multiply, shared, [1.0, 2.0, 3.0]))
    for index, factor in enumerate((1.0, 2.0, 3.0)):
        np.testing.assert_array_equal(results[index], shared * factor)


def test_a_call_that_waits_can_be_cancelled() -> None:
    with start_local_workers(1) as pool:
        pool.submit(time.sleep, 0.3)
        second = pool.submit(time.sleep, LIMIT_S)
        assert second.cancel()
        with pytest.raises(CancelledError):
            second.result(LIMIT_S)
        assert pool.submit(abs, -1).result(LIMIT_S) == 1


def test_a_dead_worker_is_replaced_under_another_name(workers: LocalWorkers) -> None:
    before = workers.names()
    running = workers.submit(os._exit, 3, worker=before[0])
    waiting = workers.submit(abs, -2, worker=before[0])
    with pytest.raises(WorkerDied) as died:
        running.result(LIMIT_S)
    assert died.value.deaths == 1
    with pytest.raises(WorkerDied) as spared:
        waiting.result(LIMIT_S)
    assert spared.value.deaths == 0, "the call that only waited is not suspected"
    after = workers.names()
    assert after[1] == before[1]
    assert after[0] != before[0]
    assert workers.submit(abs, -2, worker=after[0]).result(LIMIT_S) == 2
    with pytest.raises(WorkerDied):
        workers.submit(abs, -2, worker=before[0]).result(LIMIT_S)


@pytest.mark.slow
def test_a_call_of_any_worker_is_repeated_until_it_has_killed_too_many(
    workers: LocalWorkers, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    code = f"open({str(log)!r}, 'a').write('x'); import os; os._exit(1)"
    with pytest.raises(WorkerDied) as died:
        workers.submit(exec, code).result(LIMIT_S)
    assert died.value.deaths == MAX_WORKER_DEATHS + 1 == len(log.read_text())


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="the system does not say what is resident")
def test_a_worker_that_needs_too_much_memory_is_ended() -> None:
    with start_local_workers(1, memory="600MB") as pool:
        (name,) = pool.names()
        code = "import time; kept = bytearray(b'x') * 900_000_000; time.sleep(60)"
        with pytest.raises(WorkerDied, match=r"GB of memory, at most 0\.60"):
            pool.submit(exec, code, worker=name).result(LIMIT_S)
        assert pool.submit(abs, -1).result(LIMIT_S) == 1


@pytest.mark.parametrize(
    ("text", "limit"),
    [("4GB", 4_000_000_000), ("512MiB", 512 << 20), ("1.5 gib", 3 << 29), ("100", 100), ("0", None)],
)
def test_a_memory_limit_is_a_size(text: str, limit: int | None) -> None:
    assert memory_limit(text, 3) == limit


def test_the_memory_of_the_machine_is_shared() -> None:
    total = machine_memory()
    assert total is not None
    assert memory_limit("auto", 4) == total // 4


@pytest.mark.parametrize("text", ["much", "-1GB", "4 XB", "1e9", "", "9" * 5000])
def test_a_memory_limit_that_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="must be such as 4GB, 512MiB or auto"):
        memory_limit(text, 1)


def test_workers_that_do_not_start_are_one_clear_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with start_local_workers(1) as pool:
        with pytest.raises(ClusterLost, match="do not start: one ended with code 1"):
            pool.submit(abs, -1).result(LIMIT_S)
        with pytest.raises(ClusterLost):
            pool.names()


@pytest.mark.skipif(not sockets.IS_KNOWN, reason="the system does not list sockets there")
def test_no_process_of_the_pool_listens(workers: LocalWorkers) -> None:
    assert workers.submit(abs, -1).result(LIMIT_S) == 1
    processes = {os.getpid()} | {
        worker.process.pid for worker in workers._workers if worker.process is not None
    }
    assert len(processes) == 3
    assert sockets.listening_sockets(processes) == set()


PARENT = """
import signal, sys, time
from planner.sweeps.local_workers import start_local_workers
signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored where the tests run in the background
with start_local_workers(2) as pool:
    for name in pool.names():
        print(pool.submit(__import__("os").getpid, worker=name).result(60), flush=True)
        pool.submit(time.sleep, 600, worker=name)
    while True:  # a signal just before a long sleep would not end it
        time.sleep(0.1)
"""


def is_running(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="the system lists no processes there")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_busy_workers_end_with_their_parent(number: signal.Signals) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", PARENT], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as parent:
        assert parent.stdout is not None
        try:
            processes = [int(parent.stdout.readline()) for _ in range(2)]
            assert all(is_running(process) for process in processes)
            parent.send_signal(number)
            parent.wait(LIMIT_S)
        finally:
            parent.kill()
    until = time.monotonic() + 10
    while any(is_running(process) for process in processes) and time.monotonic() < until:
        time.sleep(0.05)
    assert not any(is_running(process) for process in processes)
