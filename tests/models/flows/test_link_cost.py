"""Convex costs of links: values of the papers, slopes, and segments of tangents."""

from __future__ import annotations

import numpy as np
import pytest

from planner_models.flows.link_cost import (
    CongestionCost,
    DelayCost,
    LinkCost,
    WeightedCost,
    queueing_delay,
    tangent_segments,
)

CAPACITY = np.array([10.0, 20.0, 5.0])
CONGESTION = CongestionCost(capacity=CAPACITY, price=np.ones(3))
DELAY = DelayCost(capacity=CAPACITY, latency=np.array([1.0, 2.0, 0.0]), queueing=2.0, other=np.ones(3))
BOTH = WeightedCost(first=CONGESTION, second=DELAY, weight=0.3, other_weight=0.7)


@pytest.mark.parametrize(
    ("utilization", "cost"),
    [(0.0, 0.0), (1 / 3, 1 / 3), (2 / 3, 4 / 3), (0.9, 11 / 3), (1.0, 32 / 3), (1.1, 182 / 3)],
)
def test_congestion_is_that_of_the_paper(utilization: float, cost: float) -> None:
    assert CONGESTION.value(utilization * CAPACITY) == pytest.approx(cost * CAPACITY)


def test_a_queue_delays_as_mm1_and_continues_by_its_tangent() -> None:
    assert queueing_delay(np.array([0.0, 0.5, 0.9, 0.95])) == pytest.approx([0.0, 1.0, 9.0, 19.0])
    assert queueing_delay(np.array([1.95])) == pytest.approx([19.0 + 400.0])


@pytest.mark.parametrize("cost", [CONGESTION, DELAY, BOTH])
def test_slopes_are_subgradients(cost: LinkCost) -> None:
    loads = [share * CAPACITY for share in np.linspace(0.0, 1.5, 40)]
    for load in loads:
        for other in loads:
            tangent = cost.value(load) + cost.slope(load) * (other - load)
            assert (cost.value(other) >= tangent - 1e-9 * (1 + np.abs(tangent))).all()


@pytest.mark.parametrize("cost", [CONGESTION, DELAY, BOTH])
def test_segments_are_the_largest_tangent(cost: LinkCost) -> None:
    points = np.array([0.0, 0.2, 0.5, 0.7, 0.95, 1.05, 1.3])
    links = np.arange(3)
    segments = tangent_segments(cost, np.repeat(links, len(points)), np.tile(points, 3))
    for load in (share * CAPACITY for share in (0.0, 0.1, 0.6, 0.93, 1.2, 2.0)):
        tangents = [
            cost.value(point * CAPACITY) + cost.slope(point * CAPACITY) * (load - point * CAPACITY)
            for point in points
        ]
        filled = segments.at_zero
        for link in links.tolist():
            remaining = load[link] / CAPACITY[link]
            for row in np.flatnonzero(segments.link == link):
                amount = min(remaining, segments.width[row])
                filled += amount * segments.slope[row]
                remaining -= amount
        assert filled == pytest.approx(np.max(tangents, axis=0).sum())
