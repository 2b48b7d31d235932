"""Rates of the steady state: closed forms, and the conditions of each discipline."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

import planner
from planner_models.fairshare import SharedStore
from planner_models.fairshare.plan.plan import EVEN, FAIR_QUEUING, FIRST_COME, WINDOWS, sum_by_node
from planner_models.fairshare.plan.service import serve, split_evenly
from planner_models.fairshare.problem import generators
from tests.models.fairshare.stores import make, replicas_of, stores


def rates(
    problem: SharedStore, queueing: str, weight: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return the rate of each tenant, and by tenant and node."""
    replicas = replicas_of(problem)
    shape = (len(problem.tenants), len(problem.nodes))
    local = np.ones(shape) if weight is None else weight
    split = split_evenly(replicas, len(problem.partitions))
    served = serve(problem, replicas, split, local, queueing=queueing, replica_choice=EVEN)
    by_node = sum_by_node(problem, replicas, served.kops)
    return by_node.sum(axis=1), by_node


def test_fair_queuing_of_one_node_is_water_filling() -> None:
    problem = make(
        {"n1": 12.0},
        {
            "A": (1.0, "elastic", {"a": (2.0, "n1")}),
            "B": (1.0, "fixed", {"b": (20.0, "n1")}),
            "C": (1.0, "elastic", {"c": (20.0, "n1")}),
        },
    )
    weight = np.array([[1.0], [1.0], [4.0]])
    assert rates(problem, FAIR_QUEUING, weight)[0] == pytest.approx([2.0, 2.0, 8.0])


def test_first_come_first_served_follows_demand() -> None:
    problem = make(
        {"n1": 12.0},
        {"A": (9.0, "fixed", {"a": (10.0, "n1")}), "B": (1.0, "elastic", {"b": (20.0, "n1")})},
    )
    assert rates(problem, FIRST_COME)[0] == pytest.approx([4.0, 8.0])


def test_a_slow_partition_holds_back_a_tenant_of_fixed_mix() -> None:
    problem = make(
        {"n1": 10.0, "n2": 10.0},
        {
            "A": (1.0, "fixed", {"a": (10.0, "n1"), "b": (10.0, "n2")}),
            "B": (1.0, "elastic", {"c": (30.0, "n1")}),
        },
    )
    rate, by_node = rates(problem, FAIR_QUEUING)
    assert rate == pytest.approx([10.0, 5.0], rel=1e-6)
    assert by_node[0] == pytest.approx([5.0, 5.0], rel=1e-6)


@settings(max_examples=25)
@given(stores(), st.sampled_from([FAIR_QUEUING, FIRST_COME]))
def test_no_node_serves_more_than_its_rate_or_the_demand(problem: SharedStore, queueing: str) -> None:
    rate, by_node = rates(problem, queueing)
    assert (by_node.sum(axis=0) <= problem.rate_kops * (1 + 1e-9) + 1e-12).all()
    assert (rate <= problem.demand_of_tenant * (1 + 1e-9) + 1e-12).all()


@settings(max_examples=25)
@given(stores(mixes=("fixed",)))
def test_fair_queuing_holds_each_tenant_back_at_a_full_node(problem: SharedStore) -> None:
    """At that node no tenant has more of it than this one, for equal weights."""
    rate, by_node = rates(problem, FAIR_QUEUING)
    load, demand = by_node.sum(axis=0), problem.demand_of_tenant
    for t in np.flatnonzero(rate < demand * (1 - 1e-6)):
        full = load >= problem.rate_kops * (1 - 1e-5)
        largest = by_node[t] >= by_node.max(axis=0) * (1 - 1e-4)
        assert (full & largest & (by_node[t] > 0)).any()


