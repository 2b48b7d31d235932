"""Rebuilt trees against brute force."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner_models.multicast.designs import partitioned
from planner_models.multicast.plan import tree_repair
from planner_models.multicast.problem import failures
from tests.models.multicast.fabrics import fat


def brute_force_cost(result: tree_repair.Coverage, pods: list[int]) -> float:
    """Return the least cost of a tree, by trying every choice of roots."""
    best = float("inf")
    for count in range(1, len(pods) + 1):
        for roots in combinations(range(len(result.core)), count):
            each = result.entries[np.ix_(list(roots), pods)].min(axis=0)
            best = min(best, tree_repair.ROOT_COST * count + result.core[list(roots)].sum() + each.sum())
    return best


@settings(max_examples=25, deadline=None)
@given(st.integers(2, 4), st.integers(2, 5), st.integers(0, 10**6))
def test_exact_trees_are_the_best_and_greedy_ones_no_better(pods: int, cores: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    entries = rng.choice([0.0, 1.0, np.inf], size=(cores, pods), p=[0.4, 0.2, 0.4])
    coverage = tree_repair.Coverage(entries=entries, core=rng.integers(0, 2, size=cores).astype(float))
    requested = np.arange(pods)
    exact, simple = (
        tree_repair.cover_exactly(coverage, requested),
        tree_repair.cover_greedily(coverage, requested),
    )
    reached = [pod for pod in range(pods) if pod not in exact.missing]
    assert set(exact.missing) == set(np.flatnonzero(~np.isfinite(entries).any(axis=0)).tolist())
    assert simple.missing == exact.missing
    if not reached:
        assert exact.roots == ()
        return
    assert exact.cost == pytest.approx(brute_force_cost(coverage, reached))
    assert exact.gap <= 1e-6
    assert simple.bound - 1e-6 <= exact.cost <= simple.cost + 1e-6
    for result in (exact, simple):
        assert np.isfinite(entries[np.ix_(list(result.roots), reached)]).any(axis=0).all()


def test_one_failure_needs_a_new_root_and_no_entries() -> None:
    problem = fat(k=8, aggregation_copies=2, groups=30, table_size=40, placement="random", seed=1)
    plan = partitioned.partition_addresses(problem).plan
    state = failures.find_working_links(problem.wiring, switches=["aggregation-2-1"])
    made = tree_repair.repair_trees(problem, plan, state)
    assert len(made.table)
    assert (made.table["roots"] == 1).all()
    assert (made.table[["entries", "missing"]] == 0).all(axis=None)
    assert made.gap == 0


def test_where_no_core_reaches_all_pods_several_do_or_entries_are_added() -> None:
    problem = fat(k=4, aggregation_copies=1, groups=20, table_size=40, placement="random", seed=1)
    plan = partitioned.partition_addresses(problem).plan
    # partition 0 is at core-0 alone, and below it at one switch of each pod
    held = problem.distribution(1)
    lost = [
        name
        for name, holds, pod in zip(
            problem.wiring.aggregations, held.aggregation[:, 0], problem.wiring.aggregation_pod, strict=True
        )
        if holds and pod == 1
    ]
    state = failures.find_working_links(problem.wiring, switches=lost)
    alone = tree_repair.repair_trees(problem, plan, state, strangers=False)
    helped = tree_repair.repair_trees(problem, plan, state, strangers=True)
    assert (alone.table["missing"] > 0).any()
    assert (helped.table["missing"] == 0).all()
    assert (helped.table["entries"] > 0).any()
    greedy = tree_repair.repair_trees(problem, plan, state, exact=False)
    assert greedy.table["cost"].sum() >= helped.table["cost"].sum()
    assert greedy.gap >= helped.gap - 1e-12
    assert helped.gap <= 1e-6


def test_rebuilt_roots_reach_their_pods_through_working_links() -> None:
    problem = fat(k=8, aggregation_copies=2, groups=30, table_size=40, placement="random", seed=2)
    plan = partitioned.partition_addresses(problem).plan
    rng = np.random.default_rng(0)
    state = failures.find_working_links(
        problem.wiring, switches=failures.draw_failures(problem.wiring, 12, rng)
    )
    made = tree_repair.repair_trees(problem, plan, state).table.set_index("group")
    pod = problem.wiring.aggregation_pod
    for group, partition, copies in plan.partitions.itertuples(index=False):
        if group not in made.index:
            continue
        index = problem.groups["group"].tolist().index(group)
        pods = np.flatnonzero(problem.edges_in_pod[index])
        result = tree_repair.core_coverage(problem, int(copies), int(partition), state)
        tree_ = tree_repair.cover_exactly(result, pods)
        assert len(tree_.roots) == made.loc[group, "roots"]
        for there in set(pods.tolist()) - set(tree_.missing):
            assert any((state.up[:, root] & (pod == there)).any() for root in tree_.roots)
