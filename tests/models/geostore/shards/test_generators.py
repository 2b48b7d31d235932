"""Generated keyspaces."""

from __future__ import annotations

import numpy as np

from planner_models.geostore.shards.generators import hidden_order, zipf


def test_zipf_has_its_hottest_range_and_scans() -> None:
    keyspace = zipf(ranges=1_000, servers=10, scan=20)
    assert np.isclose(keyspace.kops.max() / np.sort(keyspace.kops)[-2], 2**0.99)
    assert (keyspace.scans[:, 1] - keyspace.scans[:, 0] == 19).all()
    assert np.isclose(keyspace.kops.sum() / keyspace.server_kops.sum(), 0.5)


def test_transactions_touch_ranges_once() -> None:
    keyspace = hidden_order(ranges=500, servers=5, transactions=1_000)
    accesses = keyspace.transactions
    for row in range(1_000):
        touched = accesses.touched[accesses.first[row] : accesses.first[row + 1]]
        assert len(set(touched)) == len(touched) <= 3
    assert np.isclose(keyspace.kops.sum(), len(accesses.touched) / 1_000)
