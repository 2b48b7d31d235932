"""Hybrid control: what it serves beside its controller, and who waits."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings

from planner_models.livevideo import LiveVideo
from planner_models.livevideo.plan.check import compute_delivery
from tests.models.livevideo.networks import problem
from tests.models.livevideo.observations import DEGRADATIONS, TIERS, placed, run, small


@pytest.mark.slow
@given(placed(), DEGRADATIONS)
@settings(max_examples=5)
def test_hybrid_serves_all_that_its_controller_serves(one: LiveVideo, degradation: dict[str, Any]) -> None:
    degradation = {"age_s": 10.0, **degradation}
    central, both = run(one, "centralized", **degradation), run(one, "hybrid", **degradation)
    assert central.plan is not None
    assert both.plan is not None
    assert (compute_delivery(one, both.plan).served >= compute_delivery(one, central.plan).served).all()


@given(placed())
@settings(max_examples=3)
def test_hybrid_with_an_ignorant_controller_is_distributed(one: LiveVideo) -> None:
    one = one.with_requests(one.requests.assign(arrival_s=one.requests["arrival_s"] + 1e-3))
    alone, both = run(one, "distributed"), run(one, "hybrid", age_s=1e3)
    assert alone.plan is not None
    assert both.plan is not None
    pd.testing.assert_frame_equal(alone.plan.trees, both.plan.trees)
    assert both.plan.waits is not None
    assert not len(both.plan.waits)


def test_under_hybrid_control_only_denied_requests_wait() -> None:
    """Capacity for one: v takes it at its arrival; 10 s later the controller gives it to w."""
    item = problem(
        [("S", "E", 1.0, 1.0), ("E", "A", 9.0, 0.0)],
        [("v", 1000.0, 1.0), ("w", 1000.0, 9.0)],
        [("A", "v", 1000.0, 1.0), ("A", "w", 1000.0, 1.0)],
        tiers=TIERS,
    )
    for came, waited in (([1.0, 5.0], ["w"]), ([5.0, 1.0], []), ([1.0, 25.0], [])):
        result = run(item.with_requests(item.requests.assign(arrival_s=came)), "hybrid", age_s=10.0)
        assert result.plan is not None
        assert set(result.plan.trees["channel"]) == {"w"}
        assert result.plan.waits is not None
        assert result.plan.waits["channel"].tolist() == waited


def test_hybrid_control_is_fast_and_serves_more() -> None:
    item = small(seed=1)
    central, both, alone = (run(item, name) for name in ("centralized", "hybrid", "distributed"))
    for result in (central, both, alone):
        assert result.metrics["join_s"] is not None
    assert central.metrics["join_s"] > 10 > 1 > both.metrics["join_s"]  # type: ignore[operator]
    assert both.metrics["service_minus_cost"] > alone.metrics["service_minus_cost"]  # type: ignore[operator]
    assert both.metrics["service_minus_cost"] > central.metrics["service_minus_cost"]  # type: ignore[operator]
