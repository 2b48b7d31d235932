"""Runs of ranges: the exact least largest load, against all runs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from planner.testing.kernels import compare_with_python
from planner_models.geostore.shards.contiguous import best_runs
from planner_models.geostore.shards.sharding import Sharding, measure
from tests.models.geostore.shards.cases import all_runs, small_keyspace


@pytest.mark.parametrize("seed", range(30))
def test_best_runs_equal_the_best_of_all(seed: int) -> None:
    """With servers of unlike capacity in their order, also with ranges of no load."""
    keyspace = small_keyspace(seed, ranges=7, servers=3, is_equal=seed % 3 == 0)
    pieces = np.ones(7, dtype=np.int64)
    server, load = best_runs(keyspace)
    least = min(
        measure(keyspace, Sharding(pieces=pieces, server=runs)).max_load for runs in all_runs(keyspace)
    )
    assert load == pytest.approx(least, rel=1e-12)
    assert measure(keyspace, Sharding(pieces=pieces, server=server)).max_load == pytest.approx(load)
    assert (np.diff(server) >= 0).all()


def test_no_load_and_one_server() -> None:
    keyspace = replace(small_keyspace(1), kops=np.zeros(6))
    server, load = best_runs(keyspace)
    assert load == 0.0
    assert len(server) == 6
    single = replace(keyspace, server_kops=np.array([3.0]), today=None)
    assert best_runs(single)[0].tolist() == [0] * 6


@pytest.mark.slow
def test_compiled_code_fills_the_same_runs() -> None:
    with compare_with_python() as counts:
        best_runs(small_keyspace(2))
    assert counts.total() > 10
