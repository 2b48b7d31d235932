"""Weighted max-min rates against linear programs, and against the definition."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from planner_models.fairshare import SharedStore
from planner_models.fairshare.designs.fair_rates import share_dominant
from planner_models.fairshare.plan.fair_shares import entitlement, fill_level, pool_level
from planner_models.fairshare.plan.max_min import number_sets, serve_reserved, share_max_min
from planner_models.fairshare.plan.plan import Replicas
from planner_models.fairshare.problem import generators
from tests.models.fairshare.stores import make, replicas_of, stores


def rows_of(
    problem: SharedStore, replicas: Replicas
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return what replicas' rates satisfy, written out row by row: A_ub, b_ub, A_eq, b_eq over y and x."""
    count, tenants = len(replicas.partition), len(problem.tenants)
    above, limits, equal = [], [], []
    for n in range(len(problem.nodes)):
        row = np.zeros(count + tenants)
        row[:count] = replicas.node == n
        above.append(row)
        limits.append(problem.rate_kops[n])
    for p in range(len(problem.partitions)):
        row = np.zeros(count + tenants)
        row[:count] = replicas.partition == p
        above.append(row)
        limits.append(problem.demand_kops[p])
        if problem.is_fixed[problem.tenant[p]]:
            row = row.copy()
            row[count + problem.tenant[p]] = -problem.share_of_tenant[p]
            equal.append(row)
    for t in range(tenants):
        row = np.zeros(count + tenants)
        row[:count] = problem.tenant[replicas.partition] == t
        row[count + t] = -1
        equal.append(row)
    return np.array(above), np.array(limits), np.array(equal), np.zeros(len(equal))


def most_of(problem: SharedStore, replicas: Replicas, t: int, lower: np.ndarray) -> float:
    """Return the largest rate of a tenant where others get at least some rates."""
    above, limits, equal, zero = rows_of(problem, replicas)
    count, tenants = len(replicas.partition), len(problem.tenants)
    cost = np.zeros(count + tenants)
    cost[count + t] = -1
    bounds = [(0, None)] * count + [(float(low), None) for low in lower]
    solved = linprog(cost, A_ub=above, b_ub=limits, A_eq=equal, b_eq=zero, bounds=bounds)
    assert solved.status == 0, solved.message
    return float(-solved.fun)


@settings(max_examples=25)
@given(stores())
def test_no_tenant_rises_unless_one_that_is_no_better_off_falls(problem: SharedStore) -> None:
    replicas = replicas_of(problem)
    rate = share_max_min(problem, replicas).rate
    level = rate / entitlement(problem)
    for t in range(len(rate)):
        selected = np.where(level <= level[t] * (1 + 1e-9), rate, 0.0) * (1 - 1e-9)
        assert most_of(problem, replicas, t, selected) <= rate[t] + 1e-5


@settings(max_examples=25)
@given(stores())
def test_flows_have_the_rates_of_linear_programs(problem: SharedStore) -> None:
    replicas = replicas_of(problem)
    shares = share_max_min(problem, replicas)
    assert shares.rate == pytest.approx(share_dominant(problem, replicas).rate, rel=1e-5, abs=1e-5)


@settings(max_examples=25)
@given(stores())
def test_rates_of_replicas_keep_every_limit(problem: SharedStore) -> None:
    replicas = replicas_of(problem)
    shares = share_max_min(problem, replicas)
    above, limits, equal, _ = rows_of(problem, replicas)
    both = np.concatenate([shares.kops, shares.rate])
    assert (above @ both <= limits * (1 + 1e-8) + 1e-8).all()
    assert np.abs(equal @ both).max() <= 1e-7
    assert (shares.kops >= 0).all()


@settings(max_examples=25)
@given(stores(mixes=("elastic",)))
def test_fair_rates_of_elastic_tenants_have_the_largest_throughput(problem: SharedStore) -> None:
    replicas = replicas_of(problem)
    above, limits, equal, zero = rows_of(problem, replicas)
    count = len(replicas.partition)
    cost = np.concatenate([-np.ones(count), np.zeros(len(problem.tenants))])
    largest_solution = linprog(cost, A_ub=above, b_ub=limits, A_eq=equal, b_eq=zero)
    assert share_max_min(problem, replicas).rate.sum() == pytest.approx(
        -largest_solution.fun, rel=1e-6, abs=1e-6
    )


def test_fairness_costs_throughput_where_requests_keep_their_proportions() -> None:
    problem = make(
        {"n1": 10.0, "n2": 10.0},
        {
            "A": (1.0, "fixed", {"a": (20.0, "n1")}),
            "B": (1.0, "fixed", {"b": (10.0, "n1"), "c": (10.0, "n2")}),
        },
    )
    shares = share_max_min(problem, replicas_of(problem))
    assert shares.rate == pytest.approx([20 / 3, 20 / 3])
    assert most_of(problem, replicas_of(problem), 1, np.zeros(2)) == pytest.approx(20.0)


def test_levels_name_the_full_nodes() -> None:
    problem = make(
        {"n1": 10.0, "n2": 30.0},
        {
            "A": (1.0, "elastic", {"a": (50.0, "n1")}),
            "B": (1.0, "elastic", {"b": (50.0, "n1")}),
            "C": (1.0, "elastic", {"c": (50.0, "n2")}),
        },
    )
    levels = share_max_min(problem, replicas_of(problem)).levels
    assert [level.tenants.tolist() for level in levels] == [[0, 1], [2]]
    assert [level.nodes.tolist() for level in levels] == [[0], [1]]