@settings(max_examples=25)
@given(stores(mixes=("fixed",), tenants=3, nodes=3))
def test_first_come_first_served_is_proportionally_fair(problem: SharedStore) -> None:
    rate, _ = rates(problem, FIRST_COME)
    replicas, demand = replicas_of(problem), problem.demand_of_tenant
    wants = demand > 0
    share = sum_by_node(
        problem,
        replicas,
        problem.share_of_tenant[replicas.partition] * split_evenly(replicas, len(problem.partitions)),
    )[wants]
    start = np.full(int(wants.sum()), 1e-2)
    solved = minimize(
        lambda x: -float(demand[wants] @ np.log(x)),
        start,
        jac=lambda x: -demand[wants] / x,
        bounds=[(1e-6, d) for d in demand[wants]],
        constraints={
            "type": "ineq",
            "fun": lambda x: problem.rate_kops - share.T @ x,
            "jac": lambda _: -share.T,
        },
        method="SLSQP",
        options={"maxiter": 500, "ftol": 1e-12},
    )
    value = float(demand[wants] @ np.log(np.maximum(rate[wants], 1e-9)))
    assert value >= -solved.fun - 1e-4 * abs(solved.fun) - 1e-4


def test_windows_move_requests_to_the_idle_node() -> None:
    problem = make(
        {"n1": 10.0, "n2": 10.0},
        {
            "A": (1.0, "fixed", {"a": (20.0, "n1 n2")}),
            "B": (1.0, "fixed", {"b": (10.0, "n1")}),
        },
    )
    replicas = replicas_of(problem)
    split = split_evenly(replicas, len(problem.partitions))
    weight = np.ones((2, 2))
    even = serve(problem, replicas, split, weight, queueing=FAIR_QUEUING, replica_choice=EVEN)
    selected = serve(problem, replicas, split, weight, queueing=FAIR_QUEUING, replica_choice=WINDOWS)
    assert even.kops.sum() == pytest.approx(15.0)
    assert selected.kops.sum() > 19.0


def test_a_windows_rule_without_its_factor_settles_below_one_request() -> None:
    """As printed, w <- (1 - a) w + a (base / latency) tends to base / latency, at most 1."""
    alpha, base = 0.1, 1.0
    for latency in (1.0, 2.0, 5.0):
        window = 30.0
        for _ in range(2_000):
            window = (1 - alpha) * window + alpha * base / latency
        assert window == pytest.approx(base / latency)
        assert window <= 1.0 + 1e-9


def test_a_store_of_all_figures_is_served() -> None:
    for preset in (generators.figure_3, generators.figure_4a, generators.drf):
        problem = preset(seed=1)
        assert problem.size()["tenants"] > 0


@pytest.mark.slow
def test_replica_selection_raises_the_least_share_only_with_weights_that_follow() -> None:
    problem = generators.zipf(tenants=100, partitions=20, nodes=20, replicas=3, seed=1)
    runs = {name: planner.solve(problem, design=name) for name in ("fq_pp", "fq_pp_rs", "pisces")}
    share = {name: run.metrics["min_share"] or 0.0 for name, run in runs.items()}
    assert share["fq_pp_rs"] <= share["fq_pp"] * (1 + 1e-6)
    assert share["pisces"] > 0.98
    served = {name: run.metrics["throughput_kops"] or 0.0 for name, run in runs.items()}
    assert served["fq_pp_rs"] >= served["fq_pp"] * (1 - 1e-3)
    assert runs["fq_pp_rs"].metrics["messages"] == runs["fq_pp"].metrics["messages"]


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("weights", ["alike", "of tenants", "small for half"])
def test_fair_queuing_of_many_nodes_is_a_steady_state(seed: int, weights: str) -> None:
    """Each tenant that wants more is at its share of a full node; relaxation used to take turns here."""
    problem = generators.zipf(
        tenants=40, partitions=10, nodes=10, replicas=2, placed="random", seed=seed, load=3.0
    )
    generator = np.random.default_rng(seed)
    local = np.ones((40, 10))
    if weights != "alike":
        local *= generator.uniform(0.5, 2.0, size=(40, 1))
    if weights == "small for half":
        local[::2] *= 1e-6
    rate, by_node = rates(problem, FAIR_QUEUING, local)
    load, demand = by_node.sum(axis=0), problem.demand_of_tenant
    assert (load <= problem.rate_kops * (1 + 1e-9)).all()
    level = by_node / local
    for t in np.flatnonzero(rate < demand * (1 - 1e-6)):
        full = load >= problem.rate_kops * (1 - 1e-6)
        largest = level[t] >= level.max(axis=0) * (1 - 1e-6)
        assert (full & largest & (by_node[t] > 0)).any()
