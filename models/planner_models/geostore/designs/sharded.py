"""Designs of the cut of an ordered keyspace over the servers of a datacenter.

Groups are placed as by `optimum`; without ranges the plans are the same as its.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

from pydantic import Field

from planner.contract.design import Decision
from planner.options import Options
from planner_models.geostore.designs import optimum
from planner_models.geostore.plan.plan import StorePlan
from planner_models.geostore.problem.problem import Geostore
from planner_models.geostore.shards import designs as shards
from planner_models.geostore.shards.keyspace import Keyspace
from planner_models.geostore.shards.partitioning import IMBALANCE
from planner_models.geostore.shards.sharding import Sharding
from planner_models.geostore.shards.splitting import PIECE


def _shard(problem: Geostore, options: Options, shard: Callable[[Keyspace], Sharding]) -> Decision[StorePlan]:
    """Return the decision of `optimum` with servers of ranges by a function."""
    return optimum.place_with(problem, options, shard)


def place_hashed(problem: Geostore, *, options: Options = Options()) -> Decision[StorePlan]:
    """Put ranges on servers by a hash of their number, in proportion to capacity, as Cassandra does."""
    return _shard(problem, options, shards.hashed)


def place_equal_ranges(problem: Geostore, *, options: Options = Options()) -> Decision[StorePlan]:
    """Give each server a run of as many ranges as its share of the capacity."""
    return _shard(problem, options, shards.equal_ranges)


def place_best_ranges(problem: Geostore, *, options: Options = Options()) -> Decision[StorePlan]:
    """Give each server one run of ranges, with the least largest load that runs can have."""
    return _shard(problem, options, shards.best_ranges)


def place_split_hot(
    problem: Geostore,
    *,
    piece: Annotated[
        float, Field(gt=0, le=1e3, description="largest load of a piece, in mean loads of a server")
    ] = PIECE,
    options: Options = Options(),
) -> Decision[StorePlan]:
    """Split hot ranges into pieces, then give each server the best run of pieces."""
    return _shard(problem, options, lambda keyspace: shards.split_ranges(keyspace, piece=piece))


def place_partitioned(
    problem: Geostore,
    *,
    imbalance: Annotated[
        float, Field(ge=0, le=10, description="largest load of a server over its share, less 1")
    ] = IMBALANCE,
    seed: Annotated[int, Field(ge=0, description="seed of the partitioner")] = 0,
    options: Options = Options(),
) -> Decision[StorePlan]:
    """Put ranges that transactions touch together on few servers; without transactions, as best runs."""

    def shard(keyspace: Keyspace) -> Sharding:
        if not len(keyspace.transactions.per_s) or len(keyspace.server_kops) < 2:
            return shards.best_ranges(keyspace)
        return shards.partitioned(keyspace, imbalance=imbalance, seed=seed)

    return _shard(problem, options, shard)
