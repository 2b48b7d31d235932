"""Free placements by load, and few moves from today."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from planner_models.geostore.shards.balancing import largest_first, rebalance
from planner_models.geostore.shards.generators import lognormal
from planner_models.geostore.shards.sharding import Sharding, load_bound, measure, moved_gb
from planner_models.geostore.shards.simple import hash_ranges


def test_largest_first_is_near_the_bound() -> None:
    keyspace = lognormal(ranges=2_000, servers=20)
    server = largest_first(keyspace)
    metrics = measure(keyspace, Sharding(pieces=np.ones(2_000, dtype=np.int64), server=server))
    assert metrics.share_of_bound < 1.001


def test_rebalancing_moves_less_the_more_load_it_allows() -> None:
    keyspace = lognormal(ranges=2_000, servers=20)
    keyspace = replace(keyspace, today=hash_ranges(keyspace))
    moved, load = [], []
    for factor in (1.0, 1.05, 1.2, 2.0):
        server = rebalance(keyspace, factor)
        moved.append(moved_gb(keyspace, server))
        load.append(measure(keyspace, Sharding(pieces=np.ones(2_000, int), server=server)).max_load)
    assert moved == sorted(moved, reverse=True)
    assert moved[-1] == 0
    assert moved[0] < moved_gb(keyspace, largest_first(keyspace)) / 3
    assert load[0] < 1.03 * load_bound(keyspace)


def test_new_ranges_are_placed() -> None:
    keyspace = lognormal(ranges=50, servers=5)
    assert (rebalance(keyspace, 1.0) >= 0).all()
    assert (rebalance(replace(keyspace, today=np.full(50, -1)), 1.0) >= 0).all()
