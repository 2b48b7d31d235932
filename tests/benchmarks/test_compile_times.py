"""The benchmark of compile times: it names kernels of the system, with their seconds."""

from __future__ import annotations

import sys

import pytest

from benchmarks.compile_times import time_kernels
from benchmarks.first_use import SCENARIOS

pytestmark = pytest.mark.slow


def test_kernels_are_listed_with_seconds() -> None:
    times = time_kernels(sys.executable, SCENARIOS["topology"])
    assert times
    assert all(name.startswith(("planner_models.", "planner.")) for name in times)
    assert min(times.values()) >= 0
