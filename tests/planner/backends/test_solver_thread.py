"""Solvers run in a thread of their own, and Ctrl-C stops them."""

from __future__ import annotations

import math
import subprocess
import sys
import threading

import pytest

from planner.backends.solver_thread import run_in_thread


def test_the_result_comes_back_from_another_thread() -> None:
    assert run_in_thread(threading.get_ident) != threading.get_ident()


def test_a_failure_is_raised_here() -> None:
    def work() -> None:
        raise RuntimeError("inside")

    with pytest.raises(RuntimeError, match="inside"):
        run_in_thread(work)


def test_a_solver_that_overruns_its_limit_is_cancelled_and_its_result_comes_back() -> None:
    """As where the system's clock, which solvers read, is set back by an hour."""
    cancelled = threading.Event()
    work = lambda: cancelled.wait(30.0) and "incumbent"  # noqa: E731
    assert run_in_thread(work, cancel=cancelled.set, time_limit_s=0.05, overrun_s=0.0) == "incumbent"


def test_a_solver_that_ends_in_time_is_not_cancelled() -> None:
    cancelled = threading.Event()
    for limit_s in (10.0, math.inf, None):
        assert run_in_thread(lambda: 1, cancel=cancelled.set, time_limit_s=limit_s) == 1
    assert not cancelled.is_set()


INTERRUPTED = """
import os, signal, sys, threading
import numpy as np, scipy.sparse as sp
from planner.backends import solve
from planner.backends.linear_program import LinearProgram, Rows
from planner.options import Options

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may start tests with interrupts ignored
rng = np.random.default_rng(5)
weights = rng.integers(0, 100, (6, 50)).astype(float)
half = weights.sum(axis=1) // 2
model = LinearProgram.build(
    cost=np.r_[np.zeros(50), np.ones(12)],
    rows=[Rows("r", sp.csr_array(np.hstack([weights, np.eye(6), -np.eye(6)])), lower=half, upper=half)],
    upper=np.r_[np.ones(50), np.full(12, 5000.0)],
    integer=True,
)
solve(model, Options(backend=sys.argv[1], time_limit_s=0.1))  # imports
threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    solve(model, Options(backend=sys.argv[1], time_limit_s=120.0))
except KeyboardInterrupt:
    sys.exit(130)
"""


@pytest.mark.parametrize("backend", ["highs", "ortools:cp-sat", "ortools:scip", "scip"])
def test_an_interrupt_ends_the_solve(backend: str) -> None:
    result = subprocess.run([sys.executable, "-c", INTERRUPTED, backend], timeout=60, check=False)
    assert result.returncode == 130
