"""Counters of the annealing search."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner_models.multicast.designs.channelization import local_search, pair_merging
from planner_models.multicast.plan import meta_groups
from tests.models.multicast.switches import busy_switch


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
