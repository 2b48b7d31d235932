"""Kernels that Python may run: the same results as compiled, call by call, on the samples of all systems."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import planner
from planner.compiled import in_python_by, inner, njit, run_small_in_python
from planner.errors import PlannerError
from planner.kernels import COMPILE_S_PER_BYTE, Kernel, kernels
from planner.options import Options
from planner.scenarios.catalogue import find_system, system_names
from planner.testing.cases import Runs
from planner.testing.kernels import compare_with_python, is_same, name_of
from tests.planner.testing.quick_parameters import QUICK_PARAMETERS


def make_add_squares() -> Any:
    """Return a kernel that Python may run, not compiled yet."""

    @run_small_in_python(max_elements=10)
    @njit()
    def add_squares(values: Any, total: Any) -> float:
        for value in values:
            total[0] += value * value
        return float(total[0])

    return add_squares


@run_small_in_python(max_elements=1_000)
@njit()
def sum_pairwise(values: Any) -> float:
    return float(values.sum())  # numpy adds pairs, compiled code one after another


@inner
def add_one(value: float) -> float:
    return value + 1.0


@njit()
def add_two(value: float) -> float:
    return add_one(add_one(value))


def is_compiled(kernel: Any) -> bool:
    return "dispatcher" in vars(kernel)


def test_python_runs_calls_until_one_is_large() -> None:
    add_squares = make_add_squares()
    assert isinstance(add_squares, Kernel)
    assert add_squares(np.arange(4.0), np.zeros(1)) == 14
    assert add_squares(np.arange(5.0), np.zeros(1)) == 30
    assert not is_compiled(add_squares)
    assert 0 < add_squares.python_s < add_squares.compile_s
    assert add_squares(np.arange(12.0), np.zeros(1)) == 506
    assert is_compiled(add_squares)
    assert add_squares.is_compiled


def test_python_runs_small_calls_until_they_have_taken_long() -> None:
    add_squares = make_add_squares()
    add_squares.python_s = add_squares.compile_s
    assert add_squares(np.arange(4.0), np.zeros(1)) == 14
    assert not is_compiled(add_squares)
    assert add_squares(np.arange(4.0), np.zeros(1)) == 14
    assert is_compiled(add_squares)


def test_python_runs_small_calls_no_longer_than_a_kernel_allows() -> None:
    limited = run_small_in_python(max_elements=10, max_s=1.0)(make_add_squares())
    assert limited.compile_s < 1.0
    limited = run_small_in_python(max_elements=10, max_s=1e-9)(make_add_squares())
    assert limited(np.arange(4.0), np.zeros(1)) == 14
    assert limited.is_compiled
    assert not is_compiled(limited)  # until its next call


def test_python_calls_the_form_of_a_kernel_that_has_one() -> None:
    calls = []

    def by_arrays(values: Any) -> float:
        calls.append(len(values))
        return float((values * values).sum())

    @in_python_by(by_arrays)
    @njit()
    def square(values: Any) -> float:
        total = 0.0
        for value in values:
            total += value * value
        return total

    @run_small_in_python(max_elements=10)
    @njit()
    def square_twice(values: Any) -> float:
        return square(values) + square(values)

    assert square_twice(np.arange(3.0)) == 10
    assert calls == [3, 3]
    assert square_twice(np.arange(20.0)) == 2 * (np.arange(20.0) ** 2).sum()
    assert calls == [3, 3]


def test_compiling_takes_longer_with_the_kernels_that_one_calls() -> None:
    alone: Any = add_one
    calling: Any = add_two
    lengths = [len(kernel.py_func.__code__.co_code) for kernel in (alone, calling)]
    assert alone.compile_s == pytest.approx(COMPILE_S_PER_BYTE * lengths[0])
    assert calling.compile_s == pytest.approx(COMPILE_S_PER_BYTE * sum(lengths))


def test_other_bits_are_found() -> None:
    values, add_squares = np.random.default_rng(1).normal(size=999), make_add_squares()
    with compare_with_python() as counts:
        assert add_squares(np.arange(4.0), np.zeros(1)) == 14
        with pytest.raises(AssertionError, match="sum_pairwise"):
            sum_pairwise(values)
    assert list(counts.values()) == [1]
    with compare_with_python() as outer:
        with compare_with_python():
            add_squares(np.arange(4.0), np.zeros(1))
        add_squares(np.arange(4.0), np.zeros(1))
    assert list(outer.values()) == [1]
    assert is_same((1, 2.0, None), (np.int64(1), np.float64(2.0), None))
    assert not is_same(1.0, 1)
    assert not is_same(0.1 + 0.2, 0.3)


LONG = (
    "analytics",
    "brokering",
    "circuitflows",
    "coflows",
    "fairshare",
    "flowtables",
    "geostore",
    "livevideo",
    "traffic",
    "updates",
)
"""Systems whose kernels take long to compile or to run in Python: the exhaustive tests compare them."""
OTHER_PROBLEMS = {"consolidation": {"preset": "present", "machines": 40}}
"""Generated in place of samples whose rules keep them from the kernels."""


@pytest.mark.slow(minutes=0.5)
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.exhaustive] if name in LONG else []) for name in system_names()],
)
@pytest.mark.parametrize(
    "max_calls", [3, pytest.param(None, marks=pytest.mark.exhaustive)], ids=["few calls", "all calls"]
)
def test_python_and_compiled_kernels_of_our_systems_agree(name: str, max_calls: int | None) -> None:
    system = find_system(name)
    assert system.problem.sample is not None
    problem = planner.generate(name, **OTHER_PROBLEMS[name]) if name in OTHER_PROBLEMS else None
    runs = Runs(system, lambda: problem or system.problem.sample(), QUICK_PARAMETERS.get(name, {}), Options())
    with compare_with_python(max_calls=max_calls) as counts:
        for design in system.designs:
            with contextlib.suppress(PlannerError):  # of designs that the sample does not suit
                runs.fresh(design.name)
        package = f"planner_models.{name}."
        if system.studies.simulation is not None and not any(key.startswith(package) for key in counts):
            for design in system.designs:
                with contextlib.suppress(PlannerError):  # of designs that control no simulation
                    planner.simulate(problem or system.problem.sample(), designs=[design.name])
                    break
    if any(kernel.max_elements and name_of(kernel).startswith(package) for kernel in kernels):
        assert any(kernel.startswith(package) for kernel in counts)


@pytest.mark.slow(minutes=0.2)
@pytest.mark.parametrize(
    "question",
    [
        "planner.compare('updates/diamond', designs=['ordered', 'two_phase_changed'])",
        "planner.failures('traffic/abilene', kinds='link', design='ecmp')",
    ],
)
def test_small_problems_compile_nothing(question: str) -> None:
    code = f"import sys, planner\n{question}\nassert 'numba' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=200)
