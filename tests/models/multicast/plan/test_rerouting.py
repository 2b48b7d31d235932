"""Statistics of local rerouting."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner_models.multicast import SYSTEM
from planner_models.multicast.designs import partitioned
from planner_models.multicast.plan import rerouting
from planner_models.multicast.problem import failures
from tests.models.multicast.fabrics import fat, fat_of_kind


def test_without_failures_nothing_is_longer_and_nobody_is_lost() -> None:
    problem = fat_of_kind("ab", 8, 2, 0, placement="random")
    plan = partitioned.partition_addresses(problem).plan
    result = rerouting.reroute_groups(problem, plan, failures.find_working_links(problem.wiring))
    assert (result.stretch == 1).all()
    assert (result.unreachable == 0).all()


def test_pods_are_lost_as_often_as_all_their_copies_fail() -> None:
    problem = fat(k=8, aggregation_copies=2, groups=60, table_size=60, placement="random", tenants=1)
    plan = partitioned.partition_addresses(problem, choose="arrival").plan
    for failed in (4, 8):
        lost = []
        for seed in range(60):
            rng = np.random.default_rng(seed)
            state = failures.find_working_links(
                problem.wiring, switches=failures.draw_failures(problem.wiring, failed, rng)
            )
            held = problem.distribution(2)
            each_part = [
                rerouting.find_detours(problem.wiring, held, share, state) for share in range(held.partitions)
            ]
            lost += [np.isinf(each.hops).all(axis=0).mean() for each in each_part]
        expected = rerouting.expected_unreachable(switches=32, copies=2, failed=failed)
        assert np.mean(lost) == pytest.approx(expected, rel=0.2)
        result = rerouting.reroute_groups(problem, plan, state)
        assert np.nanmin(result.stretch) >= 1
        assert ((result.unreachable >= 0) & (result.unreachable <= 1)).all()


def test_more_failures_reach_fewer() -> None:
    problem = fat(k=8, aggregation_copies=2, groups=60, table_size=60, placement="random")
    plan = partitioned.partition_addresses(problem, choose="arrival").plan
    order = np.random.default_rng(0).permutation(len(problem.wiring.aggregations))
    last = 0.0
    for count in (0, 5, 10, 20, 32):
        names = problem.wiring.aggregations[order[:count]].tolist()
        state = failures.find_working_links(problem.wiring, switches=names)
        mean = rerouting.reroute_groups(problem, plan, state).unreachable.mean()
        assert mean >= last - 1e-9
        last = mean
    assert last > 0.5


def test_cost_of_section_3_3_1() -> None:
    assert rerouting.rerouting_cost(48) == rerouting.ReroutingCost(
        identifiers=72, identifier_bits=7, edge_rules=24, aggregation_rules=72
    )


def test_hosts_of_a_failed_edge_switch_neither_send_nor_receive() -> None:
    problem = fat_of_kind("ab", 4, 1, 3, placement="random")
    for limit in (100, 0):  # with entries, and by unicast
        sized = SYSTEM.problem.adjust(problem, table_size=limit)
        plan = partitioned.partition_addresses(sized).plan
        assert plan is not None
        sender = rerouting.draw_senders(sized)
        for edge, name in enumerate(sized.wiring.edges):
            state = failures.find_working_links(sized.wiring, switches=[name])
            missed = rerouting.find_missed_members(sized, plan, state)
            index = sized.edge_of_host[sized.host_of]
            expected = (index == edge) | (sender[sized.group_of] == edge)
            np.testing.assert_array_equal(missed, expected)


def test_members_missed_are_the_unreachable_ones() -> None:
    problem = fat(k=8, aggregation_copies=2, groups=60, table_size=60, placement="random")
    plan = partitioned.partition_addresses(problem, choose="arrival").plan
    assert plan is not None
    names = [*problem.wiring.aggregations[:9], *problem.wiring.edges[::5]]
    state = failures.find_working_links(problem.wiring, switches=names)
    result = rerouting.reroute_groups(problem, plan, state)
    missed = rerouting.find_missed_members(problem, plan, state)
    share = np.bincount(problem.group_of, missed, minlength=60) / problem.member_counts
    rows = problem.group_names.get_indexer(plan.partitions["group"])
    np.testing.assert_allclose(share[rows], result.unreachable)


def test_unicast_needs_a_way_between_edge_switches() -> None:
    problem = SYSTEM.problem.adjust(fat(), table_size=0)
    plan = partitioned.partition_addresses(problem).plan
    assert plan is not None
    assert not len(plan.partitions)
    cut = [name for name in problem.wiring.aggregations if name.startswith("aggregation-0-")]
    state = failures.find_working_links(problem.wiring, switches=cut)
    missed = rerouting.find_missed_members(problem, plan, state)
    sender, index = rerouting.draw_senders(problem)[problem.group_of], problem.edge_of_host[problem.host_of]
    apart = (sender != index) & ((sender < 2) | (index < 2))
    np.testing.assert_array_equal(missed, apart)


def brute_force_cost(result: rerouting.Coverage, pods: list[int]) -> float:
    """Return the least cost of a tree, by trying every choice of roots."""
    best = float("inf")
    for count in range(1, len(pods) + 1):
        for roots in combinations(range(len(result.core)), count):
            each = result.entries[np.ix_(list(roots), pods)].min(axis=0)
            best = min(best, rerouting.ROOT_COST * count + result.core[list(roots)].sum() + each.sum())
    return best


@settings(max_examples=25, deadline=None)
@given(st.integers(2, 4), st.integers(2, 5), st.integers(0, 10**6))
def test_exact_trees_are_the_best_and_greedy_ones_no_better(pods: int, cores: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    entries = rng.choice([0.0, 1.0, np.inf], size=(cores, pods), p=[0.4, 0.2, 0.4])
    coverage = rerouting.Coverage(entries=entries, core=rng.integers(0, 2, size=cores).astype(float))
    requested = np.arange(pods)
    exact, simple = (
        rerouting.cover_exactly(coverage, requested),
        rerouting.cover_greedily(coverage, requested),
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
    made = rerouting.repair_trees(problem, plan, state)
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
    alone = rerouting.repair_trees(problem, plan, state, strangers=False)
    helped = rerouting.repair_trees(problem, plan, state, strangers=True)
    assert (alone.table["missing"] > 0).any()
    assert (helped.table["missing"] == 0).all()
    assert (helped.table["entries"] > 0).any()
    greedy = rerouting.repair_trees(problem, plan, state, exact=False)
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
    made = rerouting.repair_trees(problem, plan, state).table.set_index("group")
    pod = problem.wiring.aggregation_pod
    for group, partition, copies in plan.partitions.itertuples(index=False):
        if group not in made.index:
            continue
        index = problem.groups["group"].tolist().index(group)
        pods = np.flatnonzero(problem.edges_in_pod[index])
        result = rerouting.core_coverage(problem, int(copies), int(partition), state)
        tree_ = rerouting.cover_exactly(result, pods)
        assert len(tree_.roots) == made.loc[group, "roots"]
        for there in set(pods.tolist()) - set(tree_.missing):
            assert any((state.up[:, root] & (pod == there)).any() for root in tree_.roots)
