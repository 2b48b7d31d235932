"""Clusters and operations that the protocol can run, and those that it refuses."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from planner.errors import InputError
from planner_models.geostore.protocol.cluster import CLOSURE, REMOTE, Cluster
from planner_models.geostore.protocol.history import run
from planner_models.geostore.protocol.state import ADD, BATCH, READ, TRANSACTION
from planner_models.geostore.protocol.workloads import VICCI_RTT_MS, full_cluster
from tests.models.geostore.protocol.test_history import operations_of


def partial(checks: str) -> Cluster:
    """Return a cluster with A, key 0, in the first two datacenters, and B, key 1, in the first and last."""
    return Cluster(
        rtt_ms=np.array(VICCI_RTT_MS),
        present=np.array([[1, 1], [1, 0], [0, 1]], dtype=bool),
        owner=np.zeros((3, 2), dtype=np.int64),
        servers=1,
        is_counter=np.zeros(2, dtype=bool),
        checks=checks,
    )


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"checks": "locl"}, "cluster: checks is 'locl', must be 'closure' or 'remote'"),
        ({"servers": 2}, "cluster: owner must be 0 to 1"),
        ({"rtt_ms": np.zeros((3, 3))}, "cluster: rtt_ms must be above 0 between two datacenters"),
        (
            {"rtt_ms": np.ones((2, 2))},
            "cluster: rtt_ms, present and owner must agree in datacenters and keys",
        ),
        ({"is_counter": np.zeros(2, dtype=bool)}, "cluster: is_counter has 2 keys, present 8"),
        ({"present": np.zeros((3, 8), dtype=bool)}, "cluster: key 0 has no replica"),
        ({"servers": 600}, "cluster: 1800 servers, a stamp has place for 1023"),
    ],
)
def test_bad_clusters(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        replace(full_cluster(), **changes)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ((0, BATCH, []), "operation 0: has no key"),
        ((0, BATCH, [7]), "a counter changes by adds of one key"),
        ((0, ADD, [1]), "a counter changes by adds of one key"),
    ],
)
def test_bad_operations(row: tuple[int, int, list[int]], message: str) -> None:
    with pytest.raises(InputError, match=message):
        run(full_cluster(), operations_of(row, (0, READ, [0]), datacenters=[0]))


def test_an_add_of_nothing_is_refused() -> None:
    operations = operations_of((0, ADD, [7]), datacenters=[0])
    with pytest.raises(InputError, match="an add's amount must be above 0"):
        run(full_cluster(), replace(operations, amount=np.zeros(1, dtype=np.int64)))


def test_a_dependency_without_its_replica_is_refused_with_the_pair() -> None:
    """A in {0, 1}, B in {0, 2}, B on A: datacenter 2 cannot check A."""
    operations = operations_of((0, READ, [0]), (0, BATCH, [1]), datacenters=[0])
    with pytest.raises(InputError, match="datacenter 2 has key 1 without key 0, on which writes of client 0"):
        run(partial(CLOSURE), operations)
    assert run(partial(REMOTE), operations).evt[2, 1] > 0


def test_writes_need_a_replica_here_and_transactions_the_same_replicas() -> None:
    with pytest.raises(InputError, match="datacenter 2 has no replica of key 0, which it writes"):
        run(partial(REMOTE), operations_of((0, BATCH, [0]), datacenters=[2]))
    with pytest.raises(InputError, match="keys 0 and 1 of a transaction have other replicas"):
        run(partial(REMOTE), operations_of((0, TRANSACTION, [0, 1]), datacenters=[0]))


def test_remote_checks_cost_a_round_trip_to_the_nearest_replica() -> None:
    """B becomes visible without A only after two messages to A's nearest replica."""
    cluster = replace(partial(REMOTE), jitter_ms=0.0, wide_jitter_ms=0.0)
    operations = operations_of((0, BATCH, [0]), (0, BATCH, [1]), datacenters=[0])
    history = run(cluster, operations)
    frame = history.messages().set_index("message")
    assert frame.loc["dep_check", "between"] == frame.loc["dep_check reply", "between"] == 1
    expected = 84 / 2 + 20 + 3 * cluster.local_ms  # the write's copy, and the check at the second datacenter
    assert history.visible_ms[2, 1] - history.visible_ms[0, 1] == pytest.approx(expected, abs=0.01)
