"""Agglomerative clustering against the greedy, and against bounds."""

from __future__ import annotations

import numpy as np
import pytest

from planner.errors import InputError
from planner_models.multicast.designs.channelization import (
    agglomerative_clustering,
    algorithm2,
    local_search,
    p_median,
    pair_merging,
)
from planner_models.multicast.plan import meta_groups
from tests.models.multicast.switches import arrays, busy_switch, plain_extra


@pytest.mark.slow
def test_more_rounds_are_never_worse_and_merging_keeps_the_cheapest_pairs() -> None:
    rng = np.random.default_rng(3)
    masks = rng.integers(1, 2**10, 300).astype(np.uint64)
    rates = rng.uniform(1, 10, 300)
    costs = [
        meta_groups.extra_mbps(
            masks, rates, agglomerative_clustering.aggregate(masks, rates, table_size=40, rounds=rounds)
        )
        for rounds in (0, 1, 4)
    ]
    assert costs == sorted(costs, reverse=True)
    by_pass = algorithm2.aggregate(masks, rates, table_size=40, ports=10)
    assert costs[-1] < meta_groups.extra_mbps(masks, rates, by_pass)


@pytest.mark.parametrize("size", [1, 5, 150, 700])
def test_many_port_sets_merge_as_well_as_by_the_whole_greedy(size: int) -> None:
    masks, rates = busy_switch(1400, 24)
    sets, weights, _ = meta_groups.distinct_sets(masks, rates)
    assert len(sets) > max(
        agglomerative_clustering.MIN_EXACT_UNIONS, agglomerative_clustering.EXACT_MERGE_FACTOR * size
    )  # so that pairs alike go first
    full = local_search.reassign_sets(sets, weights, pair_merging.merge_pairs(sets, weights, size))
    greedy = local_search.total_mbps(sets, weights, full)
    requested = float(weights @ np.bitwise_count(sets))
    traffic = []
    for rounds in (0, 1):
        meta = agglomerative_clustering.aggregate(masks, rates, table_size=size, rounds=rounds)
        assert len(set(meta.tolist())) <= size
        assert meta.max() < size
        cost = meta_groups.extra_mbps(masks, rates, meta)
        assert cost == pytest.approx(plain_extra(masks.tolist(), rates.tolist(), meta.tolist()))
        assert (
            meta.tolist()
            == agglomerative_clustering.aggregate(masks, rates, table_size=size, rounds=rounds).tolist()
        )
        traffic.append(requested + cost)
    assert traffic[0] <= 1.02 * greedy
    assert traffic[1] <= greedy * (1 + 1e-9)


@pytest.mark.slow
def test_search_comes_near_to_what_is_proven() -> None:
    p_median.certify(*busy_switch(12, 4), table_size=4)  # compiles before the time limits
    gaps = []
    for seed in range(4):
        masks, rates = busy_switch(40, 8, seed)
        meta = agglomerative_clustering.aggregate(masks, rates, table_size=10)
        proven = p_median.certify(masks, rates, table_size=10, seconds=10)
        extra = meta_groups.extra_mbps(masks, rates, meta)
        assert extra >= proven.bound_mbps - 1e-6
        gaps.append((extra - proven.bound_mbps) / proven.total_mbps)
    assert np.mean(gaps) < 0.01


def test_room_for_all_port_sets_costs_nothing() -> None:
    masks, rates = arrays([(3, 1), (5, 2), (3, 4)])
    meta = agglomerative_clustering.aggregate(masks, rates, table_size=2)
    assert meta_groups.extra_mbps(masks, rates, meta) == 0
    assert meta.tolist() == meta_groups.merge_equal_sets(masks).tolist()


def test_tables_too_small_and_switches_too_large() -> None:
    masks, rates = arrays([(1 << i, 1) for i in range(16)])
    with pytest.raises(InputError, match="must be at least 1"):
        agglomerative_clustering.aggregate(masks, rates, table_size=0)
    with pytest.raises(InputError, match="needs 6"):
        algorithm2.aggregate(masks, rates, table_size=5, ports=4)
    with pytest.raises(InputError, match="unions"):
        p_median.solve_exactly(masks, rates, table_size=3)
    with pytest.raises(InputError, match="port speed"):
        meta_groups.Congestion.of_ports(0)
