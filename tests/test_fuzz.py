"""Hostile files, scenarios, plans, words, stores and addresses: no crash, no hang, no escape.

PLANNER_FUZZ_CASES sets the number of cases of each long test; `make bounds-check` runs the first with every
index of the compiled kernels checked.
"""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Iterable
from concurrent import futures

import pytest
from pebble import ProcessExpired, ProcessPool

from planner.scenarios.catalogue import system_names
from tests.fuzzing.bases import choose_readers, choose_systems
from tests.fuzzing.cases import reader_names
from tests.fuzzing.running import FIRST_CRAFTED, run_case

CASES = int(os.environ.get("PLANNER_FUZZ_CASES") or 10_000)
FAST_CASES = 12
FAST_CRAFTED = 6
FORMER_FAULTS = (1895, 9132)
"""Cases that once ended in an internal error.

A damaged schema of a store whose message is no text; a Parquet column of lists in a table of many rows.
"""
LIMIT_S = float(os.environ.get("PLANNER_FUZZ_LIMIT_S") or 120)
"""Longest time of a case on a busy machine; a case takes well below a second."""


def choose(system: str, reader: str) -> None:
    """Let the cases of this process damage the inputs of one system, or files of one reader."""
    choose_systems([system] if system else [])
    choose_readers([reader] if reader else [])


def faults_of(cases: Iterable[int], workers: int, system: str = "", reader: str = "") -> list[str]:
    """Run cases in processes that are replaced where one crashes or hangs; return the faults.

    system, reader  the only one whose inputs are damaged; all where empty
    """
    numbers = list(cases)
    faults: list[str] = []
    context = multiprocessing.get_context("spawn")
    with ProcessPool(
        max_workers=workers, max_tasks=1_000, context=context, initializer=choose, initargs=(system, reader)
    ) as pool:
        result = [pool.schedule(run_case, args=[number], timeout=LIMIT_S) for number in numbers]
        for number, item in zip(numbers, result, strict=True):
            while not futures.wait([item], timeout=1.0).done:
                if not pool.active:  # pebble gives up when a worker ends while none has a task
                    return [*faults, f"case {number}: the processes ended before it began"]
            try:
                faults += item.result()
            except futures.TimeoutError:
                faults.append(f"case {number}: hangs")
            except ProcessExpired as error:
                faults.append(f"case {number}: crashes with exit code {error.exitcode}")
    return faults


def test_a_few_hostile_cases() -> None:
    crafted = range(FIRST_CRAFTED, FIRST_CRAFTED + FAST_CRAFTED)
    assert not faults_of([*range(FAST_CASES), *FORMER_FAULTS, *crafted], workers=1)


def check_many(system: str = "", reader: str = "") -> None:
    """Check that no case has a fault, on all cores."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    # what was made to stop a reader is much the same in the tables of each system
    crafted = range(FIRST_CRAFTED, FIRST_CRAFTED + CASES // (20 if system else 4))
    faults = faults_of([*range(CASES), *crafted], cores, system, reader)
    assert not faults, f"{len(faults)} faults:\n" + "\n".join(faults[:100])


@pytest.mark.slow(minutes=1)
def test_many_hostile_cases() -> None:
    check_many()


@pytest.mark.exhaustive
@pytest.mark.parametrize("system", system_names())
def test_many_hostile_inputs_of_each_system(system: str) -> None:
    check_many(system=system)


@pytest.mark.exhaustive
@pytest.mark.parametrize("reader", reader_names())
def test_many_hostile_files_of_each_reader(reader: str) -> None:
    check_many(reader=reader)
