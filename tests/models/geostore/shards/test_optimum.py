"""The least objective, against all placements of small keyspaces; no design beats it, nor its bound."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from planner_models.geostore.shards import designs, optimum
from planner_models.geostore.shards.generators import lognormal
from planner_models.geostore.shards.sharding import Sharding, measure
from planner_models.geostore.shards.simple import hash_ranges
from tests.models.geostore.shards.cases import all_placements, small_keyspace


@pytest.mark.parametrize("seed", range(8))
def test_optimum_equals_the_best_of_all_placements(seed: int) -> None:
    keyspace = small_keyspace(seed, ranges=5)
    pieces = np.ones(5, dtype=np.int64)
    least = min(
        measure(keyspace, Sharding(pieces=pieces, server=server)).objective
        for server in all_placements(keyspace)
    )
    result = optimum.solve(keyspace)
    assert result.objective == pytest.approx(least, rel=1e-6)
    assert result.bound == pytest.approx(least, rel=1e-3)
    assert optimum.objective_bound(keyspace) <= least + 1e-9
    for name in ("hashed", "equal_ranges", "best_ranges"):
        assert measure(keyspace, designs.SHARDINGS[name](keyspace)).objective >= least - 1e-9


def test_large_keyspaces_get_the_best_design_and_a_bound() -> None:
    keyspace = lognormal(ranges=4_000, servers=20)
    keyspace = replace(keyspace, today=hash_ranges(keyspace))
    result = optimum.solve(keyspace)
    assert result.bound <= result.objective <= result.bound * 1.001
    dear = replace(keyspace, weights=replace(keyspace.weights, move_gb=1.0))
    assert (optimum.solve(dear).server == keyspace.today).all()
