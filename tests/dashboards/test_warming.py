"""Kernels that workers have ready before a visitor asks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from planner import kernels
from planner_dashboard import warming
from planner_dashboard.question import FIRST_SCENARIO


class Job:
    """A job that is done, or was cancelled."""

    is_pending = False

    def __init__(self, is_cancelled: bool) -> None:
        self.future = self
        self.is_cancelled = is_cancelled

    def cancelled(self) -> bool:
        return self.is_cancelled


class Workers:
    """Two workers that keep what they are asked to do; every fifth job is cancelled."""

    count, is_closed = 2, False

    def __init__(self) -> None:
        self.asked: list[tuple[str, ...]] = []
        self.done: list[tuple[str, ...]] = []

    def submit_spare(self, function: Callable[..., None], *arguments: str) -> Any:
        call = (function.__name__, *arguments)
        self.asked.append(call)
        is_cancelled = len(self.asked) % 5 == 0
        self.done += [] if is_cancelled else [call]
        return Job(is_cancelled)


def test_the_first_page_comes_first_and_every_worker_loads_every_design(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(warming, "PAUSE_S", 0.0)
    workers = Workers()
    warming.warm_workers(workers)  # type: ignore[arg-type]
    assert workers.asked[0] == ("answer_scenario", FIRST_SCENARIO)
    assert workers.done[3][0] == "find_upgrade"
    systems = list(dict.fromkeys(call[1] for call in workers.done if call[0] == "compile_design"))
    assert systems[0] == FIRST_SCENARIO.partition("/")[0]
    assert len(systems) > 5
    assert all(workers.done.count(call) >= 3 for call in workers.done), "one compiles, and two load"


@pytest.mark.slow
def test_warming_reaches_the_kernels_that_start_from_a_plan() -> None:
    """Each is compiled, or has run in Python until then."""
    warming.find_upgrade(FIRST_SCENARIO)
    modules = {kernel.__module__ for kernel in kernels.kernels if _has_run(kernel)}
    assert {"planner_models.flows.previous_trees", "planner_models.flows.path_pool"} <= modules


def _has_run(kernel: kernels.Kernel) -> bool:
    return kernel.python_s > 0 or bool(vars(kernel).get("dispatcher") and kernel.dispatcher.signatures)