@given(st.integers(0, 10_000))
def test_the_level_of_a_pool_fills_it(seed: int) -> None:
    random = np.random.default_rng(seed)
    cost, demand, due = (random.integers(0, 9, size=6).astype(float) for _ in range(3))
    capacity = float(random.integers(1, 60))
    level = fill_level(cost, demand, due, capacity)
    if np.isinf(level):
        reached = np.where(due > 0, demand, 0.0)
        assert cost @ np.where(due > 0, demand, 0.0) <= capacity + 1e-9 or cost @ reached <= cost @ demand
    else:
        assert cost @ np.minimum(demand, level * due) == pytest.approx(capacity)


def test_there_are_at_most_two_flows_for_a_level_of_elastic_tenants() -> None:
    problem = generators.zipf(
        tenants=80, partitions=3, nodes=20, replicas=1, mix="elastic", placed="random", seed=2
    )
    shares = share_max_min(problem, replicas_of(problem))
    levels = [level.level for level in shares.levels]
    assert len(levels) > 5
    assert levels == sorted(levels)
    assert shares.flows <= 2 * len(levels) + 1
    share = shares.rate / entitlement(problem)
    for level in shares.levels:
        assert share[level.tenants] == pytest.approx(level.level, rel=1e-9)
    load = np.bincount(replicas_of(problem).node, weights=shares.kops, minlength=len(problem.nodes))
    full = np.concatenate([level.nodes for level in shares.levels])
    assert load[full] == pytest.approx(problem.rate_kops[full])


def test_a_large_store_has_one_level() -> None:
    problem = generators.zipf(tenants=60, partitions=20, nodes=12, replicas=3, placed="random", seed=3)
    shares = share_max_min(problem, replicas_of(problem))
    assert len(shares.levels) == 1
    assert shares.levels[0].level == pytest.approx(pool_level(problem), rel=1e-6)


def test_a_partition_without_replica_stops_a_tenant_of_fixed_mix_alone() -> None:
    own_values = {"a": (5.0, "n1"), "b": (5.0, "")}
    fixed = make({"n1": 10.0}, {"A": (1.0, "fixed", own_values), "B": (1.0, "elastic", {"c": (9.0, "n1")})})
    assert share_max_min(fixed, replicas_of(fixed)).rate.tolist() == pytest.approx([0.0, 9.0])
    elastic = make(
        {"n1": 10.0}, {"A": (1.0, "elastic", own_values), "B": (1.0, "elastic", {"c": (9.0, "n1")})}
    )
    assert share_max_min(elastic, replicas_of(elastic)).rate.tolist() == pytest.approx([5.0, 5.0])


def test_partitions_are_numbered_by_the_nodes_of_their_replicas() -> None:
    replicas = Replicas(np.array([0, 0, 1, 2, 2, 4]), np.array([1, 2, 1, 1, 2, 1]))
    numbers = number_sets(replicas, 5, 3)
    assert numbers[0] == numbers[2]
    assert numbers[1] == numbers[4]
    assert len(set(numbers.tolist())) == 3


def reserve(problem: SharedStore, seed: int) -> SharedStore:
    """Return a store in which some tenants have reserved rates and limits."""
    rng = np.random.default_rng(seed)
    count = len(problem.tenants)
    return problem.with_tenants(
        reserved_kops=rng.choice([np.nan, 1.0, 4.0], count), limit_kops=rng.choice([np.nan, 4.0, 9.0], count)
    )


@settings(max_examples=25)
@given(stores(), st.integers(0, 1_000))
def test_reserved_rates_are_kept_as_far_as_replicas_can(problem: SharedStore, seed: int) -> None:
    problem = reserve(problem, seed)
    replicas, reserved = replicas_of(problem), problem.reserved_kops
    kept = serve_reserved(problem, replicas)
    assert (kept <= reserved).all()
    for t in np.flatnonzero(kept < reserved * (1 - 1e-9)):
        share = np.divide(kept, reserved, out=np.ones_like(kept), where=reserved > 0)
        lower = np.where(share <= share[t] * (1 + 1e-9), kept, 0.0) * (1 - 1e-9)
        assert most_of(problem, replicas, int(t), lower) <= kept[t] + 1e-5


@settings(max_examples=25)
@given(stores(), st.integers(0, 1_000))
def test_no_tenant_rises_above_its_reserved_rate_at_the_cost_of_one_below(
    problem: SharedStore, seed: int
) -> None:
    problem = reserve(problem, seed)
    replicas, due = replicas_of(problem), entitlement(problem)
    kept = serve_reserved(problem, replicas)
    shares = share_max_min(problem, replicas, reserved_kops=kept)
    rate = shares.rate
    assert (rate >= kept * (1 - 1e-6) - 1e-9).all()
    assert (rate <= problem.limit_kops * (1 + 1e-9)).all()
    assert rate == pytest.approx(
        share_dominant(problem, replicas, reserved_kops=kept).rate, rel=1e-5, abs=1e-5
    )
    level = rate / due
    for t in range(len(rate)):
        if rate[t] < problem.demand_of_tenant[t] * (1 - 1e-9):
            lower = np.maximum(np.where(level <= level[t] * (1 + 1e-9), rate, 0.0), kept) * (1 - 1e-8)
            assert most_of(problem, replicas, t, lower) <= rate[t] + 1e-5
