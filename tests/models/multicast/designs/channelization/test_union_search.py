"""The search for unions against all unions, listed one by one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner_models.multicast.designs.channelization.p_median import list_unions
from planner_models.multicast.designs.channelization.union_search import search_unions
from tests.models.multicast.switches import SWITCHES, arrays


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
