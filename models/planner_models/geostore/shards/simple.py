"""Designs that look at no load: ranges by a hash of their number, or as many ranges on each server."""

from __future__ import annotations

import numpy as np

from planner.arrays import Ints
from planner_models.geostore.shards.keyspace import Keyspace


def hash_ranges(keyspace: Keyspace) -> Ints:
    """Return the server of each range by a hash, in proportion to capacity.

    Eiger and Cassandra place keys so (Lloyd et al. 2013, section 7.1).
    """
    number = np.arange(len(keyspace.kops), dtype=np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):  # SplitMix64
        number = (number ^ (number >> np.uint64(shift))) * np.uint64(factor)
    number ^= number >> np.uint64(31)
    point = (number >> np.uint64(11)).astype(np.float64) / 2.0**53
    return _by_share(keyspace, point)


def equal_ranges(keyspace: Keyspace) -> Ints:
    """Return the server of each range: runs of as many ranges as a server's share of capacity."""
    count = len(keyspace.kops)
    return _by_share(keyspace, (np.arange(count) + 0.5) / count)


def _by_share(keyspace: Keyspace, point: np.ndarray) -> Ints:
    """Return the server whose share of all capacity has a point between 0 and 1."""
    ends = np.cumsum(keyspace.server_kops) / keyspace.server_kops.sum()
    server: Ints = np.minimum(np.searchsorted(ends, point, side="right"), len(ends) - 1)
    return server
