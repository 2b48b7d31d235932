"""Sizes of queues to try that fit together, and those that do not."""

from __future__ import annotations

import pytest

from planner.errors import InputError
from planner_models.circuitflows import SYSTEM
from planner_models.circuitflows.designs import queue_tuning


def test_large_sizes_below_all_small_ones_are_refused() -> None:
    assert SYSTEM.problem.sample is not None
    line = "large: no size is at least the smallest of small, 4 packets"
    with pytest.raises(InputError, match=line):
        queue_tuning.run_tuned_queues(SYSTEM.problem.sample(), large=(1, 2))
