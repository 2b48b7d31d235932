"""CDN and ISP in time: moves at their periods, oscillation, and means over time."""

from __future__ import annotations

from typing import Any

import pytest

from planner.options import Options
from planner_models.cdnrouting import SYSTEM
from planner_models.cdnrouting.simulation import run
from tests.models.cdnrouting.deliveries import network


def simulate(step: float, **pace: Any) -> Any:
    """Return the run of a reaction for twenty minutes."""
    arguments = {"duration_s": 1200.0, "cdn_period_s": 120.0, "isp_period_s": 600.0, **pace}
    return run(
        network(1, nodes=10, clusters=4, step=step),
        design=SYSTEM.design("react_blind"),
        information={},
        decision_parameters={},
        options=Options(),
        **arguments,
    )


def test_both_move_at_their_periods() -> None:
    moves = simulate(1.0).tables["moves"]
    assert moves["time_s"][moves["mover"] == "isp"].tolist() == [600.0]
    assert moves["time_s"][moves["mover"] == "cdn"].tolist() == [120.0 * step for step in range(1, 10)]


def test_large_steps_swing_more() -> None:
    wild, calm = simulate(1.0).metrics, simulate(0.1).metrics
    assert wild["swing"] > calm["swing"]
    assert wild["moved_share"] > calm["moved_share"]


def test_means_are_over_time() -> None:
    result = simulate(1.0, duration_s=240.0)
    delay = result.tables["moves"]["mean_delay_ms"]
    assert result.metrics["mean_delay_ms"] == pytest.approx((delay[0] + delay[1]) / 2)
