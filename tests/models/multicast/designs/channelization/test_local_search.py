"""Counters of the annealing search."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.errors import InputError
from planner_models.multicast.designs.channelization import algorithm2, local_search, p_median, pair_merging
from planner_models.multicast.plan import meta_groups
from tests.models.multicast.switches import arrays, busy_switch, plain_extra


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(1, 2**10 - 1), min_size=1, max_size=20), st.randoms(use_true_random=False))
def test_ports_of_a_meta_group_are_counted_as_sets_come_and_go(masks: list[int], random: Random) -> None:
    counts, inside = np.zeros(6, dtype=np.uint64), list[int]()
    for mask in masks:
        result = local_search._count_set(counts, np.uint64(mask), True)
        inside.append(mask)
        while inside and random.random() < 0.4:
            gone = inside.pop(random.randrange(len(inside)))
            result = local_search._count_set(counts, np.uint64(gone), False)
        requested = [sum(m >> port & 1 for m in inside) for port in range(10)]
        assert int(result[0]) == sum(1 << port for port, sets in enumerate(requested) if sets)
        assert int(result[1]) == sum(1 << port for port, sets in enumerate(requested) if sets == 1)


@pytest.mark.parametrize("ports", [20, pytest.param(40, marks=pytest.mark.slow)])
def test_sets_end_where_no_single_move_saves_traffic(ports: int) -> None:
    masks, rates = busy_switch(70, ports, seed=2)
    sets, weights, _ = meta_groups.distinct_sets(masks, rates)
    assert pair_merging.narrow_sets(sets).itemsize == (4 if ports < 32 else 8)
    start = np.arange(len(sets)) % 9
    meta = start.copy()
    local_search.move_sets(sets, weights, meta, 9, 100)
    lower = local_search.total_mbps(sets, weights, meta)
    assert lower < local_search.total_mbps(sets, weights, start)
    for i in range(len(sets)):
        for m in range(9):
            other = meta.copy()
            other[i] = m
            assert local_search.total_mbps(sets, weights, other) >= lower * (1 - 1e-6)


@pytest.mark.slow
def test_more_rounds_are_never_worse_and_merging_keeps_the_cheapest_pairs() -> None:
    rng = np.random.default_rng(3)
    masks = rng.integers(1, 2**10, 300).astype(np.uint64)
    rates = rng.uniform(1, 10, 300)
    costs = [
        meta_groups.extra_mbps(
            masks, rates, local_search.aggregate(masks, rates, table_size=40, rounds=rounds)
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
        local_search.MIN_EXACT_UNIONS, local_search.EXACT_MERGE_FACTOR * size
    )  # so that pairs alike go first
    full = local_search.reassign_sets(sets, weights, pair_merging.merge_pairs(sets, weights, size))
    greedy = local_search.total_mbps(sets, weights, full)
    requested = float(weights @ np.bitwise_count(sets))
    traffic = []
    for rounds in (0, 1):
        meta = local_search.aggregate(masks, rates, table_size=size, rounds=rounds)
        assert len(set(meta.tolist())) <= size
        assert meta.max() < size
        cost = meta_groups.extra_mbps(masks, rates, meta)
        assert cost == pytest.approx(plain_extra(masks.tolist(), rates.tolist(), meta.tolist()))
        assert meta.tolist() == local_search.aggregate(masks, rates, table_size=size, rounds=rounds).tolist()
        traffic.append(requested + cost)
    assert traffic[0] <= 1.02 * greedy
    assert traffic[1] <= greedy * (1 + 1e-9)


@pytest.mark.slow
def test_search_comes_near_to_what_is_proven() -> None:
    p_median.certify(*busy_switch(12, 4), table_size=4)  # compiles before the time limits
    gaps = []
    for seed in range(4):
        masks, rates = busy_switch(40, 8, seed)
        meta = local_search.aggregate(masks, rates, table_size=10)
        proven = p_median.certify(masks, rates, table_size=10, seconds=10)
        extra = meta_groups.extra_mbps(masks, rates, meta)
        assert extra >= proven.bound_mbps - 1e-6
        gaps.append((extra - proven.bound_mbps) / proven.total_mbps)
    assert np.mean(gaps) < 0.01


def test_room_for_all_port_sets_costs_nothing() -> None:
    masks, rates = arrays([(3, 1), (5, 2), (3, 4)])
    meta = local_search.aggregate(masks, rates, table_size=2)
    assert meta_groups.extra_mbps(masks, rates, meta) == 0
    assert meta.tolist() == meta_groups.merge_equal_sets(masks).tolist()


def test_tables_too_small_and_switches_too_large() -> None:
    masks, rates = arrays([(1 << i, 1) for i in range(16)])
    with pytest.raises(InputError, match="must be at least 1"):
        local_search.aggregate(masks, rates, table_size=0)
    with pytest.raises(InputError, match="needs 6"):
        algorithm2.aggregate(masks, rates, table_size=5, ports=4)
    with pytest.raises(InputError, match="unions"):
        p_median.solve_exactly(masks, rates, table_size=3)
    with pytest.raises(InputError, match="port speed"):
        meta_groups.Congestion.of_ports(0)
