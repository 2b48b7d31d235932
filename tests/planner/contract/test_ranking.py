"""Ranks of plans: the first metric decides, and the next ones where it is equal."""

from __future__ import annotations

import pytest

from planner.contract.metrics import Metric
from planner.contract.ranking import compare_ranks

SERVED = Metric(name="served", unit="clients", better="more", about="clients that are served")
COST = Metric(name="cost", unit="", better="less", about="what it costs")


@pytest.mark.parametrize(
    ("values", "others", "order"),
    [
        ((5, 90.0), (4, 10.0), 1),
        ((4, 10.0), (5, 90.0), -1),
        ((5, 10.0), (5, 90.0), 1),
        ((5, 90.0), (5, 10.0), -1),
        ((5, 90.0), (5, 90.0 * (1 + 1e-7)), 0),
        ((3_000_000, 90.0), (3_000_001, 90.0), -1),
        ((5, 90.0), (5,), 0),
        ((), (5, 90.0), 0),
    ],
)
def test_the_first_difference_decides(
    values: tuple[float, ...], others: tuple[float, ...], order: int
) -> None:
    assert compare_ranks((SERVED, COST), values, others, 1e-6) == order
