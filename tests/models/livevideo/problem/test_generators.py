"""Presets: published properties of workloads and networks."""

from __future__ import annotations

import pytest

from planner_models.livevideo.problem import generators


def test_presets_have_the_published_properties() -> None:
    """Section 4.7.1: mean bitrates, shares of the most popular channels, capacities and costs."""
    tail = generators.heavy_tail(videos=10_000, requests_per_video=8.0)
    rate = tail.bitrate_mbps[tail.object]
    assert (tail.clients @ rate) / tail.clients.sum() == pytest.approx(6.85, rel=0.03)
    head = tail.requests["channel"].str[1:].astype(int) <= 100
    assert tail.clients[head].sum() / tail.clients.sum() == pytest.approx(0.4, abs=0.01)
    day = generators.average_day(requests_per_video=13.0)
    head = day.requests["channel"].str[1:].astype(int) <= 290
    assert day.clients[head].sum() / day.clients.sum() == pytest.approx(0.5, abs=0.01)
    assert day.capacity_mbps[day.level[day.tail] == 0].sum() == pytest.approx(4_000)
    assert day.capacity_mbps[day.level[day.tail] == 1].sum() == pytest.approx(30_000)
    core = day.cost[day.level[day.tail] < 2]
    assert core.min() >= 10
    assert core.max() <= 50
    edge = day.cost[day.level[day.tail] == 2]
    assert (edge == 0).mean() == pytest.approx(0.5, abs=0.001)
    assert edge[edge > 0].min() >= 1
    assert edge.max() <= 5
