"""The bound that the benchmark prints beside shared entries is below the optimum of small switches."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.multicast_channels import bound_traffic
from planner_models.multicast.designs.channelization import local_search, p_median

PORTS = 8
ENTRIES = 8


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_the_bound_over_all_unions_is_near_the_optimum_and_never_above(seed: int) -> None:
    rng = np.random.default_rng(seed)
    wants = rng.random((40, PORTS)) < rng.random((40, 1))
    wants[np.arange(40), rng.integers(PORTS, size=40)] = True
    masks = (wants * (np.uint64(1) << np.arange(PORTS, dtype=np.uint64))).sum(axis=1, dtype=np.uint64)
    rates = rng.uniform(1, 10, 40)
    best = p_median.certify(masks, rates, table_size=ENTRIES, seconds=20)
    assert best.gap < 1e-9
    meta = local_search.aggregate(masks, rates, table_size=ENTRIES)
    bound = bound_traffic(masks, rates, ENTRIES, meta, PORTS, limit=20.0)
    assert 0.99 * best.total_mbps <= bound <= best.total_mbps * (1 + 1e-9)
