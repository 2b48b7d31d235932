"""Pair merging against the plain greedy."""

from __future__ import annotations

import numpy as np

from planner_models.multicast.designs.channelization import (
    pair_merging,
)


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
