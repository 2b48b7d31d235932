"""The time of compiling is counted apart from the time of deciding."""

from __future__ import annotations

import time
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numba import njit

from planner import clock, compile_events
from planner.contract.design import Decision
from planner.errors import InputError
from planner.options import Options
from planner.runs import compilation
from planner.runs.evaluation import compile_ahead, evaluate
from planner.runs.run import Run
from tests.planner.runs.toy_system import Admitted, Link, admit, entry, toy

PROBLEM = Link(offered_mbps=2.0, capacity_mbps=1.0)


@pytest.fixture(autouse=True)
def new_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget which designs are ready, as a new process would."""
    monkeypatch.setattr(compilation, "_ready", set())


CLAIMED_S = 1_000.0  # what the design says of its own time, so that no clock decides a test


def compiled_design() -> Any:
    """Return a design with a kernel that no cache has."""

    @njit
    def total(values: Any) -> float:
        result = 0.0
        for value in values:
            result += value * value
        return result

    def decide(problem: Link) -> Decision[Admitted]:
        total(np.ones(3))
        decision = admit(problem)
        return replace(decision, proof=replace(decision.proof, seconds=CLAIMED_S))

    return decide


def decided(decide: Any, *, sample: Any = None) -> Run:
    system = toy(sample=sample, decide=decide)
    return evaluate(system, PROBLEM, entry(system, "own"))


def test_compiling_is_not_deciding() -> None:
    """What a design says of its own seconds stands: the clock that it reads stood still."""
    decide = compiled_design()
    names: list[str] = []
    with compile_events.observe_compiling(names.append):
        first, second = decided(decide), decided(decide)
    assert [name.rpartition(".")[2] for name in names] == ["total"]
    assert (first.proof.compile_s or 0.0) > 0.0
    assert (first.proof.seconds, second.proof.seconds) == (CLAIMED_S, CLAIMED_S)
    assert second.proof.compile_s == 0.0


@pytest.mark.parametrize("counts_cpu", [False, True])
def test_a_deadline_is_the_same_with_an_empty_cache(counts_cpu: bool) -> None:
    """The seconds of the clock and those of compiling are together at most the seconds that pass."""

    @njit
    def total(values: Any) -> float:
        result = 0.0
        for value in np.sort(values):
            result += value
        return result

    compile_events.listen()
    mode = clock.count_cpu_seconds() if counts_cpu else nullcontext()
    with mode:
        start, paused_s, begin = time.perf_counter(), clock.paused_s(), clock.now()
        total(np.ones(3))
        own_s, compile_s = clock.now() - begin, clock.paused_s() - paused_s
    elapsed_s = time.perf_counter() - start
    assert compile_s > 0.0
    assert own_s >= 0.0
    if not counts_cpu:
        assert own_s + compile_s <= elapsed_s


def test_pauses_nest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clock, "_pauses", clock._Pauses())
    readings = iter([1.0, 4.0, 10.0])
    monkeypatch.setattr(clock.time, "perf_counter", lambda: next(readings))
    clock.pause()
    clock.pause()
    assert clock.wall_now() == 1.0, "it stands still"
    clock.resume()
    assert clock.wall_now() == 1.0
    clock.resume()
    assert clock.paused_s() == 3.0
    assert clock.wall_now() == 7.0


def test_a_sample_that_a_design_refuses_does_not_stop_compiling_ahead() -> None:
    def decide(problem: Link) -> Decision[Admitted]:
        raise InputError("no such node")

    system = toy(sample=lambda: Link(1.0, 1.0), decide=decide)
    assert compile_ahead(system, entry(system, "own"), Options()) == 0.0


def test_systems_without_kernels_compile_nothing() -> None:
    assert decided(admit).proof.compile_s == 0.0
