"""What CDNs estimate with age, noise and grain, and what becomes of plans made on it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner import run
from planner.parameters import parameters_of
from planner.scenario import load
from planner_models.brokering import SYSTEM, Assignment, Brokering, generate, market, relief, sees
from planner_models.brokering.check import served
from planner_models.brokering.flow import Transport
from tests.brokering.markets import market as make
from tests.brokering.markets import markets

BLURS = ("age_s", "noise", "grain_km")
TOLD = ("multicluster", "dynamic_multicluster", "best_lookup", "marketplace", "omniscient", "protocol")
UNTOLD = ("brokered", "dynamic_pricing")


@pytest.fixture(scope="module")
def world() -> Brokering:
    return generate.world(clients=3000, places=80, seed=3)


def test_the_truth_is_the_problem_itself(world: Brokering) -> None:
    assert sees.told(world, seed=7, swing=2.0) is world


@pytest.mark.parametrize("name", TOLD)
def test_designs_that_are_told_can_be_told_badly(name: str) -> None:
    parameters = parameters_of(SYSTEM.design(name).sees)
    assert {*BLURS, "seed"} <= set(parameters)
    assert all(parameters[blur].default == 0 for blur in BLURS)


@pytest.mark.parametrize("name", UNTOLD)
def test_designs_that_are_not_told_cannot(name: str) -> None:
    assert not {*BLURS, "seed"} & set(parameters_of(SYSTEM.design(name).sees))


def test_age_changes_other_traffic_and_scores_and_nothing_else(world: Brokering) -> None:
    old = sees.told(world, age_s=60, seed=1)
    assert (old.background_mbps != world.background_mbps).any()
    assert (old.score != world.score).all()
    for same in ("capacity_mbps", "price", "offered", "contract_price", "guessed_mbps", "demand_mbps"):
        np.testing.assert_array_equal(getattr(old, same), getattr(world, same), err_msg=same)
    np.testing.assert_array_equal(sees.told(world, age_s=60, seed=1).score, old.score)
    assert (sees.told(world, age_s=60, seed=2).score != old.score).any()


@pytest.mark.parametrize(
    ("age_s", "spread"), [(30.0, 0.3 * np.sqrt(2 * (1 - np.exp(-0.1)))), (1e9, 0.3 * np.sqrt(2))]
)
def test_age_spreads_as_the_process_says(world: Brokering, age_s: float, spread: float) -> None:
    old = sees.told(world, age_s=age_s, score_swing=0.3, seed=0)
    change = np.log(old.score / world.score)
    assert change.std() == pytest.approx(spread, rel=0.02)
    assert change.mean() == pytest.approx(0, abs=0.01)


def test_noise_is_in_performance_and_room(world: Brokering) -> None:
    noisy = sees.told(world, noise=0.5, seed=1)
    change = np.log(noisy.free_mbps[world.free_mbps > 0] / world.free_mbps[world.free_mbps > 0])
    assert change.std() == pytest.approx(0.5, rel=0.1)
    assert np.log(noisy.score / world.score).std() == pytest.approx(0.5, rel=0.02)
    for same in ("price", "offered", "contract_price", "guessed_mbps", "demand_mbps"):
        np.testing.assert_array_equal(getattr(noisy, same), getattr(world, same), err_msg=same)


def test_a_square_has_the_mean_score_of_its_clients_by_traffic() -> None:
    problem = make(
        [("Lyon", 1000.0, 6), ("Turin", 2000.0, 1), ("Oslo", 1000.0, 1)],
        [("a", "x", "Lyon", 90.0, 0.1)],
        scores=[("Lyon", "a", 10.0), ("Turin", "a", 50.0), ("Oslo", "a", 90.0)],
    )
    order = problem.locations["location"].tolist()
    coarse = dict(zip(order, sees.told(problem, grain_km=1000).score[:, 0].tolist(), strict=True))
    assert coarse == {"Lyon": 20.0, "Turin": 20.0, "Oslo": 90.0}
    fine = sees.told(problem, grain_km=10).score[:, 0]
    np.testing.assert_allclose(fine, problem.score[:, 0])


@pytest.mark.parametrize("side_km", [50.0, 500.0, 40_000.0])
def test_squares_keep_the_mean(world: Brokering, side_km: float) -> None:
    traffic = world.demand_mbps
    coarse = sees.told(world, grain_km=side_km)
    np.testing.assert_allclose(traffic @ coarse.score, traffic @ world.score)
    np.testing.assert_array_equal(coarse.free_mbps, world.free_mbps)


def test_what_is_not_told_is_not_blurred(world: Brokering) -> None:
    for name in UNTOLD:
        believed = SYSTEM.design(name).sees(world)
        np.testing.assert_array_equal(believed.score, world.score)
    flat = sees.multicluster(world, noise=1.0)
    np.testing.assert_array_equal(flat.capacity_mbps, sees.brokered(world).capacity_mbps)
    asked = flat.price[flat.offered]
    np.testing.assert_array_equal(asked, world.contract_price[:, world.cdn][flat.offered])


@given(
    markets(tight=False),
    st.sampled_from(TOLD),
    st.sampled_from([{"age_s": 300.0}, {"noise": 0.5}, {"grain_km": 1000.0}]),
    st.integers(0, 3),
)
@settings(max_examples=60, deadline=None)
def test_plans_on_any_belief_are_plans_and_never_beat_the_bound(
    problem: Brokering, name: str, blur: dict[str, float], seed: int
) -> None:
    sharp = market.assign(problem)
    believed = SYSTEM.design(name).sees(problem, **blur, seed=seed)
    made = market.assign(believed)
    if sharp.plan is None or made.plan is None:
        return
    plan = SYSTEM.enact(problem, believed, made.plan)
    broken = SYSTEM.check(problem, plan)
    assert set(broken.frame["limit"]) <= {"capacity"}
    assert sharp.proof.bound is not None
    worth = SYSTEM.measure(problem, plan, None)["objective"]
    assert worth is not None
    assert worth >= sharp.proof.bound - 1e-6 * max(abs(worth), 1.0)


# --- clients that find no room ------------------------------------------------------------


def test_those_move_first_who_lose_least_by_the_bit() -> None:
    transport = Transport(
        cost=np.array([[1.0, 3.0], [1.0, 2.0], [1.0, 9.0]]),
        weight=np.array([2.0, 0.5, 0.5]),
        count=np.array([2, 2, 2]),
        room=np.array([3.0, 10.0]),
    )
    sent = np.array([[2, 0], [2, 0], [2, 0]])  # 6 Mbit/s where 3 have room
    moved, left = relief.relieved(transport, sent)
    # the first loses 1 a Mbit/s, the second 2, the third 16
    assert moved.tolist() == [[0, 2], [2, 0], [2, 0]]
    assert left.tolist() == [0, 0, 0]
    assert sent.sum() == 6


def test_who_finds_no_room_at_all_counts_as_in_the_dearest_cluster() -> None:
    problem = make(
        [("Lyon", 1000.0, 5)],
        [("a", "x", "Lyon", 2.0, 0.0), ("b", "y", "Turin", 1.0, 0.0)],
        scores=[("Lyon", "a", 3.0), ("Lyon", "b", 7.0), ("Turin", "a", 1.0), ("Turin", "b", 1.0)],
    )
    everyone = problem.clients.assign(cluster="a")
    nobody = everyone.assign(clients=0.0)
    for frame in (everyone, nobody):
        done = served(problem, Assignment(assignments=frame))
        assert relief.needed(problem, done)
        assert relief.objective(problem, done) == pytest.approx(2 * 3 + 1 * 7 + 2 * 7)


@given(markets(), st.randoms(use_true_random=False))
@settings(max_examples=40, deadline=None)
def test_nobody_is_lost_and_no_cluster_is_too_full(problem: Brokering, random: object) -> None:
    transport = market.transport_of(problem)
    sent = np.zeros(transport.cost.shape, dtype=np.int64)
    for group, count in enumerate(transport.count.tolist()):
        for _ in range(count):
            sent[group, random.randrange(sent.shape[1])] += 1  # type: ignore[attr-defined]
    moved, left = relief.relieved(transport, sent)
    np.testing.assert_array_equal(moved.sum(axis=1) + left, transport.count)
    assert (transport.weight @ moved <= transport.room * (1 + 1e-6) + 1e-6).all()


@pytest.mark.slow
def test_no_plan_of_the_market_beats_the_bound_and_bad_information_costs() -> None:
    def share(design: str, **blur: float) -> float:
        changes = {f"designs.{design}.sees.{name}": value for name, value in blur.items()}
        scenario = load("brokering/coordination", changes={"problem.clients": 3000} | changes)
        worth = run.solve(scenario, design=design).metrics["objective"]
        assert worth is not None
        return worth

    best = share("omniscient")
    for kind, value in (("age_s", 3600.0), ("noise", 0.8), ("grain_km", 5000.0)):
        assert share("omniscient", **{kind: value}) > best
