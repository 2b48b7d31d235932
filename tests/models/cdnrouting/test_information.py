"""Observations that are old or noisy, and how plans made on them play out."""

from __future__ import annotations

import numpy as np
import pytest

from planner_models.cdnrouting.designs import joint, separate
from planner_models.cdnrouting.information import observe, realize
from planner_models.cdnrouting.plan.check import evaluate
from planner_models.cdnrouting.problem import generators
from planner_models.cdnrouting.problem.adjustments import adjust
from tests.models.cdnrouting.deliveries import with_capacity


def test_exact_observation_is_the_problem_itself() -> None:
    problem = generators.small()
    assert observe(problem) is problem


def test_old_rates_differ_and_are_the_same_again() -> None:
    problem = generators.small()
    old, again, other = (observe(problem, age_s=600.0, seed=seed) for seed in (1, 1, 2))
    assert (old.rate_mbps == again.rate_mbps).all()
    assert (old.group_mbps != problem.group_mbps).all()
    assert (old.rate_mbps != other.rate_mbps).all()


def test_a_plan_serves_true_clients_in_its_shares() -> None:
    truth = generators.small()
    observed = observe(truth, noise=0.3, seed=1)
    plan = joint.plan(observed).plan
    assert plan is not None
    (before,), (after,) = evaluate(observed, plan), evaluate(truth, realize(truth, observed, plan))
    assert after.assigned.sum(axis=1) == pytest.approx(truth.group_mbps, rel=1e-6)
    share = before.assigned / before.assigned.sum(axis=1, keepdims=True)
    assert after.assigned / after.assigned.sum(axis=1, keepdims=True) == pytest.approx(share)


def test_a_cluster_that_is_asked_for_more_than_its_capacity_serves_a_share_of_all() -> None:
    truth = with_capacity(generators.small(), 0.7)
    observed = adjust(truth, client_scale=0.4)
    plan = separate.plan(observed).plan
    assert plan is not None
    realized = realize(truth, observed, plan)
    (before,), (after,) = evaluate(observed, plan), evaluate(truth, realized)
    asked = before.cluster_mbps / 0.4
    assert (asked > truth.capacity_mbps).any()
    assert after.cluster_mbps == pytest.approx(np.minimum(asked, truth.capacity_mbps))
    assert realized.shed is not None
    assert realized.shed["mbps"].sum() == pytest.approx(after.unserved_mbps)
    assert after.unserved_mbps == pytest.approx(asked.sum() - after.cluster_mbps.sum())
