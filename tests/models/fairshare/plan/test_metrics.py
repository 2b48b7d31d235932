"""Metrics of shared stores: tenants that get nothing are counted, and a verdict begins with them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

import planner
from planner_models.fairshare import SYSTEM, SharedStore
from planner_models.fairshare.designs.fair_rates import share_dominant, solve_given
from planner_models.fairshare.designs.optimum import share
from planner_models.fairshare.plan.fair_shares import fair_share_kops
from planner_models.fairshare.plan.metrics import is_starved, least_share_after_loss, measure
from planner_models.fairshare.problem import generators
from planner_models.fairshare.problem.adjustments import adjust
from tests.models.fairshare.stores import make, replicas_of, stores


@pytest.fixture
def store() -> SharedStore:
    return make(
        {"n1": 10.0, "n2": 10.0},
        {"a": (1.0, "elastic", {"p": (8.0, "n1")}), "b": (1.0, "elastic", {"p": (8.0, "n2")})},
    )


def test_a_tenant_without_demand_is_not_starved(store: SharedStore) -> None:
    assert is_starved(store, np.array([8.0, 0.0])).tolist() == [False, True]
    idle = store.with_demand(np.array([8.0, 0.0]))
    assert is_starved(idle, np.array([8.0, 0.0])).tolist() == [False, False]


def test_a_verdict_begins_with_tenants_that_get_nothing(store: SharedStore) -> None:
    run = planner.solve(store, design="fq", changes={"problem.fail_nodes": ["n1", "n2"]})
    assert run.metrics["starved_tenants"] == 2
    assert run.verdict.startswith(
        "2 tenants have a fair share of 0, as no working node has capacity: a, b. fq gives nothing to 2 "
        "tenants. Apart from that, fq gives"
    )


def test_a_tenant_whose_replica_fits_nowhere_comes_before_the_least_share() -> None:
    tenants = {"a": (1.0, "elastic", {"p": (8.0, "n1")}), "b": (1.0, "elastic", {"p": (8.0, "n2")})}
    store = make({"n1": 10.0, "n2": 10.0}, tenants, memory_gb=1.0)  # of one replica a node
    run = planner.solve(store, design="optimum", changes={"problem.fail_nodes": ["n2"]})
    assert run.metrics["min_share"] == 0  # of the 5 kops that one node and equal weights give
    assert run.verdict.startswith("optimum gives nothing to 1 tenant. optimum gives every tenant at least 0%")


def test_first_come_first_served_gives_a_third_to_a_tenant_whose_neighbour_doubles() -> None:
    problem = make(
        {"n1": 12.0},
        {"A": (1.0, "elastic", {"a": (20.0, "n1")}), "B": (1.0, "elastic", {"b": (20.0, "n1")})},
    )
    for design, selected in (("unmodified", 2 / 3), ("fq", 1.0), ("optimum", 1.0)):
        decision = SYSTEM.design(design).run(problem)
        assert measure(problem, decision.plan, None)["isolation"] == pytest.approx(selected), design


def test_a_tenant_that_has_more_than_its_due_may_lose_it_to_one_that_is_due_more() -> None:
    problem = make(
        {"n1": 12.0},
        {"A": (1.0, "elastic", {"a": (3.0, "n1")}), "B": (1.0, "elastic", {"b": (20.0, "n1")})},
    )
    decision = SYSTEM.design("fq").run(problem)
    assert measure(problem, decision.plan, None)["isolation"] == pytest.approx(1.0)


@settings(max_examples=6)
@given(stores())
def test_the_share_after_a_loss_is_the_least_of_linear_programs(problem: SharedStore) -> None:
    replicas = replicas_of(problem)
    lower = 1.0
    for name in problem.node_names:
        failed = adjust(problem, fail_nodes=(name,))
        fair = fair_share_kops(failed)
        levels = share_dominant(failed, replicas, due=fair).levels if fair.sum() > 0 else ((0.0, None),)
        lower = min(lower, levels[0][0] if levels else 1.0)
    assert least_share_after_loss(problem, replicas) == pytest.approx(lower, abs=1e-6)


def test_the_share_after_a_loss_is_that_of_failed_nodes_kept() -> None:
    problem = generators.zipf(
        tenants=6, partitions=4, nodes=4, replicas=2, load=1.5, weights="equal", placed="balanced", seed=1
    )
    replicas = replicas_of(problem)
    shares = []
    for name in problem.node_names:
        failed = adjust(problem, fail_nodes=(name,))
        working = replicas_of(failed)
        kops = solve_given(failed, working).kops
        rate = np.bincount(problem.tenant[working.partition], weights=kops)
        shares.append(float((rate / fair_share_kops(failed)).min()))
    result = least_share_after_loss(problem, replicas)
    assert result is not None
    assert min(shares) <= result + 1e-6
    assert result == pytest.approx(min(shares), rel=0.02)


def test_one_replica_does_not_survive_a_loss_and_several_resources_are_not_measured() -> None:
    assert measure(problem := generators.small(), share(problem).plan, None)["n_minus_1_share"] == 0.0
    several = generators.drf()
    assert measure(several, share(several).plan, None)["n_minus_1_share"] is None


def test_a_failure_costs_what_tenants_get_though_fair_shares_fall_too() -> None:
    """Of three equal nodes, one fails: fair shares are those of two, and all tenants have them."""
    problem = generators.zipf(tenants=3, partitions=6, nodes=3, replicas=2, weights="equal", load=2.0, seed=1)
    failures = planner.failures(problem, design="optimum")
    assert [failure.metrics["min_share"] for failure in failures.failures] == pytest.approx(
        [1.0] * 3, abs=1e-3
    )
    assert [failure.share for failure in failures.failures] == pytest.approx([1 / 3] * 3, abs=1e-3)
    assert not failures.harmless
    assert "loses something" in failures.verdict
    assert "with a least level of" in failures.verdict
