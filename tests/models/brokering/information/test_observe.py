"""Observations with age, noise and granularity, and plans made on them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.contract.parameters import parameters_of
from planner.runs import evaluation
from planner.scenarios.scenario import load
from planner_models.brokering import SYSTEM, Brokering
from planner_models.brokering.designs.broker import assignment
from planner_models.brokering.information import observe
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
    assert observe.estimate(world, seed=7, swing=2.0) is world


@pytest.mark.parametrize("name", ANNOUNCED)
def test_designs_with_announcements_have_degradation_parameters(name: str) -> None:
    parameters = parameters_of(SYSTEM.design(name).observe)
    assert {*DEGRADATIONS, "seed"} <= set(parameters)
    assert all(parameters[degradation].default == 0 for degradation in DEGRADATIONS)


@pytest.mark.parametrize("name", UNANNOUNCED)
def test_designs_without_announcements_have_no_degradation_parameters(name: str) -> None:
    assert not {*DEGRADATIONS, "seed"} & set(parameters_of(SYSTEM.design(name).observe))


def test_age_changes_other_traffic_and_scores_and_nothing_else(world: Brokering) -> None:
    old = observe.estimate(world, age_s=60, seed=1)
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
    np.testing.assert_array_equal(observe.estimate(world, age_s=60, seed=1).score, old.score)
    assert (observe.estimate(world, age_s=60, seed=2).score != old.score).any()


@pytest.mark.parametrize(
    ("age_s", "spread"), [(30.0, 0.3 * np.sqrt(2 * (1 - np.exp(-0.1)))), (1e9, 0.3 * np.sqrt(2))]
)
def test_age_changes_scores_by_the_deviation_of_the_process(
    world: Brokering, age_s: float, spread: float
) -> None:
    old = observe.estimate(world, age_s=age_s, score_swing=0.3, seed=0)
    change = np.log(old.score / world.score)
    assert change.std() == pytest.approx(spread, rel=0.02)
    assert change.mean() == pytest.approx(0, abs=0.01)


def test_noise_is_in_performance_and_capacity(world: Brokering) -> None:
    noisy = observe.estimate(world, noise=0.5, seed=1)
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
        zip(order, observe.estimate(problem, granularity_km=1000).score[:, 0].tolist(), strict=True)
    )
    assert coarse == {"Lyon": 20.0, "Turin": 20.0, "Oslo": 90.0}
    fine = observe.estimate(problem, granularity_km=10).score[:, 0]
    np.testing.assert_allclose(fine, problem.score[:, 0])


@pytest.mark.parametrize("side_km", [50.0, 500.0, 40_000.0])
def test_squares_keep_the_mean(world: Brokering, side_km: float) -> None:
    traffic = world.demand_mbps
    coarse = observe.estimate(world, granularity_km=side_km)
    np.testing.assert_allclose(traffic @ coarse.score, traffic @ world.score)
    np.testing.assert_array_equal(coarse.residual_mbps, world.residual_mbps)


def test_designs_without_announcements_observe_the_truth(world: Brokering) -> None:
    for name in UNANNOUNCED:
        observed = SYSTEM.design(name).observe(world)
        np.testing.assert_array_equal(observed.score, world.score)
    flat = observe.multicluster(world, noise=1.0)
    np.testing.assert_array_equal(flat.capacity_mbps, observe.brokered(world).capacity_mbps)
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
        (1, "contract", "guessed", observe.brokered(problem)),
        (100, "cluster", "total", observe.best_lookup(problem)),
        (100, "cluster", "free", observe.marketplace(problem)),
    ):
        made = observe.protocol(problem, bids=bids, price=price, capacity=capacity)  # type: ignore[arg-type]
        assert np.array_equal(made.offered, twin.offered)
        assert np.array_equal(made.price[made.offered], twin.price[twin.offered])
        assert np.array_equal(made.residual_mbps, twin.residual_mbps)
