"""Observations with age, noise and granularity, and plans made on them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.contract.parameters import parameters_of
from planner.contract.signalling import Signalling
from planner.options import Options
from planner.runs import evaluation
from planner.scenarios.scenario import load
from planner_models.brokering import SYSTEM, Brokering, information
from planner_models.brokering.designs import several_brokers
from planner_models.brokering.designs.broker import assignment
from planner_models.brokering.plan.plan import Assignment, MessageCounts
from planner_models.brokering.problem import generators
from tests.models.brokering.markets import market as make
from tests.models.brokering.markets import markets

DEGRADATIONS = ("age_s", "noise", "granularity_km")


ANNOUNCED = ("multicluster", "dynamic_multicluster", "best_lookup", "marketplace", "omniscient", "protocol")


UNANNOUNCED = ("brokered", "dynamic_pricing")


@pytest.fixture(scope="module")
def world() -> Brokering:
    return generators.world(clients=3000, places=80, seed=3)


def test_the_truth_is_the_problem_itself(world: Brokering) -> None:
    assert information.estimate(world, seed=7, swing=2.0) is world


@pytest.mark.parametrize("name", ANNOUNCED)
def test_designs_with_announcements_have_degradation_parameters(name: str) -> None:
    parameters = parameters_of(SYSTEM.design(name).observe)
    assert {*DEGRADATIONS, "seed"} <= set(parameters)
    assert all(parameters[degradation].default == 0 for degradation in DEGRADATIONS)


@pytest.mark.parametrize("name", UNANNOUNCED)
def test_designs_without_announcements_have_no_degradation_parameters(name: str) -> None:
    assert not {*DEGRADATIONS, "seed"} & set(parameters_of(SYSTEM.design(name).observe))


def test_age_changes_other_traffic_and_scores_and_nothing_else(world: Brokering) -> None:
    old = information.estimate(world, age_s=60, seed=1)
    assert (old.background_mbps != world.background_mbps).any()
    assert (old.score != world.score).all()
    unchanged = (
        "capacity_mbps",
        "price",
        "offered",
        "contract_price",
        "guessed_capacity_mbps",
        "demand_mbps",
    )
    for same in unchanged:
        np.testing.assert_array_equal(getattr(old, same), getattr(world, same), err_msg=same)
    np.testing.assert_array_equal(information.estimate(world, age_s=60, seed=1).score, old.score)
    assert (information.estimate(world, age_s=60, seed=2).score != old.score).any()


@pytest.mark.parametrize(
    ("age_s", "spread"), [(30.0, 0.3 * np.sqrt(2 * (1 - np.exp(-0.1)))), (1e9, 0.3 * np.sqrt(2))]
)
def test_age_changes_scores_by_the_deviation_of_the_process(
    world: Brokering, age_s: float, spread: float
) -> None:
    old = information.estimate(world, age_s=age_s, score_swing=0.3, seed=0)
    change = np.log(old.score / world.score)
    assert change.std() == pytest.approx(spread, rel=0.02)
    assert change.mean() == pytest.approx(0, abs=0.01)


def test_noise_is_in_performance_and_capacity(world: Brokering) -> None:
    noisy = information.estimate(world, noise=0.5, seed=1)
    change = np.log(
        noisy.residual_mbps[world.residual_mbps > 0] / world.residual_mbps[world.residual_mbps > 0]
    )
    assert change.std() == pytest.approx(0.5, rel=0.1)
    assert np.log(noisy.score / world.score).std() == pytest.approx(0.5, rel=0.02)
    for same in ("price", "offered", "contract_price", "guessed_capacity_mbps", "demand_mbps"):
        np.testing.assert_array_equal(getattr(noisy, same), getattr(world, same), err_msg=same)


def test_a_square_has_the_mean_score_of_its_clients_by_traffic() -> None:
    problem = make(
        [("Lyon", 1000.0, 6), ("Turin", 2000.0, 1), ("Oslo", 1000.0, 1)],
        [("a", "x", "Lyon", 90.0, 0.1)],
        scores=[("Lyon", "a", 10.0), ("Turin", "a", 50.0), ("Oslo", "a", 90.0)],
    )
    order = problem.locations["location"].tolist()
    coarse = dict(
        zip(order, information.estimate(problem, granularity_km=1000).score[:, 0].tolist(), strict=True)
    )
    assert coarse == {"Lyon": 20.0, "Turin": 20.0, "Oslo": 90.0}
    fine = information.estimate(problem, granularity_km=10).score[:, 0]
    np.testing.assert_allclose(fine, problem.score[:, 0])


@pytest.mark.parametrize("side_km", [50.0, 500.0, 40_000.0])
def test_squares_keep_the_mean(world: Brokering, side_km: float) -> None:
    traffic = world.demand_mbps
    coarse = information.estimate(world, granularity_km=side_km)
    np.testing.assert_allclose(traffic @ coarse.score, traffic @ world.score)
    np.testing.assert_array_equal(coarse.residual_mbps, world.residual_mbps)


def test_designs_without_announcements_observe_the_truth(world: Brokering) -> None:
    for name in UNANNOUNCED:
        observed = SYSTEM.design(name).observe(world)
        np.testing.assert_array_equal(observed.score, world.score)
    flat = information.multicluster(world, noise=1.0)
    np.testing.assert_array_equal(flat.capacity_mbps, information.brokered(world).capacity_mbps)
    asked = flat.price[flat.offered]
    np.testing.assert_array_equal(asked, world.contract_price[:, world.cdn][flat.offered])


@pytest.mark.slow
@given(
    markets(tight=False),
    st.sampled_from(ANNOUNCED),
    st.sampled_from([{"age_s": 300.0}, {"noise": 0.5}, {"granularity_km": 1000.0}]),
    st.integers(0, 3),
)
@settings(max_examples=60, deadline=None)
def test_plans_on_any_observation_are_valid_and_never_beat_the_bound(
    problem: Brokering, name: str, degradation: dict[str, float], seed: int
) -> None:
    sharp = assignment.assign(problem)
    observed = SYSTEM.design(name).observe(problem, **degradation, seed=seed)
    made = assignment.assign(observed)
    if sharp.plan is None or made.plan is None:
        return
    plan = SYSTEM.plan.realize(problem, observed, made.plan)
    broken = SYSTEM.plan.check(problem, plan)
    assert set(broken.frame["limit"]) <= {"capacity"}
    assert sharp.proof.bound is not None
    worth = SYSTEM.plan.measure(problem, plan, None)["objective"]
    assert worth is not None
    assert worth >= sharp.proof.bound - 1e-6 * max(abs(worth), 1.0)


@pytest.mark.slow
def test_no_plan_of_the_market_beats_the_bound_and_bad_information_costs() -> None:
    def share(design: str, **degradation: float) -> float:
        changes = {f"designs.{design}.information.{name}": value for name, value in degradation.items()}
        scenario = load("brokering/coordination", changes={"problem.clients": 3000} | changes)
        worth = evaluation.solve(scenario, design=design).metrics["objective"]
        assert worth is not None
        return worth

    best = share("omniscient")
    for kind, value in (("age_s", 3600.0), ("noise", 0.8), ("granularity_km", 5000.0)):
        assert share("omniscient", **{kind: value}) > best


def test_a_composed_protocol_equals_the_named_design() -> None:
    problem = generators.world(clients=500, places=40, seed=2)
    for bids, price, capacity, twin in (
        (1, "contract", "guessed", information.brokered(problem)),
        (100, "cluster", "total", information.best_lookup(problem)),
        (100, "cluster", "free", information.marketplace(problem)),
    ):
        made = information.protocol(problem, bids=bids, price=price, capacity=capacity)  # type: ignore[arg-type]
        assert np.array_equal(made.offered, twin.offered)
        assert np.array_equal(made.price[made.offered], twin.price[twin.offered])
        assert np.array_equal(made.residual_mbps, twin.residual_mbps)


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
    from planner_models.brokering import information

    observed = information.marketplace(problem)
    plan = assignment.assign(observed).plan
    assert plan is not None
    assert plan.message_counts is not None
    shares = information.share_messages(problem)
    assert plan.message_counts.shares == len(shares)
    assert plan.message_counts.offers == len(information.bid_messages(observed, shares))
    assert plan.message_counts.accepted == len(information.accept_messages(observed, shares, plan))


def test_all_information_is_every_cluster_and_every_score(problem: Brokering) -> None:
    counted, _ = signalling_of(problem, "omniscient")
    clusters, scores, accepts = 4 * (4 + 16), 3 * 4 * (8 + 8), 2 * (8 + 24)
    assert counted == Signalling(messages=4, bytes=clusters + scores + accepts)


def test_each_broker_has_a_round_of_its_own(problem: Brokering) -> None:
    observed = information.marketplace(problem)
    counts = several_brokers.deal_clients(problem, 2, 0)
    plan = several_brokers.assign_independently(observed, brokers=2).plan
    assert plan is not None
    rows = sum(int((count > 0).sum()) for count in counts)
    assert plan.message_counts == MessageCounts(
        rounds=2, shares=rows, offers=4 * rows, figures=3, accepted=rows
    )
    assert information.count_rounds(problem, plan) == Signalling(
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
    once = information.count_rounds(problem, plan)
    assert once == Signalling(messages=3 * 2 * 3, bytes=5 * 32 * 3 + (9 + 6) * 32)
    counted = information.count_transactions(problem, plan)
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


def test_messages_have_the_formats_of_3_6_1() -> None:
    problem = make(
        [("Lyon", 1000.0, 10), ("Oslo", 500.0, 4)],
        [("a", "x", "Lyon", 60.0, 0.1), ("b", "y", "Oslo", 50.0, 0.2)],
    )
    observed = information.marketplace(problem)
    told = information.share_messages(problem)
    assert list(told) == ["share_id", "location", "isp", "content_id", "data_size", "client_count"]
    offers = information.bid_messages(observed, told)
    assert list(offers) == ["cluster_id", "share_id", "performance_estimate", "capacity", "price"]
    assert len(offers) == 4
    plan = assignment.assign(observed).plan
    assert plan is not None
    used = information.accept_messages(observed, told, plan)
    assert list(used) == list(offers)
    assert used["capacity"].sum() == pytest.approx(12.0)
    keys = set(zip(offers["cluster_id"], offers["share_id"], strict=True))
    assert keys >= set(zip(used["cluster_id"], used["share_id"], strict=True))
