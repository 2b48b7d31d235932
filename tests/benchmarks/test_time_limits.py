"""The largest problems end with a plan under a limit of a second; the benchmark tells how long they take."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks import time_limits


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "design", "changes"), time_limits.CASES, ids=[case[0] for case in time_limits.CASES]
)
def test_the_largest_problems_have_a_plan_within_a_second(
    name: str, design: str, changes: dict[str, Any]
) -> None:
    run, processor_s, _ = time_limits.run_case(name, design, changes)
    time_limits.check(run)
    assert processor_s > 0
