"""Nearest port sets against all prices."""

from __future__ import annotations

import numpy as np
import pytest

from planner_models.multicast.designs.channelization import (
    nearest_sets,
)
from planner_models.multicast.plan import meta_groups
from tests.models.multicast.switches import (
    busy_switch,
)


@pytest.mark.parametrize(("count", "alike"), [(5, 4), (60, 8), (700, 32)])
def test_sets_that_are_alike_are_the_cheapest_to_share_with(count: int, alike: int) -> None:
    masks, rates = busy_switch(count, 20, seed=1)
    sets, weights, _ = meta_groups.distinct_sets(masks, rates)
    near = nearest_sets.nearest_sets(sets, weights, 7.0, alike)
    for i, mine in enumerate(sets.tolist()):
        prices = [
            float(weights[i]) * (other & ~mine).bit_count() + max(float(w), 7.0) * (mine & ~other).bit_count()
            for other, w in zip(sets.tolist(), weights, strict=True)
        ]
        others = [price for j, price in enumerate(prices) if j != i]
        found = near[i][near[i] != i].tolist()
        assert len(found) == len(set(found)) > 0
        # a few of the best may be left out for ties, and the cut is a little above the rank
        assert max(prices[j] for j in found) <= np.quantile(others, min(1.0, 3 * alike / len(others)))
        assert min(prices[j] for j in found) <= np.quantile(others, min(1.0, alike / len(others)))
