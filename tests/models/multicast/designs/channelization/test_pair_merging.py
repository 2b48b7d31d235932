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
    remaining = [(int(s), float(w)) for s, w in zip(sets, loads, strict=True)]
    for target in (40, 25, 12, 3):
        while len(remaining) > target:
            _, b, a = min(
                (
                    remaining[a][1] * (remaining[b][0] & ~remaining[a][0]).bit_count()
                    + remaining[b][1] * (remaining[a][0] & ~remaining[b][0]).bit_count(),
                    b,
                    a,
                )
                for b in range(len(remaining))
                for a in range(b)
            )
            remaining[a] = (remaining[a][0] | remaining[b][0], remaining[a][1] + remaining[b][1])
            del remaining[b]
        merged = pair_merging.merge_pairs(sets.astype(np.uint64), loads, target)
        assert sorted(u for u, _ in remaining) == sorted(merged.tolist())


@pytest.mark.parametrize(("count", "alike", "ports"), [(5, 4, 20), (60, 8, 40), (700, 32, 20)])
def test_sets_that_are_alike_are_the_cheapest_to_share_with(count: int, alike: int, ports: int) -> None:
    masks, rates = busy_switch(count, ports, seed=1)
    sets, weights, _ = meta_groups.distinct_sets(masks, rates)
    near = pair_merging.nearest_sets(sets, weights, 7.0, alike)
    for i, current in enumerate(sets.tolist()):
        prices = [
            float(weights[i]) * (other & ~current).bit_count()
            + max(float(w), 7.0) * (current & ~other).bit_count()
            for other, w in zip(sets.tolist(), weights, strict=True)
        ]
        others = [price for j, price in enumerate(prices) if j != i]
        result = near[i][near[i] != i].tolist()
        assert len(result) == len(set(result)) > 0
        # a few of the best may be left out for ties, and the cut is a little above the rank
        assert max(prices[j] for j in result) <= np.quantile(others, min(1.0, 3 * alike / len(others)))
        assert min(prices[j] for j in result) <= np.quantile(others, min(1.0, alike / len(others)))
