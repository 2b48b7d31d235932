"""Messages of the decision protocol."""

from __future__ import annotations

import pytest

from planner_models.brokering.designs.broker import assignment
from planner_models.brokering.information import observe, protocol
from tests.models.brokering.markets import market as make


def test_messages_have_the_formats_of_3_6_1() -> None:
    problem = make(
        [("Lyon", 1000.0, 10), ("Oslo", 500.0, 4)],
        [("a", "x", "Lyon", 60.0, 0.1), ("b", "y", "Oslo", 50.0, 0.2)],
    )
    observed = observe.marketplace(problem)
    told = protocol.share_messages(problem)
    assert list(told) == ["share_id", "location", "isp", "content_id", "data_size", "client_count"]
    offers = protocol.bid_messages(observed, told)
    assert list(offers) == ["cluster_id", "share_id", "performance_estimate", "capacity", "price"]
    assert len(offers) == 4
    plan = assignment.assign(observed).plan
    assert plan is not None
    used = protocol.accept_messages(observed, told, plan)
    assert list(used) == list(offers)
    assert used["capacity"].sum() == pytest.approx(12.0)
    keys = set(zip(offers["cluster_id"], offers["share_id"], strict=True))
    assert keys >= set(zip(used["cluster_id"], used["share_id"], strict=True))
