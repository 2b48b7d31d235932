"""Tuned weights: the cost function, the search's own books, and what the plan says."""

from __future__ import annotations

import itertools
import time
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner import Options
from planner_models.traffic import Traffic, check
from planner_models.traffic.designs import ecmp, link_weights
from planner_models.traffic.designs.optimum import optimum
from planner_models.traffic.problem import generators
from tests.models.traffic.networks import both_ways, network, problems

# the shortest way has little capacity, two ways around it have more
TRIANGLE = network(
    both_ways([("a", "b", 1.0), ("a", "c", 3.0), ("c", "b", 3.0), ("a", "d", 3.0), ("d", "b", 3.0)]),
    [("a", "b", 4.0), ("a", "c", 1.0)],
)


def used(problem: Traffic, weight: np.ndarray) -> float:
    plan = ecmp.route(replace(problem, links=problem.links.assign(weight=weight.astype(float)))).plan
    assert plan is not None
    return float(plan.links["utilization"].max())


def test_the_cost_of_fortz_and_thorup() -> None:
    problem = network([("a", "b", 1.0)], [("a", "b", 1.0)])
    parts = {1 / 3: 1 / 3, 2 / 3: 4 / 3, 0.9: 11 / 3, 1.0: 32 / 3, 1.1: 182 / 3, 1.2: 1682 / 3}
    for load, cost in parts.items():
        assert link_weights.congestion(problem, np.array([load])) == pytest.approx(cost)


def test_small_networks_are_solved_as_by_trying_everything() -> None:
    best = min(
        used(TRIANGLE, np.repeat(choice, 2)[[0, 2, 4, 6, 8, 1, 3, 5, 7, 9]])
        for choice in itertools.product((1, 3), repeat=5)
    )
    plan = link_weights.route(TRIANGLE, largest=5, evaluations=3000).plan
    assert plan is not None
    assert float(plan.links["utilization"].max()) <= best + 1e-9


@pytest.mark.slow
@given(problems(), st.integers(0, 20), st.sampled_from(["utilization", "congestion"]))
def test_plan_weights_and_claims_agree(problem: Traffic, seed: int, goal: link_weights.Goal) -> None:
    decision = link_weights.route(problem, goal=goal, evaluations=60, largest=8, seed=seed)
    plan = decision.plan
    assert plan is not None
    assert plan.weights is not None
    assert check(problem, plan).of_limits({"demand"}).frame.empty
    weight = plan.weights["weight"].to_numpy(float)
    assert ((weight >= 1) & (weight <= 8) & (weight == np.rint(weight))).all()
    assert decision.proof.objective == pytest.approx(used(problem, weight))


@pytest.mark.slow
@given(problems(), st.integers(0, 20))
def test_the_scores_of_the_search_are_those_of_its_weights(problem: Traffic, seed: int) -> None:
    search = link_weights._Search(
        problem, link_weights._integer_weights(problem.weight, 8), "congestion", 8, None, seed
    )
    search.run(80)
    assert search.state.score[0] == pytest.approx(used(problem, search.state.weight), rel=1e-9)
    assert search.state.best_score[0] == pytest.approx(used(problem, search.state.best), rel=1e-9)


@pytest.mark.slow
def test_the_search_improves_on_the_network_as_it_is() -> None:
    problem = generators.germany50()
    decision = link_weights.route(problem, evaluations=3000)
    before = ecmp.route(problem).plan
    assert before is not None
    assert decision.proof.objective is not None
    bound = optimum.route(problem, objective="utilization").proof.bound
    assert bound is not None
    assert bound < decision.proof.objective < 0.98 * float(before.links["utilization"].max())


@pytest.mark.parametrize("changes", [0, 1, 3])
def test_the_limit_on_changes_is_kept(changes: int) -> None:
    plan = link_weights.route(TRIANGLE, changes=changes, evaluations=500).plan
    assert plan is not None
    assert plan.weights is not None
    assert (plan.weights["weight"].to_numpy() != TRIANGLE.weight).sum() <= changes


def test_the_next_search_starts_from_the_last_weights() -> None:
    problem = generators.abilene()
    first = link_weights.route(problem, evaluations=2000)
    again = link_weights.route(problem, evaluations=0, previous=first)
    assert first.plan is not None
    assert again.plan is not None
    assert again.plan.weights is not None
    assert again.plan.weights.equals(first.plan.weights)


def test_a_time_limit_ends_the_search() -> None:
    start = time.perf_counter()
    decision = link_weights.route(generators.abilene(), evaluations=10**9, options=Options(time_limit_s=0.3))
    assert decision.plan is not None
    assert time.perf_counter() - start < 30  # all evaluations would take hours


def test_weights_are_a_table_of_the_plan() -> None:
    plan = link_weights.route(TRIANGLE, evaluations=10).plan
    assert plan is not None
    assert list(plan.to_tables()["weights"]) == ["tail", "head", "parallel", "weight"]


@pytest.mark.slow
@given(problems())
def test_no_routing_is_better_than_the_bound_of_weights(problem: Traffic) -> None:
    proof = link_weights.route(problem, evaluations=50).proof
    free = optimum.route(problem, objective="utilization", method="lp").proof
    assert proof.bound is not None
    assert proof.objective is not None
    assert free.objective is not None
    assert proof.bound_scope == "all routings that serve all demand"
    assert free.objective * (1 - 1e-4) <= proof.bound <= free.objective * (1 + 1e-6)
    assert proof.bound <= proof.objective


def test_weights_that_reach_the_bound_are_proven() -> None:
    problem = network(both_ways([("a", "b", 2.0), ("b", "c", 2.0)]), [("a", "c", 1.0), ("c", "b", 1.0)])
    started = time.perf_counter()
    proof = link_weights.route(problem, evaluations=10**9).proof
    assert str(proof.status) == "optimal"
    assert proof.objective == proof.bound == pytest.approx(0.5)
    assert time.perf_counter() - started < 30
