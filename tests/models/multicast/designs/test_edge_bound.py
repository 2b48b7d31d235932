"""The p-median bound of edge switches, with unicast, against brute force, and how tight it is."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.search.deadline import Deadline
from planner_models.multicast.designs import edge_bound
from planner_models.multicast.designs.channelization import agglomerative_clustering, p_median
from planner_models.multicast.plan import meta_groups
from tests.models.multicast.switches import SWITCHES, arrays


def least_mbps(masks: list[int], rates: list[float], unicast: list[float], free: int) -> float:
    """Return the least that a tiny switch adds, by trying every choice of unions."""
    unions = p_median.list_unions(masks, 20)
    best = float("inf")
    for selected in combinations(unions, min(free, len(unions))):
        cost = 0.0
        for mask, rate, alone in zip(masks, rates, unicast, strict=True):
            extras = [rate * (union & ~mask).bit_count() for union in selected if mask & ~union == 0]
            cost += min([alone, *extras])
        best = min(best, cost)
    return best


@settings(max_examples=40, deadline=None)
@given(SWITCHES, st.lists(st.floats(0, 30), min_size=8, max_size=8), st.integers(1, 4))
def test_no_choice_of_unions_and_unicast_beats_the_bound(
    switch: list[tuple[int, int]], alone: list[float], free: int
) -> None:
    masks, rates = arrays(switch)
    unicast = np.array(alone[: len(masks)])
    best = least_mbps([int(mask) for mask in masks], rates.tolist(), unicast.tolist(), free)
    full = len(np.unique(masks)) > free
    bound = edge_bound.bound_extra_mbps([edge_bound.Switch(masks, rates, unicast, free)])
    assert bound[0] <= best + 1e-9
    assert full or bound[0] == 0


@pytest.mark.parametrize(("ports", "groups", "free", "share"), [(8, 60, 10, 0.97), (24, 150, 40, 0.6)])
def test_the_bound_is_near_to_the_best_plan_found(ports: int, groups: int, free: int, share: float) -> None:
    rng = np.random.default_rng(0)
    wants = rng.random((groups, ports)) < rng.random((groups, 1)) * (0.3 if ports > 8 else 1)
    wants[np.arange(groups), rng.integers(ports, size=groups)] = True
    masks = (wants * (np.uint64(1) << np.arange(ports, dtype=np.uint64))).sum(axis=1, dtype=np.uint64)
    rates = rng.uniform(1, 10, groups)
    meta = agglomerative_clustering.aggregate(masks, rates, table_size=free, rounds=4)
    result = meta_groups.extra_mbps(masks, rates, meta)
    switch = edge_bound.Switch(masks, rates, np.full(groups, 1e9), free)
    bound = float(edge_bound.bound_extra_mbps([switch])[0])
    assert meta_groups.extra_mbps_bound(masks, rates, free) < bound <= result
    assert bound >= share * result
    assert edge_bound.bound_extra_mbps([switch], deadline=Deadline.after(0.0))[0] == 0
