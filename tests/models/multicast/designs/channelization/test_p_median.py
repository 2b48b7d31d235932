"""The p-median bound and optimum against brute force."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.contract.proof import Status
from planner_models.multicast.designs.channelization import agglomerative_clustering, p_median
from planner_models.multicast.plan import meta_groups
from tests.models.multicast.switches import SWITCHES, arrays, brute_force, plain_extra


@settings(max_examples=25, deadline=None)
@given(SWITCHES, st.integers(1, 4))
def test_heuristic_bounds_and_optimum_around_brute_force(switch: list[tuple[int, int]], size: int) -> None:
    masks, rates = arrays(switch)
    best = brute_force([int(m) for m in masks], rates.tolist(), size)
    assert meta_groups.extra_mbps_bound(masks, rates, size) <= best + 1e-9
    meta = agglomerative_clustering.aggregate(masks, rates, table_size=size)
    assert len(set(meta.tolist())) <= size
    cost = meta_groups.extra_mbps(masks, rates, meta)
    assert cost == pytest.approx(plain_extra([int(m) for m in masks], rates.tolist(), meta.tolist()))
    assert cost >= best - 1e-9
    solved, solution = p_median.solve_exactly(masks, rates, table_size=size)
    assert solved is not None
    assert solution.status is Status.OPTIMAL
    assert len(set(solved.tolist())) <= size
    assert meta_groups.extra_mbps(masks, rates, solved) == pytest.approx(best, abs=1e-6)
    assert solution.objective == pytest.approx(best, abs=1e-6)
    proven = p_median.certify(masks, rates, table_size=size, seconds=2)
    assert proven.extra_mbps == pytest.approx(best, abs=1e-6)
    assert proven.bound_mbps == pytest.approx(best, abs=1e-5)
    assert meta_groups.extra_mbps(masks, rates, proven.meta) == pytest.approx(best, abs=1e-6)
    assert len(set(proven.meta.tolist())) <= size


@pytest.mark.slow
def test_certified_bounds_larger_switches() -> None:
    rng = np.random.default_rng(1)
    masks = rng.integers(1, 2**24, 25).astype(np.uint64)
    rates = rng.uniform(1, 10, 25)
    result = p_median.certify(masks, rates, table_size=6, seconds=5)
    assert result.gap < 1e-6
    assert result.bound_mbps <= result.extra_mbps
    by_hand = agglomerative_clustering.aggregate(masks, rates, table_size=6)
    assert result.extra_mbps <= meta_groups.extra_mbps(masks, rates, by_hand) + 1e-9
    assert p_median.bound_mbps(masks, rates, table_size=25) == 0
