"""Pair merging against the plain greedy."""

from __future__ import annotations

import numpy as np
import pytest

from planner_models.multicast.designs.channelization import pair_merging
from planner_models.multicast.plan import meta_groups
from tests.models.multicast.switches import busy_switch


def test_merging_is_the_plain_greedy() -> None:
    rng = np.random.default_rng(5)
    # sets of equal size: none holds another, so that no two pairs cost the same
    sets = np.unique([sum(1 << int(p) for p in rng.choice(14, 6, replace=False)) for _ in range(60)])
    loads = rng.uniform(1, 10, len(sets))
    left = [(int(s), float(w)) for s, w in zip(sets, loads, strict=True)]
    for target in (40, 25, 12, 3):
        while len(left) > target:
            _, b, a = min(
                (
                    left[a][1] * (left[b][0] & ~left[a][0]).bit_count()
                    + left[b][1] * (left[a][0] & ~left[b][0]).bit_count(),
                    b,
                    a,
                )
                for b in range(len(left))
                for a in range(b)
            )
            left[a] = (left[a][0] | left[b][0], left[a][1] + left[b][1])
            del left[b]
        merged = pair_merging.merge_pairs(sets.astype(np.uint64), loads, target)
        assert sorted(u for u, _ in left) == sorted(merged.tolist())


@pytest.mark.parametrize(("count", "alike", "ports"), [(5, 4, 20), (60, 8, 40), (700, 32, 20)])
def test_sets_that_are_alike_are_the_cheapest_to_share_with(count: int, alike: int, ports: int) -> None:
    masks, rates = busy_switch(count, ports, seed=1)
    sets, weights, _ = meta_groups.distinct_sets(masks, rates)
    near = pair_merging.nearest_sets(sets, weights, 7.0, alike)
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
