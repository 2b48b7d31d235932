"""Ranking of plans by several metrics, the first of them first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from planner.contract.metrics import Metric

EQUAL: Final = 1e-9  # relative; values of a rank before the last that are called equal


def compare_ranks(
    metrics: Sequence[Metric], values: Sequence[float], others: Sequence[float], tolerance: float
) -> int:
    """Return 1 where `values` are better in the first rank where the two differ, -1 where worse, else 0.

    metrics    one for each rank; there may be fewer values, of the first ranks
    tolerance  relative difference that counts as none in the last rank; ranks before it compare exactly
    """
    for index, (metric, value, other) in enumerate(zip(metrics, values, others, strict=False)):
        margin = (tolerance if index == len(metrics) - 1 else EQUAL) * max(abs(value), abs(other), 1e-3)
        if abs(value - other) > margin:
            return 1 if (value > other) is (metric.better == "more") else -1
    return 0
