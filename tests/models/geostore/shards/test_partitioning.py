"""Partitions by Mt-KaHyPar: few servers for each transaction, within the load; a clear line without it."""

from __future__ import annotations

import sys
from dataclasses import replace

import numpy as np
import pytest

from planner.errors import InputError
from planner.extras import MissingPackage
from planner_models.geostore.shards.designs import hashed, partitioned
from planner_models.geostore.shards.generators import hidden_order, lognormal
from planner_models.geostore.shards.partitioning import partition, to_integers
from planner_models.geostore.shards.sharding import measure


def test_a_hidden_order_is_found() -> None:
    pytest.importorskip("mtkahypar")
    keyspace = hidden_order(ranges=1_000, servers=8, transactions=3_000)
    found, scattered = measure(keyspace, partitioned(keyspace)), measure(keyspace, hashed(keyspace))
    assert scattered.servers_per_op is not None
    assert found.servers_per_op is not None
    assert found.servers_per_op < 1.3 < 2.0 < scattered.servers_per_op
    assert found.share_of_bound < 1.035
    assert (partition(keyspace, seed=1) == partition(keyspace, seed=1)).all()


def test_servers_of_unlike_capacity_get_unlike_loads() -> None:
    pytest.importorskip("mtkahypar")
    keyspace = hidden_order(ranges=1_000, servers=4, transactions=3_000)
    keyspace = replace(keyspace, server_kops=keyspace.server_kops * np.array([1, 1, 2, 4]) / 2)
    assert measure(keyspace, partitioned(keyspace)).share_of_bound < 1.04


def test_without_transactions_or_servers_there_is_nothing_to_partition() -> None:
    pytest.importorskip("mtkahypar")
    with pytest.raises(InputError, match="needs transactions, and more than one server"):
        partition(lognormal(ranges=50, servers=5))
    with pytest.raises(InputError, match="imbalance is -1"):
        partition(lognormal(ranges=50, servers=5), imbalance=-1)


def test_a_missing_partitioner_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mtkahypar", None)
    with pytest.raises(MissingPackage, match="'partitioned' needs the package 'mtkahypar', which is not"):
        partition(hidden_order(ranges=50, servers=4, transactions=100))


def test_weights_are_integers_in_proportion() -> None:
    assert to_integers(np.array([2.0, 2.0])).tolist() == [1, 1]
    assert to_integers(np.array([1.0, 3.0, 0.0])).tolist() == [500, 1500, 1]
    assert to_integers(np.zeros(2)).tolist() == [1, 1]
