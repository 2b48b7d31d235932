"""Everything Everywhere: the order of objects."""

from __future__ import annotations

from planner import Options
from planner_models.livevideo.designs import everywhere
from tests.models.livevideo.networks import problem


def test_objects_are_sent_in_the_order_of_the_table() -> None:
    item = problem(
        [("S", "E", 2.0, 1.0), ("E", "A", 9.0, 0.0)],
        [("v", 2000.0, 1.0), ("w", 1500.0, 1.0)],
        [("A", "v", 2000.0, 1.0), ("A", "w", 1500.0, 1.0)],
        tiers={"S": "source", "E": "edge", "A": "group"},
    )
    plan = everywhere.distribute(item, order="table").plan
    assert plan is not None
    assert set(plan.trees["channel"]) == {"v"}


def test_objects_are_sent_in_the_order_of_their_first_requests() -> None:
    item = problem(
        [("S", "E", 2.0, 1.0), ("E", "A", 9.0, 0.0)],
        [("v", 2000.0, 1.0), ("w", 1500.0, 1.0), ("x", 100.0, 1.0)],
        [("A", "v", 2000.0, 1.0), ("A", "w", 1500.0, 1.0)],
        tiers={"S": "source", "E": "edge", "A": "group"},
    )
    late = item.with_requests(item.requests.assign(arrival_s=[5.0, 1.0]))
    plan = everywhere.distribute(late, order="arrival").plan
    assert plan is not None
    assert set(plan.trees["channel"]) == {"w"}  # and nothing of x, which no client requests


def test_channels_are_sent_with_all_bitrates_in_the_order_of_their_first_requests() -> None:
    item = problem(
        [("S", "E", 2.0, 1.0), ("E", "A", 9.0, 0.0)],
        [("v", 500.0, 1.0), ("v", 1500.0, 1.0), ("w", 1000.0, 1.0), ("x", 100.0, 1.0)],
        [("A", "v", 500.0, 1.0), ("A", "v", 1500.0, 1.0), ("A", "w", 1000.0, 1.0)],
        tiers={"S": "source", "E": "edge", "A": "group"},
    )
    late = item.with_requests(item.requests.assign(arrival_s=[1.0, 3.0, 2.0]))
    for order, sent in (("channels", {"v"}), ("arrival", {"v", "w"})):
        plan = everywhere.distribute(late, order=order).plan  # type: ignore[arg-type]
        assert plan is not None
        assert set(plan.trees["channel"]) == sent


def test_no_more_objects_are_sent_after_a_time_limit() -> None:
    item = problem(
        [("S", "E", 9.0, 1.0), ("E", "A", 9.0, 0.0)],
        [("v", 2000.0, 1.0)],
        [("A", "v", 2000.0, 1.0)],
        tiers={"S": "source", "E": "edge", "A": "group"},
    )
    assert set(everywhere.distribute(item, order="table").plan.trees["channel"]) == {"v"}
    decision = everywhere.distribute(item, order="table", options=Options(time_limit_s=1e-9))
    assert decision.proof.is_cut
    assert not len(decision.plan.trees)
