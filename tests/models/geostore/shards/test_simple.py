"""Designs that observe nothing: in proportion to capacity."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from planner_models.geostore.shards.generators import lognormal
from planner_models.geostore.shards.simple import equal_ranges, hash_ranges


def test_ranges_are_in_proportion_to_capacity() -> None:
    keyspace = replace(lognormal(ranges=20_000, servers=4), server_kops=np.array([1.0, 1.0, 2.0, 4.0]))
    assert np.bincount(equal_ranges(keyspace)).tolist() == [2_500, 2_500, 5_000, 10_000]
    share = np.bincount(hash_ranges(keyspace)) / 20_000
    assert np.abs(share - [0.125, 0.125, 0.25, 0.5]).max() < 0.02


def test_hashing_scatters_neighbours_and_runs_do_not() -> None:
    keyspace = lognormal(ranges=1_000, servers=10)
    assert (np.diff(hash_ranges(keyspace)) == 0).mean() < 0.2
    assert (np.diff(equal_ranges(keyspace)) == 0).mean() > 0.98
