"""Balanced placements: largest ranges first, and few moves from today's servers."""

from __future__ import annotations

import heapq

import numpy as np

from planner.arrays import Ints
from planner_models.geostore.shards.keyspace import NO_SERVER, Keyspace
from planner_models.geostore.shards.sharding import load_bound


def largest_first(keyspace: Keyspace) -> Ints:
    """Return the server of each range: the largest ranges first, each on the least loaded server."""
    server = np.full(len(keyspace.kops), NO_SERVER)
    _place(keyspace, server, np.zeros(len(keyspace.server_kops)))
    return server


def rebalance(keyspace: Keyspace, factor: float) -> Ints:
    """Return today's servers after moves of ranges off servers above a load; new ranges are placed.

    factor  of the lower bound of the largest load, from which on a server gives ranges away: those with the
        most load for their size first
    """
    today = np.full(len(keyspace.kops), NO_SERVER) if keyspace.today is None else keyspace.today
    server = today.copy()
    is_placed = server != NO_SERVER
    load = np.bincount(server[is_placed], keyspace.kops[is_placed], len(keyspace.server_kops))
    limit = factor * load_bound(keyspace) * keyspace.server_kops
    order = np.argsort(-keyspace.kops / np.maximum(keyspace.gb, 1e-12), kind="stable")
    for item in order[is_placed[order]]:
        source = server[item]
        if load[source] > limit[source] and keyspace.kops[item] > 0:
            load[source] -= keyspace.kops[item]
            server[item] = NO_SERVER
    _place(keyspace, server, load)
    return server


def _place(keyspace: Keyspace, server: Ints, load: np.ndarray) -> None:
    """Place the ranges without a server, the largest first, each on the least loaded one."""
    unplaced = np.flatnonzero(server == NO_SERVER)
    heap = [(load[s] / capacity, s) for s, capacity in enumerate(keyspace.server_kops.tolist())]
    heapq.heapify(heap)
    for item in unplaced[np.argsort(-keyspace.kops[unplaced], kind="stable")].tolist():
        ratio, target = heap[0]
        server[item] = target
        heapq.heapreplace(heap, (ratio + keyspace.kops[item] / keyspace.server_kops[target], target))
