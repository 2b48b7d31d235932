"""Matching: which of its clusters a CDN offers to which clients."""

from __future__ import annotations

from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

Rule = Literal["ranked", "stable"]
SIMILAR: Final = 2.0  # a candidate scores at most this many times the best


def ranked(
    score: NDArray[np.float64],
    cost: NDArray[np.float64],
    cdn: NDArray[np.int64],
    offered: NDArray[np.bool_],
    *,
    bids: int,
    similar: float = SIMILAR,
) -> NDArray[np.bool_]:
    """(L, C) True where a cluster is among the first `bids` that its CDN offers to a location.

    Candidates are the clusters that score at most `similar` times the CDN's best; where that is the
    best alone, the second best too. They are ranked from the cheapest to the dearest; of equal
    cost, the better score first.

    score    (L, C), smaller is better
    cost     (C,) what a cluster costs its CDN
    cdn      (C,) whose it is
    offered  (L, C) what may be offered at all
    source   Mukerjee 2018, 3.5.1 (CDN matching algorithm and bidding)
    """
    chosen = np.zeros_like(offered)
    for one in np.unique(cdn):
        mine = np.flatnonzero(cdn == one)
        # by cost first, so that a stable order of candidates is the order of cost
        mine = mine[np.argsort(cost[mine], kind="stable")]
        own = np.where(offered[:, mine], score[:, mine], np.inf)
        best = own.min(axis=1)
        candidate = np.isfinite(own) & (own <= similar * best[:, None])
        if len(mine) > 1:
            second = np.partition(own, 1, axis=1)[:, 1]
            alone = (candidate.sum(axis=1) == 1) & np.isfinite(second)
            candidate |= alone[:, None] & np.isfinite(own) & (own <= second[:, None])
        cost_of = np.broadcast_to(cost[mine], own.shape)
        order = np.lexsort((np.where(candidate, own, np.inf), np.where(candidate, cost_of, np.inf)), axis=1)
        rank = np.empty_like(order)
        np.put_along_axis(rank, order, np.broadcast_to(np.arange(len(mine)), order.shape), axis=1)
        chosen[:, mine] = candidate & (rank < bids)
    return chosen


def stable(
    score: NDArray[np.float64],
    demand_mbps: NDArray[np.float64],
    capacity_mbps: NDArray[np.float64],
    cdn: NDArray[np.int64],
    offered: NDArray[np.bool_],
) -> NDArray[np.bool_]:
    """(L, C) True where a stable matching of a CDN's clusters and all locations' traffic has a pair.

    Locations and clusters both prefer the better score, so taking pairs from the best score up
    gives the one matching in which no location and cluster would rather have each other. Traffic is
    divisible. What finds no room at a CDN is offered its best-scoring cluster all the same.

    demand_mbps    (L,) traffic of each location
    capacity_mbps  (C,) room in each cluster
    source         Gale and Shapley 1962; Maggs and Sitaraman 2015 (stable allocation in a CDN)
    """
    chosen = np.zeros_like(offered)
    for one in np.unique(cdn):
        mine = np.flatnonzero(cdn == one)
        own = np.where(offered[:, mine], score[:, mine], np.inf)
        left, room = demand_mbps.astype(float).copy(), capacity_mbps[mine].astype(float).copy()
        order = np.argsort(own, axis=None, kind="stable")
        for place, cluster in zip(*np.unravel_index(order, own.shape), strict=True):
            if not np.isfinite(own[place, cluster]):
                break
            sent = min(left[place], room[cluster])
            if sent > 0:
                left[place] -= sent
                room[cluster] -= sent
                chosen[place, mine[cluster]] = True
        lost = np.flatnonzero(~chosen[:, mine].any(axis=1) & np.isfinite(own).any(axis=1))
        chosen[lost, mine[own[lost].argmin(axis=1)]] = True
    return chosen
