"""Naive bounds: above every plan, and calculated by hand on a small case."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner_models.livevideo import LiveVideo, measure
from planner_models.livevideo.designs import optimum
from planner_models.livevideo.published.figures_4_10_to_4_15 import naive_bounds
from tests.models.livevideo.networks import problem, problems


@given(st.integers(2, 5).flatmap(lambda tiers: problems(tiers=tiers)))
@settings(max_examples=20)
def test_no_plan_beats_the_naive_bounds(one: LiveVideo) -> None:
    plan = optimum.distribute(one).plan
    assert plan is not None
    metrics, upper = measure(one, plan, None), naive_bounds(one)
    for name in ("clients_at_bitrate", "average_bitrate_kbps"):
        value, limit = metrics[name], getattr(upper, name)
        assert value is not None
        assert value <= limit + 1e-9


def test_the_narrowest_tier_gives_the_bound() -> None:
    item = problem(
        [("S", "E", 3.0, 1.0), ("E", "A", 9.0, 0.0), ("E", "B", 9.0, 0.0)],
        [("v", 2000.0, 1.0), ("w", 2000.0, 1.0)],
        [("A", "v", 2000.0, 3.0), ("B", "v", 2000.0, 1.0), ("A", "w", 2000.0, 2.0)],
        tiers={"S": "source", "E": "edge", "A": "group", "B": "group"},
    )
    # 3 of 4 Mbit/s: v whole (4 clients), half of w (1 of 2)
    assert naive_bounds(item).clients_at_bitrate == pytest.approx(100 * 5 / 6)
    assert naive_bounds(item).average_bitrate_kbps == pytest.approx(2000 * 5 / 6)
    assert naive_bounds(item.with_requests(item.requests.iloc[:0])).clients_at_bitrate is None
