"""The p-median bound and optimum against brute force."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.contract.proof import Status
from planner_models.multicast.designs.channelization import local_search, p_median
from planner_models.multicast.designs.channelization.p_median import list_unions, search_unions
from planner_models.multicast.plan import meta_groups
from tests.models.multicast.switches import SWITCHES, arrays, brute_force, plain_extra


@settings(max_examples=25, deadline=None)
@given(SWITCHES, st.integers(1, 4))
def test_heuristic_bounds_and_optimum_around_brute_force(switch: list[tuple[int, int]], size: int) -> None:
    masks, rates = arrays(switch)
    best = brute_force([int(m) for m in masks], rates.tolist(), size)
    assert meta_groups.extra_mbps_bound(masks, rates, size) <= best + 1e-9
    meta = local_search.aggregate(masks, rates, table_size=size)
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
    by_hand = local_search.aggregate(masks, rates, table_size=6)
    assert result.extra_mbps <= meta_groups.extra_mbps(masks, rates, by_hand) + 1e-9
    assert p_median.bound_mbps(masks, rates, table_size=25) == 0


@settings(max_examples=60, deadline=None)
@given(SWITCHES, st.integers(0, 2**32 - 1), st.floats(0, 3), st.booleans())
def test_all_unions_of_value_are_found(
    switch: list[tuple[int, int]], seed: int, least: float, every: bool
) -> None:
    sets, weights = arrays(switch)
    price = weights * np.bitwise_count(sets) + weights * np.random.default_rng(seed).uniform(-1, 4, len(sets))
    min_value = least * float(weights.mean())
    expected = {}
    for union in list_unions(sets.tolist(), 1 << 16):
        size = union.bit_count()
        saved = {
            i: price[i] - weights[i] * size
            for i in range(len(sets))
            if int(sets[i]) & ~union == 0 and price[i] > weights[i] * size * (1 + 1e-12)
        }
        if every or np.bitwise_or.reduce(sets[list(saved)], initial=np.uint64(0)) == union:
            expected[union] = sum(saved.values())
    unions, values, full = search_unions(sets, weights, price, min_value, 10**6, every=every)
    assert full
    result = dict(zip(unions.tolist(), values.tolist(), strict=True))
    assert len(result) == len(unions)
    tolerance = 1e-9 * float(price.max())
    assert {u for u, v in expected.items() if v > min_value + tolerance} <= set(result)
    for union, value in result.items():
        assert value == pytest.approx(expected[union])
        assert value > min_value


def test_a_search_that_is_too_long_says_so() -> None:
    rng = np.random.default_rng(0)
    sets, weights = rng.integers(1, 2**16, 30).astype(np.uint64), np.ones(30)
    assert not search_unions(sets, weights, 12 * weights, 0.0, 20)[2]
    assert len(search_unions(sets[:0], weights[:0], weights[:0], 0.0, 20)[0]) == 0
