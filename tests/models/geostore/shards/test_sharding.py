"""Metrics of shardings against counts by hand, and plans that are none."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from planner.errors import PlanRejected
from planner_models.geostore.shards.keyspace import Accesses, Keyspace, Weights
from planner_models.geostore.shards.sharding import (
    Sharding,
    keep_in_place,
    load_bound,
    measure,
    moved_gb,
    split_keyspace,
)
from tests.models.geostore.shards.cases import all_placements, small_keyspace

KEYSPACE = Keyspace(
    kops=np.array([4.0, 2.0, 2.0, 8.0]),
    gb=np.array([1.0, 2.0, 3.0, 4.0]),
    server_kops=np.array([10.0, 20.0]),
    scans=np.array([[0, 2], [1, 3]]),
    scan_per_s=np.array([1.0, 3.0]),
    transactions=Accesses(
        first=np.array([0, 2, 5]), touched=np.array([0, 1, 1, 2, 3]), per_s=np.array([10.0, 5.0])
    ),
    today=np.array([0, 0, 1, -1]),
    weights=Weights(load=100.0, messages=1.0, move_gb=10.0),
)


def undivided(*server: int) -> Sharding:
    """Return a sharding of undivided ranges."""
    return Sharding(pieces=np.ones(len(server), dtype=np.int64), server=np.array(server))


def test_metrics_by_hand() -> None:
    metrics = measure(KEYSPACE, undivided(0, 1, 1, 1))
    assert metrics.max_load == pytest.approx(12 / 20)
    assert metrics.share_of_bound == pytest.approx((12 / 20) / (16 / 30))
    assert metrics.servers_per_op == pytest.approx((10 * 2 + 5 * 1) / 15)
    assert metrics.servers_per_scan == pytest.approx((1 * 2 + 3 * 1) / 4)
    assert metrics.messages_per_s == 10 * 6 + 5 * 2
    assert metrics.moved_gb == 2.0  # range 1; range 3 is on no server today
    assert metrics.objective == pytest.approx(60 + 70 + 20)


def test_a_split_range_has_its_load_on_several_servers() -> None:
    sharding = Sharding(pieces=np.array([1, 1, 1, 2]), server=np.array([0, 0, 0, 0, 1]))
    metrics = measure(KEYSPACE, sharding)
    assert metrics.max_load == pytest.approx(12 / 10)
    assert metrics.servers_per_scan == pytest.approx((1 + 3 * 2) / 4)  # the second reads both pieces
    pieces = split_keyspace(KEYSPACE, sharding.pieces)
    assert pieces.kops.sum() == KEYSPACE.kops.sum()
    assert pieces.transactions.touched.tolist() == [0, 1, 1, 2, 4]
    assert sharding.first.tolist() == [0, 1, 2, 3, 5]


@pytest.mark.parametrize(
    ("sharding", "message"),
    [
        (undivided(0, 1, 1), "each range needs a piece or more"),
        (undivided(0, 1, 1, 2), "piece 3 is on server 2, there are 2"),
        (Sharding(pieces=np.array([1, 1, 1, 2]), server=np.zeros(4, int)), "4 servers of 5 pieces"),
        (Sharding(pieces=np.array([1, 1, 1, 0]), server=np.zeros(3, int)), "each range needs a piece"),
    ],
)
def test_plans_that_are_none(sharding: Sharding, message: str) -> None:
    with pytest.raises(PlanRejected, match=message):
        measure(KEYSPACE, sharding)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("is_equal", [False, True])
def test_no_placement_has_less_load_than_the_bound(seed: int, is_equal: bool) -> None:
    keyspace = small_keyspace(seed, is_equal=is_equal)
    least = min(measure(keyspace, undivided(*server)).max_load for server in all_placements(keyspace))
    assert least >= load_bound(keyspace) - 1e-12


def test_servers_are_renamed_for_fewest_moves_among_equals() -> None:
    today = np.array([2, 2, 0, 0, 1, 1])
    keyspace = replace(small_keyspace(1, is_equal=True), today=today)
    renamed = keep_in_place(keyspace, np.array([0, 0, 1, 1, 2, 2]))
    assert renamed.tolist() == today.tolist()
    assert moved_gb(keyspace, renamed) == 0
    unequal = replace(keyspace, server_kops=np.array([1.0, 2.0, 2.0]))
    assert keep_in_place(unequal, np.array([0, 0, 1, 1, 2, 2]))[:2].tolist() == [0, 0]
    assert keep_in_place(replace(keyspace, today=None), today) is today
