"""Metrics of shared stores: tenants that get nothing are counted, and a verdict begins with them."""

from __future__ import annotations

import numpy as np
import pytest

import planner
from planner_models.fairshare import SharedStore
from planner_models.fairshare.plan.metrics import is_starved
from tests.models.fairshare.stores import make


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
