"""Hot ranges: without splits they bind every placement; with them, runs come close to the bound."""

from __future__ import annotations

import numpy as np
import pytest

from planner.errors import InputError
from planner_models.geostore.shards.designs import best_ranges, split_ranges
from planner_models.geostore.shards.generators import zipf
from planner_models.geostore.shards.sharding import measure
from planner_models.geostore.shards.splitting import split_hot


def test_pieces_are_as_few_as_the_limit_allows() -> None:
    keyspace = zipf(ranges=2_000, servers=20)
    pieces = split_hot(keyspace, piece=0.2)
    limit = 0.2 * keyspace.kops.sum() / 20
    assert (keyspace.kops / pieces <= limit * (1 + 1e-9)).all()
    split = pieces > 1
    assert (keyspace.kops[split] / (pieces[split] - 1) > limit * (1 - 1e-9)).all()
    with pytest.raises(InputError, match="piece is 0, must be above 0"):
        split_hot(keyspace, piece=0)


def test_splits_free_runs_from_the_hottest_range() -> None:
    keyspace = zipf(ranges=20_000, servers=100)
    undivided, divided = best_ranges(keyspace), split_ranges(keyspace, piece=0.05)
    assert measure(keyspace, undivided).max_load > 3 * measure(keyspace, divided).max_load
    assert measure(keyspace, undivided).share_of_bound == pytest.approx(1.0)  # the bound knows the hottest
    assert measure(keyspace, divided).share_of_bound < 1.02
    assert measure(keyspace, divided).servers_per_scan < 1.2
    assert np.array_equal(undivided.pieces, np.ones(20_000))
