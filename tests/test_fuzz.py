"""Hostile files, scenarios, plans, words, stores and addresses: no crash, no hang, no escape.

PLANNER_FUZZ_CASES sets the number of cases of the long test; `make bounds-check` runs it with every index of
the compiled kernels checked.
"""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Iterable
from concurrent import futures

import pytest
from pebble import ProcessExpired, ProcessPool

from tests.fuzzing.running import FIRST_CRAFTED, run_case

CASES = int(os.environ.get("PLANNER_FUZZ_CASES") or 10_000)
FAST_CASES = 25
FAST_CRAFTED = 10
FORMER_FAULTS = (1895, 9132)
"""Cases that once ended in an internal error.

A damaged schema of a store whose message is no text; a Parquet column of lists in a table of many rows.
"""
LIMIT_S = float(os.environ.get("PLANNER_FUZZ_LIMIT_S") or 120)
"""Longest time of a case on a busy machine; a case takes well below a second."""


def faults_of(cases: Iterable[int], workers: int) -> list[str]:
    """Run cases in processes that are replaced where one crashes or hangs; return the faults."""
    numbers = list(cases)
    faults: list[str] = []
    context = multiprocessing.get_context("spawn")
    with ProcessPool(max_workers=workers, max_tasks=1_000, context=context) as pool:
        done = [pool.schedule(run_case, args=[number], timeout=LIMIT_S) for number in numbers]
        for number, one in zip(numbers, done, strict=True):
            try:
                faults += one.result()
            except futures.TimeoutError:
                faults.append(f"case {number}: hangs")
            except ProcessExpired as error:
                faults.append(f"case {number}: crashes with exit code {error.exitcode}")
    return faults


def test_a_few_hostile_cases() -> None:
    crafted = range(FIRST_CRAFTED, FIRST_CRAFTED + FAST_CRAFTED)
    assert not faults_of([*range(FAST_CASES), *FORMER_FAULTS, *crafted], workers=1)


@pytest.mark.slow(minutes=1)
def test_many_hostile_cases() -> None:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    crafted = range(FIRST_CRAFTED, FIRST_CRAFTED + CASES // 4)
    faults = faults_of([*range(CASES), *crafted], workers=cores)
    assert not faults, f"{len(faults)} faults:\n" + "\n".join(faults[:100])
