"""Pool of workers: every run ends in one record, and only runs that kill their workers fail."""

# ruff: noqa: ARG002, ARG005 - a fake takes what the real one takes
from __future__ import annotations

from collections import Counter
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.store.record import Record
from planner.sweeps import run_pool
from planner.sweeps.run_pool import RunPool
from planner.sweeps.run_request import Request
from planner.sweeps.workers import ClusterLost, WorkerDied


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
class FakeCall:
    requests: tuple[Request, ...]
    worker: str
    future: Future[Any] = field(default_factory=Future)

    @property
    def is_pending(self) -> bool:
        return not self.future.done()


class FakeWorkers:
    """Workers whose clock ticks whenever somebody asks for their names.

    fates     what becomes of workers, tick by tick: 0 and 1 kill that worker, others nobody
    deadly    labels of runs that kill whoever makes them
    is_local  whether the calls of a dead worker end with WorkerDied, or never
    """

    def __init__(self, fates: list[int], deadly: set[str], *, is_local: bool = False) -> None:
        self.fates, self.deadly, self.is_local = list(fates), deadly, is_local
        self.workers = ["w0", "w1"]
        self.born = 2
        self.calls: list[FakeCall] = []
        self.made: Counter[str] = Counter()
        self.most_at_once = 0

    def share(self, value: Any) -> Any:
        return value

    def submit(self, function: Any, *arguments: Any, worker: str | None = None) -> Future[Any]:
        assert worker is not None
        call = FakeCall(arguments[0], worker)
        self.calls.append(call)
        at_once = Counter(each.worker for each in self.calls if each.is_pending)
        self.most_at_once = max(self.most_at_once, *at_once.values())
        return call.future

    def names(self) -> tuple[str, ...]:
        fate = self.fates.pop(0) if self.fates else 9
        if fate < len(self.workers):
            self._die(self.workers[fate])
        for worker in list(self.workers):
            current = [each for each in self.calls if each.worker == worker and each.is_pending]
            if not current:
                continue
            if any(each.label in self.deadly for each in current[0].requests):
                self._die(worker)
                continue
            self.made.update(each.label for each in current[0].requests)
            current[0].future.set_result([record(each) for each in current[0].requests])
        return tuple(self.workers)

    def _die(self, worker: str) -> None:
        self.workers.remove(worker)
        self.workers.append(f"w{self.born}")
        self.born += 1
        if self.is_local:
            current = [each for each in self.calls if each.worker == worker and each.is_pending]
            for position, call in enumerate(current):
                call.future.set_exception(WorkerDied("a worker died", deaths=0 if position else 1))


def run_in_pool(workers: FakeWorkers, groups: list[list[Request]], **given: Any) -> list[Record]:
    selected: list[Record] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run_pool, "POLL_S", 0.001)
        patch.setattr(run_pool, "WORKER_CHECK_S", 0.0)
        patch.setattr(
            run_pool, "failure_record", lambda request, message, exit_code: record(request, "failed")
        )
        RunPool(workers).run(groups, selected.extend, **given)
    return selected


@given(
    sizes=st.lists(st.integers(0, 6), max_size=5),
    fates=st.lists(st.integers(0, 6), max_size=30),
    deadly=st.sets(st.integers(0, 20), max_size=2),
    is_local=st.booleans(),
)
def test_every_run_ends_as_one_record(
    sizes: list[int], fates: list[int], deadly: set[int], is_local: bool
) -> None:
    numbers = iter(range(100))
    groups = [
        [request(str(next(numbers)), f"p{group}") for _ in range(size)] for group, size in enumerate(sizes)
    ]
    workers = FakeWorkers(fates, {str(number) for number in deadly}, is_local=is_local)
    selected = run_in_pool(workers, groups)
    labels = [each.label for group in groups for each in group]
    assert sorted(each.label for each in selected) == sorted(labels)
    failed = {each.label for each in selected if each.status == "failed"}
    assert workers.deadly & set(labels) <= failed
    if not fates:
        assert failed == workers.deadly & set(labels), "a run failed that killed no worker"
    assert workers.most_at_once <= run_pool.BATCHES_PER_WORKER


def test_runs_that_share_a_problem_go_to_one_worker() -> None:
    groups = [[request(f"{group}.{number}", f"p{group}") for number in range(10)] for group in range(2)]
    workers = FakeWorkers([], set())
    run_in_pool(workers, groups)
    first = [each for each in workers.calls[: 2 * run_pool.BATCHES_PER_WORKER] for _ in each.requests]
    assert len({(each.worker, run.problem_key) for each in first for run in each.requests}) == 2


def test_short_runs_are_batched() -> None:
    workers = FakeWorkers([], set())
    run_in_pool(workers, [[request(str(number))] for number in range(100)])
    sizes = [len(each.requests) for each in workers.calls]
    assert sizes[0] == 1, "the duration of runs is unknown yet"
    assert max(sizes) == int(run_pool.BATCH_S / 0.03)


def test_runs_that_are_no_longer_needed_are_skipped() -> None:
    workers = FakeWorkers([], set())
    requests = [request(str(number)) for number in range(10)]
    selected = run_in_pool(workers, [requests], is_needed=lambda item: int(item.label) % 2 == 0)
    assert sorted(each.label for each in selected) == ["0", "2", "4", "6", "8"]


def test_after_a_stop_nothing_more_is_submitted() -> None:
    workers = FakeWorkers([], set())
    requests = [request(str(number)) for number in range(50)]
    selected = run_in_pool(workers, [requests], is_stopping=lambda: sum(workers.made.values()) >= 5)
    submitted = [run.label for each in workers.calls for run in each.requests]
    assert sorted(each.label for each in selected) == sorted(submitted), "submitted runs are stored"
    assert 5 <= len(selected) < 50


def test_a_cluster_without_workers_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_pool, "NO_WORKER_LIMIT_S", 0.05)
    workers = FakeWorkers([], set())
    workers.workers = []
    with pytest.raises(ClusterLost, match="had no worker for 0 s: start one with: dask worker"):
        run_in_pool(workers, [[request("a")]])
