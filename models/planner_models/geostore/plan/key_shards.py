"""Shards of a plan: read back from its rows, and tabulated from the servers of pieces."""

from __future__ import annotations

import numpy as np
import pandas as pd

from planner.arrays import Ints
from planner.errors import PlanRejected, did_you_mean
from planner_models.geostore.problem.problem import Geostore
from planner_models.geostore.shards.sharding import Metrics, Sharding, measure, split_keyspace


def tabulate_shards(problem: Geostore, sharding: Sharding) -> pd.DataFrame:
    """Return the table of the server of each piece of a range."""
    assert problem.ranges is not None
    assert problem.servers is not None
    owner = np.repeat(np.arange(len(sharding.pieces)), sharding.pieces)
    return pd.DataFrame(
        {
            "range": problem.ranges["range"].to_numpy(object)[owner],
            "piece": (np.arange(len(owner)) - sharding.first[owner] + 1).astype(float),
            "server": problem.servers["server"].to_numpy(object)[sharding.server],
        }
    )


def read_shards(problem: Geostore, frame: pd.DataFrame | None) -> Sharding | None:
    """Return the servers of pieces in a plan's table; None for problems without ranges.

    raises  PlanRejected where a range has no server, or pieces are not numbered from 1
    """
    if problem.keyspace is None or problem.ranges is None or problem.servers is None:
        if frame is not None and len(frame):
            raise PlanRejected("shards: has rows, but the problem has no ranges")
        return None
    if frame is None:
        raise PlanRejected("shards: the problem has ranges, which need servers")
    owner = _find(pd.Index(problem.ranges["range"]), frame, "range")
    server = _find(pd.Index(problem.servers["server"]), frame, "server")
    piece = frame["piece"].to_numpy(float)
    order = np.lexsort((piece, owner))
    pieces = np.bincount(owner, minlength=len(problem.ranges))
    for row in np.flatnonzero(pieces == 0)[:1].tolist():
        raise PlanRejected(f"shards: range '{problem.ranges['range'].iloc[row]}' has no server")
    first = np.concatenate([[0], np.cumsum(pieces)])
    expected = np.arange(len(owner)) - first[owner[order]] + 1
    for row in order[piece[order] != expected][:1].tolist():
        raise PlanRejected(
            f"shards row {row + 1}: pieces of range '{frame['range'].iloc[row]}' must be numbered from 1"
        )
    return Sharding(pieces=pieces.astype(np.int64), server=server[order])


def _find(index: pd.Index, frame: pd.DataFrame, column: str) -> Ints:
    rows = index.get_indexer(pd.Index(frame[column]))
    for row in np.flatnonzero(rows < 0)[:1].tolist():
        name = str(frame[column].iloc[row])
        raise PlanRejected(f"shards row {row + 1}: {column} '{name}' is unknown" + did_you_mean(name, index))
    return rows.astype(np.int64)


def carried_share(problem: Geostore, sharding: Sharding) -> float:
    """Return the share of the load of all ranges that their servers carry."""
    assert problem.keyspace is not None
    pieces = split_keyspace(problem.keyspace, sharding.pieces)
    load = np.bincount(sharding.server, pieces.kops, len(pieces.server_kops))
    return float(np.minimum(load, pieces.server_kops).sum() / load.sum())


def measure_shards(problem: Geostore, sharding: Sharding | None) -> dict[str, float | None]:
    """Return the metrics of shards; None for problems without ranges."""
    if sharding is None or problem.keyspace is None:
        return dict.fromkeys(NAMES)
    result: Metrics = measure(problem.keyspace, sharding)
    return {name: getattr(result, field) for name, field in NAMES.items()}


NAMES = {
    "max_load": "max_load",
    "max_load_over_bound": "share_of_bound",
    "servers_per_op": "servers_per_op",
    "servers_per_scan": "servers_per_scan",
    "messages_per_s": "messages_per_s",
}
"""Fields of the figures of a sharding by the name of the metric."""
