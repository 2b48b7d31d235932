"""Designs of shards: from a keyspace to a sharding."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import numpy as np

from planner.arrays import Ints
from planner.options import Options
from planner_models.geostore.shards import optimum, simple
from planner_models.geostore.shards.contiguous import best_runs
from planner_models.geostore.shards.keyspace import Keyspace
from planner_models.geostore.shards.partitioning import IMBALANCE, partition
from planner_models.geostore.shards.sharding import Sharding, keep_in_place, measure, split_keyspace
from planner_models.geostore.shards.splitting import PIECE, split_hot


def hashed(keyspace: Keyspace) -> Sharding:
    """Return ranges on servers by a hash; it observes nothing."""
    return _undivided(keyspace, simple.hash_ranges(keyspace))


def equal_ranges(keyspace: Keyspace) -> Sharding:
    """Return runs of as many ranges on each server, by capacity; it observes nothing."""
    return _undivided(keyspace, simple.equal_ranges(keyspace))


def best_ranges(keyspace: Keyspace) -> Sharding:
    """Return the runs with the least largest load, servers named so that most data stays in place."""
    return _undivided(keyspace, keep_in_place(keyspace, best_runs(keyspace)[0]))


def split_ranges(keyspace: Keyspace, *, piece: float = PIECE) -> Sharding:
    """Return the best runs of pieces, after hot ranges are split; see `splitting.split_hot`."""
    pieces = split_hot(keyspace, piece=piece)
    split = split_keyspace(keyspace, pieces)
    return Sharding(pieces=pieces, server=keep_in_place(split, best_runs(split)[0]))


def partitioned(keyspace: Keyspace, *, imbalance: float = IMBALANCE, seed: int = 0) -> Sharding:
    """Return a free placement with few servers for each transaction; see `partitioning.partition`."""
    server = partition(keyspace, imbalance=imbalance, seed=seed)
    return _undivided(keyspace, keep_in_place(keyspace, server))


def best(keyspace: Keyspace, options: Options = Options()) -> Sharding:
    """Return the least objective of undivided ranges, see `optimum.solve`, and of hot ranges split."""
    undivided = _undivided(keyspace, optimum.solve(keyspace, options).server)
    return min(undivided, split_ranges(keyspace), key=lambda sharding: measure(keyspace, sharding).objective)


def _undivided(keyspace: Keyspace, server: Ints) -> Sharding:
    """Return a sharding whose ranges are not split."""
    return Sharding(pieces=np.ones(len(keyspace.kops), dtype=np.int64), server=server)


SHARDINGS: Final[Mapping[str, Callable[[Keyspace], Sharding]]] = {
    "hashed": hashed,
    "equal_ranges": equal_ranges,
    "best_ranges": best_ranges,
    "split_hot": split_ranges,
    "partitioned": partitioned,
    "optimum": best,
}
