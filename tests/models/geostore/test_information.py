"""Observations, plans in truth, and messages."""

from __future__ import annotations

from dataclasses import replace

import pytest

from planner.errors import InputError
from planner_models.geostore import SYSTEM, check
from planner_models.geostore.information import observe, realize
from planner_models.geostore.plan.evaluation import evaluate
from planner_models.geostore.problem import generators
from tests.models.geostore.stores import store


def test_exact_observations_are_the_problem_itself() -> None:
    problem = store(1)
    assert observe(problem) is problem
    noisy = observe(problem, noise=0.3, seed=1)
    assert noisy.use("reads_per_s") != pytest.approx(problem.use("reads_per_s"))
    assert noisy.rtt_ms == pytest.approx(problem.rtt_ms)
    old = observe(problem, age_s=3600.0, seed=1)
    assert old.rtt_ms != pytest.approx(problem.rtt_ms)


def test_coarse_observations_have_the_mean_of_each_square() -> None:
    problem = store(1, regions=8, groups=2, users=6)
    world = observe(problem, granularity_km=40_000.0)
    for users in problem.users_of:
        rates = problem.use("reads_per_s")[users]
        assert world.use("reads_per_s")[users].sum() == pytest.approx(rates.sum())
    assert observe(problem, granularity_km=1.0).use("reads_per_s") == pytest.approx(
        problem.use("reads_per_s")
    )
    unplaced = replace(problem, regions=problem.regions.drop(columns="latitude"))
    with pytest.raises(InputError, match="granularity_km: regions have no latitude and longitude"):
        observe(unplaced, granularity_km=100.0)


def test_a_plan_in_truth_has_true_times_and_servers() -> None:
    truth = generators.small()
    believed = observe(truth, age_s=7200.0, noise=0.3, seed=2)
    plan = SYSTEM.design("optimum").run(believed).plan
    assert plan is not None
    real = realize(truth, believed, plan)
    assert not len(check(truth, real).of_limits(["servers", "rules"]))
    state = evaluate(truth, real)
    assert state.servers == pytest.approx(state.needed_servers)


def test_messages_are_counted() -> None:
    problem = generators.small()
    counts = {}
    for design in SYSTEM.designs:
        plan = design.run(problem).plan
        assert plan is not None
        assert design.signalling is not None
        counts[design.name] = design.signalling(problem, plan).bytes
    assert counts["everywhere"] == 0
    assert counts["optimum"] > counts["near_users"] > 0
