"""The time of compiling is counted apart from the time of deciding."""

from __future__ import annotations

import pickle
import runpy
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numba
import numpy as np
import pytest
from numba import njit

from planner.contract.design import Decision
from planner.runs import compilation
from planner.runs.evaluation import evaluate
from planner.runs.run import Run
from tests.planner.runs.toy_system import Admitted, Link, admit, entry, toy

PROBLEM = Link(offered_mbps=2.0, capacity_mbps=1.0)


@pytest.fixture(autouse=True)
def new_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget which designs are ready, as a new process would."""
    monkeypatch.setattr(compilation, "_ready", set())


CLAIMED_S = 1_000.0  # what the design says of its own time, so that no clock decides a test


def compiled_design(dtype: Any = np.float64) -> Any:
    """Return a design with a kernel that no cache has; the sample problem is decided with floats."""

    @njit
    def total(values: Any) -> float:
        result = 0.0
        for value in values:
            result += value * value
        return result

    def decide(problem: Link) -> Decision[Admitted]:
        total(np.ones(3, dtype if problem is PROBLEM else np.float64))
        decision = admit(problem)
        return replace(decision, proof=replace(decision.proof, seconds=CLAIMED_S))

    return decide


def decided(decide: Any, *, sample: Any) -> Run:
    system = toy(sample=sample, decide=decide)
    return evaluate(system, PROBLEM, entry(system, "own"))


def sample() -> Link:
    return Link(1.0, 1.0)


def test_kernels_compile_before_the_clock_starts() -> None:
    decide = compiled_design()
    first, second = decided(decide, sample=sample), decided(decide, sample=sample)
    assert (first.proof.compile_s or 0.0) > 0.0
    assert first.proof.seconds == CLAIMED_S
    assert (second.proof.seconds, second.proof.compile_s) == (CLAIMED_S, 0.0)


def test_a_kernel_that_the_sample_misses_does_not_count_as_deciding() -> None:
    names: list[str] = []
    with compilation.observe_compiling(names.append):
        run = decided(compiled_design(np.int64), sample=sample)
    assert len(names) == 2, "the sample compiles for floats, the problem for whole numbers"
    assert run.proof.seconds is not None
    assert run.proof.compile_s is not None
    assert 0.0 < CLAIMED_S - run.proof.seconds <= run.proof.compile_s


def test_nested_compiling_is_counted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter([1.0, 4.0])
    monkeypatch.setattr(compilation.time, "perf_counter", lambda: next(times))
    stopwatch = compilation.Stopwatch()
    for is_start in (True, True, False, False):
        stopwatch.notify(SimpleNamespace(is_start=is_start))
    assert stopwatch.seconds == 3.0


def test_a_sample_that_a_design_refuses_does_not_stop_it() -> None:
    from planner.errors import InputError

    def decide(problem: Link) -> Decision[Admitted]:
        if problem is not PROBLEM:
            raise InputError("no such node")
        return admit(problem)

    assert decided(decide, sample=sample).plan is not None


def test_systems_without_kernels_compile_nothing() -> None:
    assert decided(admit, sample=None).proof.compile_s == 0.0


KERNEL = """
import numba

@numba.njit(cache=True)
def double(x):
    return 2 * x
"""


@pytest.mark.parametrize("content", [b"cplanner.runs.run\nRemoved\n.", b"", b"\x80\x04garbage"])
@pytest.mark.parametrize("suffix", ["nbi", "nbc"])
def test_a_cache_that_cannot_be_read_is_made_anew(tmp_path: Path, content: bytes, suffix: str) -> None:
    """After an upgrade in place, a cache may name a class that is gone."""
    path = tmp_path / "kernels.py"
    path.write_text(KERNEL)
    assert runpy.run_path(str(path))["double"](3) == 6
    (cache,) = (tmp_path / "__pycache__").glob(f"*.{suffix}")
    head = pickle.dumps(numba.__version__) if suffix == "nbi" else b""
    cache.write_bytes(head + content)
    double = runpy.run_path(str(path))["double"]
    assert compilation.call_with_fresh_kernels(lambda: double(3)) == 6
    assert runpy.run_path(str(path))["double"](3) == 6


def test_other_errors_are_raised() -> None:
    with pytest.raises(AttributeError, match="no attribute 'gone'"):
        compilation.call_with_fresh_kernels(lambda: np.gone)  # type: ignore[attr-defined]
