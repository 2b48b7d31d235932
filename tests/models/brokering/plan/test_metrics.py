"""Metrics of a small plan with known values."""

from __future__ import annotations

import pytest

from planner_models.brokering import Assignment, measure
from tests.models.brokering.markets import market as make


def test_metrics_of_a_small_plan() -> None:
    problem = make(
        [("Lyon", 2000.0, 3), ("Oslo", 1000.0, 2)],
        [("a", "x", "Lyon", 12.0, 0.1), ("b", "y", "Oslo", 1.0, 0.2)],
        scores=[("Lyon", "a", 5.0), ("Lyon", "b", 9.0), ("Oslo", "a", 8.0), ("Oslo", "b", 2.0)],
        background_mbps=[3.0, 0.0],
    )
    frame = problem.clients.assign(cluster=["a", "b"])
    worth = measure(problem, Assignment(assignments=frame), None)
    # one of Oslo's clients finds no room in b, and moves to a
    assert worth["objective"] == pytest.approx(3 * 5 + 2 + 8 + 0.45 * (6 * 0.1 + 0.2 + 0.1))
    assert worth["median_cost"] == 0.1
    assert worth["median_score"] == 5
    assert worth["median_load_percent"] == pytest.approx((75 + 200) / 2)
    assert worth["congested_percent"] == pytest.approx(40)
    assert worth["moved_between_clusters_percent"] is None
    later = problem.clients.assign(cluster=["a", "a"])
    moved = measure(problem, Assignment(assignments=later), Assignment(assignments=frame))
    assert moved["moved_between_clusters_percent"] == pytest.approx(25)  # 2 of 8 Mbit/s
    assert moved["moved_between_cdns_percent"] == pytest.approx(25)
