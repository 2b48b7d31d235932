"""Metrics of given plans, calculated by hand."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd
import pytest

from planner.errors import InputError
from planner_models.livevideo import LiveVideo, check, measure
from planner_models.livevideo.plan.plan import from_tables
from tests.models.livevideo.observations import run
from tests.models.livevideo.plans import V, W, plan, small


def test_the_metrics_of_a_plan() -> None:
    item = small()
    assert not len(check(item, plan(*V, *W)))
    metrics = measure(item, plan(*V, *W), None)
    # v: 10 + 1 + 0 over 1 Mbit/s, w: 10 + 1 over 2
    assert metrics["cost"] == pytest.approx(33.0)
    assert metrics["service_minus_cost"] == pytest.approx(3 + 1 + 2 - 0.33)
    assert metrics["clients_at_bitrate"] == 100.0
    assert metrics["average_bitrate_kbps"] == pytest.approx((3 * 1000 + 1000 + 2000) / 5)
    assert metrics["cost_per_satisfied"] == pytest.approx(33.0 / 5)
    assert metrics["source_load"] == pytest.approx(3 / 4)


def test_clients_over_overloaded_links_do_not_count() -> None:
    item = small()
    both = plan(*V, ("w", 2000.0, "S", "E"), ("w", 2000.0, "E", "A"))
    broken = check(item, both).frame
    assert broken["where"].tolist() == ["S->E", "E->A"]
    assert broken["amount"].tolist() == [3.0, 3.0]
    metrics = measure(item, both, None)
    assert metrics["overloaded_links"] == 2
    assert metrics["clients_at_bitrate"] == 0.0
    assert metrics["requests_served"] == 0.0
    assert metrics["service_minus_cost"] == pytest.approx(-item.cost_weight * float(metrics["cost"] or 0.0))
    assert metrics["degraded_clients"] == item.clients.sum()
    assert metrics["unserved_clients"] == 0.0


def test_changes_since_the_previous_plan_are_counted() -> None:
    item = small()
    before = plan(*V, *W)
    after = plan(("v", 1000.0, "S", "E2"), ("v", 1000.0, "E2", "A"), *W)
    metrics = measure(item, after, before)
    assert metrics["moved_objects"] == 1
    assert metrics["moved_links"] == 5
    assert measure(item, before, before)["moved_links"] == 0


def test_join_times_by_hand() -> None:
    """Two round trips of 2 x (10 + 20) and 2 x (10 + 20 + 5) ms for 3 and 1 clients, and a chunk of 2 s at
    1 Mbit/s over the narrowest link."""
    links = pd.DataFrame(
        [("S", "E", 4.0, 10.0), ("E", "A", 8.0, 20.0), ("E", "B", 2.0, 25.0)],
        columns=["tail", "head", "capacity_mbps", "latency_ms"],
    )
    live_video = LiveVideo(
        clusters=pd.DataFrame({"cluster": ["S", "E", "A", "B"], "tier": ["s", "e", "g", "g"]}),
        links=links,
        objects=pd.DataFrame({"channel": ["v"], "bitrate_kbps": [1000.0]}),
        requests=pd.DataFrame({"group": ["A", "B"], "channel": "v", "bitrate_kbps": 1000.0,
                               "clients": [3.0, 1.0], "arrival_s": [0.0, 1.0]}),
    )  # fmt: skip
    result = run(live_video, "vdn")
    assert result.metrics["join_s"] == pytest.approx(0.06 + 2 * 1 / 4)
    late = run(live_video, "centralized", age_s=20.0)
    assert late.metrics["join_s"] == pytest.approx(20 + 0.06 + 2 * 1 / 4)
    assert late.plan is not None
    assert late.plan.waits is not None
    assert late.plan.waits["waited_s"].tolist() == [20.0, 20.0]
    few = replace(live_video, requests=live_video.requests.assign(clients=[1.0, 3.0]))
    assert run(few, "vdn").metrics["join_s"] == pytest.approx(0.07 + 2 * 1 / 2)
    again = from_tables(live_video, late.plan.to_tables())
    assert again.waits is not None
    pd.testing.assert_frame_equal(again.waits, late.plan.waits)
    with pytest.raises(InputError, match="trees: the plan has no such table"):
        from_tables(live_video, {"waits": late.plan.waits})
