"""Checks and metrics, on plans known by heart."""

from __future__ import annotations

import pandas as pd
import pytest

from planner.errors import PlanRejected
from planner_models.livevideo import LiveVideo, Trees, check, measure
from tests.livevideo.networks import problem

TIERS = {"S": "source", "E": "edge", "A": "group", "B": "group"}


def small() -> LiveVideo:
    links = [
        ("S", "E", 2.0, 10.0),
        ("S", "E2", 2.0, 10.0),
        ("E", "A", 2.0, 1.0),
        ("E2", "A", 2.0, 1.0),
        ("E", "B", 1.0, 0.0),
    ]
    return problem(
        links,
        [("v", 1000.0, 1.0), ("w", 2000.0, 2.0)],
        [("A", "v", 1000.0, 3.0), ("B", "v", 1000.0, 1.0), ("A", "w", 2000.0, 1.0)],
        tiers=TIERS,
        settings=pd.DataFrame({"service_weight": [1.0], "cost_weight": [0.01]}),
    )


def plan(*rows: tuple[str, float, str, str]) -> Trees:
    return Trees(trees=pd.DataFrame(rows, columns=["channel", "bitrate_kbps", "tail", "head"]))


V = [("v", 1000.0, "S", "E"), ("v", 1000.0, "E", "A"), ("v", 1000.0, "E", "B")]
W = [("w", 2000.0, "S", "E2"), ("w", 2000.0, "E2", "A")]


def test_the_metrics_of_a_plan() -> None:
    one = small()
    assert not len(check(one, plan(*V, *W)))
    metrics = measure(one, plan(*V, *W), None)
    # v: 10 + 1 + 0 over 1 Mbit/s, w: 10 + 1 over 2
    assert metrics["cost"] == pytest.approx(33.0)
    assert metrics["service_minus_cost"] == pytest.approx(3 + 1 + 2 - 0.33)
    assert metrics["clients_at_bitrate"] == 100.0
    assert metrics["average_bitrate_kbps"] == pytest.approx((3 * 1000 + 1000 + 2000) / 5)
    assert metrics["cost_per_satisfied"] == pytest.approx(33.0 / 5)
    assert metrics["source_load"] == pytest.approx(3 / 4)


def test_an_overloaded_link_serves_nobody_well() -> None:
    one = small()
    both = plan(*V, ("w", 2000.0, "S", "E"), ("w", 2000.0, "E", "A"))
    broken = check(one, both).frame
    assert broken["where"].tolist() == ["S->E", "E->A"]
    assert broken["amount"].tolist() == [3.0, 3.0]
    metrics = measure(one, both, None)
    assert metrics["overloaded_links"] == 2
    assert metrics["clients_at_bitrate"] == 0.0
    assert metrics["requests_served"] == 100.0


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([("x", 1000.0, "S", "E")], "channel 'x' at 1000 kbit/s is no object of the problem"),
        ([("v", 1000.0, "A", "E")], "A->E is no link of the problem"),
        ([("v", 1000.0, "E", "A")], "E does not receive v/1000"),
        ([*V, ("v", 1000.0, "S", "E2"), ("v", 1000.0, "E2", "A")], "A receives v/1000 2 times"),
        ([*V, V[0]], "E receives v/1000 2 times"),
    ],
)
def test_what_is_no_plan(rows: list[tuple[str, float, str, str]], message: str) -> None:
    with pytest.raises(PlanRejected, match=message):
        check(small(), plan(*rows))


def test_a_source_without_the_channel() -> None:
    one = small()
    other = LiveVideo(
        clusters=pd.concat(
            [one.clusters, pd.DataFrame({"cluster": ["S2"], "tier": ["source"]})], ignore_index=True
        ),
        links=pd.concat(
            [one.links, pd.DataFrame([("S2", "E", 9.0, 0.0, 0.0)], columns=one.links.columns)],
            ignore_index=True,
        ),
        objects=one.objects, requests=one.requests,
        holders=pd.DataFrame({"channel": ["v"], "source": ["S2"]}),
    )  # fmt: skip
    with pytest.raises(PlanRejected, match="S does not hold v/1000"):
        check(other, plan(*V))


def test_what_moved_since_the_last_plan() -> None:
    one = small()
    before = plan(*V, *W)
    after = plan(("v", 1000.0, "S", "E2"), ("v", 1000.0, "E2", "A"), *W)
    metrics = measure(one, after, before)
    assert metrics["moved_objects"] == 1
    assert metrics["moved_links"] == 5
    assert measure(one, before, before)["moved_links"] == 0
