"""Pool of workers: every run ends in one record, and only runs that kill their workers fail."""

# ruff: noqa: ARG002, ARG005 - a fake takes what the real one takes
from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.store.record import Record
from planner.sweeps import dask_pool
from planner.sweeps.dask_pool import ClusterLost, DaskPool
from planner.sweeps.run_request import Request


@pytest.fixture(scope="module")
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    yield loop
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


def request(name: str, problem: str = "p") -> Request:
    return Request(
        scenario="s",
        folder=".",
        system="traffic",
        problem={},
        label=name,
        design={},
        solver={},
        problem_key=problem,
        versions="",
    )


def record(request: Request, status: str = "optimal") -> Record:
    return Record(
        digest=request.label,
        scenario="s",
        label=request.label,
        system="traffic",
        design="d",
        mechanism="none",
        status=status,
        exit_code=0,
        wall_s=0.03,
    )


@dataclass(eq=False)
class FakeFuture:
    key: str
    requests: tuple[Request, ...]
    worker: str
    status: str = "pending"
    callbacks: list[Callable[[Any], None]] = field(default_factory=list)

    def add_done_callback(self, callback: Callable[[Any], None]) -> None:
        self.callbacks.append(callback)

    def cancel(self) -> None:
        self.end("cancelled")

    def end(self, status: str) -> None:
        if self.status == "pending":
            self.status = status
            for callback in self.callbacks:
                callback(self)


class FakeClient:
    """A cluster whose clock ticks whenever somebody looks at it.

    fates   what becomes of workers, tick by tick: 0 and 1 kill that worker, others nobody
    deadly  labels of runs that kill whoever makes them
    """

    def __init__(self, loop: Any, fates: list[int], deadly: set[str]) -> None:
        self.loop = SimpleNamespace(asyncio_loop=loop)
        self.status, self.scheduler = "running", None
        self.fates, self.deadly = list(fates), deadly
        self.workers = ["w0", "w1"]
        self.born = 2
        self.futures: list[FakeFuture] = []
        self.made: Counter[str] = Counter()
        self.most_at_once = 0

    def submit(self, function: Any, requests: Any, *, key: str, workers: list[str], pure: bool) -> FakeFuture:
        future = FakeFuture(key=key, requests=requests, worker=workers[0])
        self.futures.append(future)
        at_once = Counter(each.worker for each in self.futures if each.status == "pending")
        self.most_at_once = max(self.most_at_once, *at_once.values())
        return future

    def scheduler_info(self, n_workers: int) -> dict[str, Any]:
        self._tick()
        return {"workers": dict.fromkeys(self.workers)}

    async def _gathered(self, futures: list[FakeFuture]) -> list[list[Record]]:
        return [
            [record(each) for each in future.requests] for future in futures if future.worker in self.workers
        ]

    def gather(self, futures: list[FakeFuture], *, errors: str, asynchronous: bool) -> Any:
        return self._gathered(futures)

    def _tick(self) -> None:
        fate = self.fates.pop(0) if self.fates else 9
        if fate < len(self.workers):
            self._die(self.workers[fate])
        for worker in list(self.workers):
            mine = [each for each in self.futures if each.worker == worker and each.status == "pending"]
            if not mine:
                continue
            if any(each.label in self.deadly for each in mine[0].requests):
                self._die(worker)
                continue
            self.made.update(each.label for each in mine[0].requests)
            mine[0].end("finished")

    def _die(self, worker: str) -> None:
        self.workers.remove(worker)
        self.workers.append(f"w{self.born}")
        self.born += 1


def run_in_pool(client: FakeClient, groups: list[list[Request]], **given: Any) -> list[Record]:
    kept: list[Record] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dask_pool, "POLL_S", 0.001)
        patch.setattr(dask_pool, "WORKER_CHECK_S", 0.0)
        patch.setattr(
            dask_pool, "failure_record", lambda request, message, exit_code: record(request, "failed")
        )
        DaskPool(client).run(groups, kept.extend, **given)  # type: ignore[arg-type]
    return kept


@given(
    sizes=st.lists(st.integers(0, 6), max_size=5),
    fates=st.lists(st.integers(0, 6), max_size=30),
    deadly=st.sets(st.integers(0, 20), max_size=2),
)
def test_every_run_ends_as_one_record(
    loop: asyncio.AbstractEventLoop, sizes: list[int], fates: list[int], deadly: set[int]
) -> None:
    numbers = iter(range(100))
    groups = [
        [request(str(next(numbers)), f"p{group}") for _ in range(size)] for group, size in enumerate(sizes)
    ]
    client = FakeClient(loop, fates, {str(number) for number in deadly})
    kept = run_in_pool(client, groups)
    labels = [each.label for group in groups for each in group]
    assert sorted(each.label for each in kept) == sorted(labels)
    failed = {each.label for each in kept if each.status == "failed"}
    assert client.deadly & set(labels) <= failed
    if not fates:
        assert failed == client.deadly & set(labels), "a run failed that killed no worker"
    assert client.most_at_once <= dask_pool.BATCHES_PER_WORKER


def test_runs_that_share_a_problem_go_to_one_worker(loop: asyncio.AbstractEventLoop) -> None:
    groups = [[request(f"{group}.{number}", f"p{group}") for number in range(10)] for group in range(2)]
    client = FakeClient(loop, [], set())
    run_in_pool(client, groups)
    first = [each for each in client.futures[: 2 * dask_pool.BATCHES_PER_WORKER] for _ in each.requests]
    assert len({(each.worker, run.problem_key) for each in first for run in each.requests}) == 2


def test_short_runs_are_batched(loop: asyncio.AbstractEventLoop) -> None:
    client = FakeClient(loop, [], set())
    run_in_pool(client, [[request(str(number))] for number in range(100)])
    sizes = [len(each.requests) for each in client.futures]
    assert sizes[0] == 1, "the duration of runs is unknown yet"
    assert max(sizes) == int(dask_pool.BATCH_S / 0.03)


def test_runs_that_are_no_longer_needed_are_skipped(loop: asyncio.AbstractEventLoop) -> None:
    client = FakeClient(loop, [], set())
    requests = [request(str(number)) for number in range(10)]
    kept = run_in_pool(client, [requests], is_needed=lambda one: int(one.label) % 2 == 0)
    assert sorted(each.label for each in kept) == ["0", "2", "4", "6", "8"]


def test_after_a_stop_nothing_more_is_submitted(loop: asyncio.AbstractEventLoop) -> None:
    client = FakeClient(loop, [], set())
    requests = [request(str(number)) for number in range(50)]
    kept = run_in_pool(client, [requests], is_stopping=lambda: sum(client.made.values()) >= 5)
    submitted = [run.label for each in client.futures for run in each.requests]
    assert sorted(each.label for each in kept) == sorted(submitted), "submitted runs are stored"
    assert 5 <= len(kept) < 50


def test_a_cluster_without_workers_is_lost(
    loop: asyncio.AbstractEventLoop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dask_pool, "NO_WORKER_LIMIT_S", 0.05)
    client = FakeClient(loop, [], set())
    client.workers = []
    with pytest.raises(ClusterLost, match="had no worker for 0 s: start one with: dask worker"):
        run_in_pool(client, [[request("a")]])


def test_a_lost_connection_is_one_clear_line(loop: asyncio.AbstractEventLoop) -> None:
    client = FakeClient(loop, [], set())
    client.status = "closed"
    with pytest.raises(ClusterLost, match="to the cluster was lost; every run stored before is kept"):
        run_in_pool(client, [[request("a")]])
