"""Signalling of a round, counted by hand."""

from __future__ import annotations

import pandas as pd
import pytest

from planner.contract.signalling import Signalling
from planner.options import Options
from planner_models.brokering import SYSTEM, Brokering
from planner_models.brokering.designs import several_brokers
from planner_models.brokering.designs.broker import assignment
from planner_models.brokering.information import observe, signalling
from planner_models.brokering.plan.plan import Assignment, MessageCounts
from tests.models.brokering.markets import market as make


@pytest.fixture
def problem() -> Brokering:
    """Two CDNs with two clusters each; three kinds of clients in two of three places."""
    return make(
        [("Lyon", 1000.0, 6), ("Lyon", 2000.0, 4), ("Turin", 2000.0, 2)],
        [
            ("x1", "x", "Lyon", 90.0, 0.1),
            ("x2", "x", "Turin", 90.0, 0.2),
            ("y1", "y", "Turin", 90.0, 0.1),
            ("y2", "y", "Oslo", 90.0, 0.2),
        ],
        scores=[
            (position, name, 10.0)
            for position in ("Lyon", "Turin", "Oslo")
            for name in ("x1", "x2", "y1", "y2")
        ],
    )


def signalling_of(problem: Brokering, name: str, **information: object) -> tuple[Signalling, Assignment]:
    design = SYSTEM.design(name)
    plan = design.run(design.observe(problem, **information), options=Options()).plan
    assert design.signalling is not None
    return design.signalling(problem, plan), plan


def test_the_broker_of_today_needs_no_messages(problem: Brokering) -> None:
    assert signalling_of(problem, "brokered")[0] == Signalling(messages=0, bytes=0)
    assert signalling_of(problem, "protocol")[0] == Signalling(messages=0, bytes=0)


def test_prices_are_announced_for_one_cluster_a_location(problem: Brokering) -> None:
    counted, _ = signalling_of(problem, "dynamic_pricing")
    # Announce and Accept of two CDNs; 3 locations x 2 CDNs offers and 2 accepted, of 2 names, 1 figure
    assert counted == Signalling(messages=4, bytes=(6 + 2) * (2 * 4 + 8))


@pytest.mark.parametrize(
    ("name", "figures"), [("multicluster", 1), ("dynamic_multicluster", 2), ("best_lookup", 3)]
)
def test_several_clusters_are_announced_with_what_the_design_says(
    problem: Brokering, name: str, figures: int
) -> None:
    counted, _ = signalling_of(problem, name)
    # all four clusters score alike, so all are on offer in 3 locations; one is accepted in 2 of them
    assert counted == Signalling(messages=4, bytes=(12 + 2) * (2 * 4 + figures * 8))


def test_the_marketplace_shares_bids_and_accepts_by_kind_of_client(problem: Brokering) -> None:
    counted, plan = signalling_of(problem, "marketplace")
    shares = 3 * (4 * 4 + 2 * 8) * 2  # all three to either CDN
    bids, accepts = 3 * 4 * (2 * 4 + 3 * 8), 3 * (2 * 4 + 3 * 8)
    assert len(plan.assignments) == 3
    assert counted == Signalling(messages=6, bytes=shares + bids + accepts)
    fewer, _ = signalling_of(problem, "marketplace", bids=1)
    assert fewer == Signalling(messages=6, bytes=shares + bids // 2 + accepts)


def test_bids_are_as_many_as_the_protocol_has(problem: Brokering) -> None:
    from planner_models.brokering.information import protocol

    observed = observe.marketplace(problem)
    plan = assignment.assign(observed).plan
    assert plan is not None
    assert plan.message_counts is not None
    shares = protocol.share_messages(problem)
    assert plan.message_counts.shares == len(shares)
    assert plan.message_counts.offers == len(protocol.bid_messages(observed, shares))
    assert plan.message_counts.accepted == len(protocol.accept_messages(observed, shares, plan))


def test_all_information_is_every_cluster_and_every_score(problem: Brokering) -> None:
    counted, _ = signalling_of(problem, "omniscient")
    clusters, scores, accepts = 4 * (4 + 16), 3 * 4 * (8 + 8), 2 * (8 + 24)
    assert counted == Signalling(messages=4, bytes=clusters + scores + accepts)


def test_each_broker_has_a_round_of_its_own(problem: Brokering) -> None:
    observed = observe.marketplace(problem)
    counts = several_brokers.deal_clients(problem, 2, 0)
    plan = several_brokers.assign_independently(observed, brokers=2).plan
    assert plan is not None
    rows = sum(int((count > 0).sum()) for count in counts)
    assert plan.message_counts == MessageCounts(
        rounds=2, shares=rows, offers=4 * rows, figures=3, accepted=rows
    )
    assert signalling.count_rounds(problem, plan) == Signalling(
        messages=2 * 2 * 3, bytes=rows * 32 * 2 + (4 * rows + rows) * 32
    )


def test_transactions_count_requests_until_no_cdn_refuses() -> None:
    plan = Assignment(
        assignments=pd.DataFrame(),
        rounds=pd.DataFrame(
            {"round": [1.0, 2.0, 3.0], "overbooked": [4.0, 1.0, 0.0], "withdrawn": [2, 2, 0]}
        ),
        message_counts=MessageCounts(rounds=2, shares=5, offers=9, figures=3, accepted=6),
    )
    problem = make([("Lyon", 1000.0, 1)], [(f"{cdn}1", cdn, "Lyon", 9.0, 0.1) for cdn in "abc"])
    once = signalling.count_rounds(problem, plan)
    assert once == Signalling(messages=3 * 2 * 3, bytes=5 * 32 * 3 + (9 + 6) * 32)
    counted = signalling.count_transactions(problem, plan)
    # Share, Announce; asked three times and answered three times, by 3 CDNs to 2 brokers
    assert counted.messages == 3 * 2 * (2 + 3 + 3)
    # two more times the mapping; five refusals, each to two brokers
    assert counted.bytes == once.bytes + 2 * 6 * 32 + 5 * 2 * 12


def test_learning_counts_the_messages_of_every_round(problem: Brokering) -> None:
    design = SYSTEM.design("learning_bidders")
    item = design.run(design.observe(problem), options=Options(), parameters={"rounds": 1}).plan
    three = design.run(design.observe(problem), options=Options(), parameters={"rounds": 3}).plan
    assert (item.message_counts.rounds, three.message_counts.rounds) == (1, 3)
    assert three.message_counts.offers == 3 * item.message_counts.offers


def test_every_design_counts(problem: Brokering) -> None:
    for design in SYSTEM.designs:
        counted, _ = signalling_of(problem, design.name)
        assert counted.messages % len(problem.cdn_names) == 0
        assert (counted.messages == 0) == (counted.bytes == 0)
