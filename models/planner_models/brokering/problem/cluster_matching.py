"""Matching of a CDN's clusters to client locations: ranked by cost, or a stable allocation."""

from __future__ import annotations

from typing import Final, Literal

import numpy as np

from planner.arrays import Bools, Floats, Ints

Rule = Literal["ranked", "stable"]
SIMILAR: Final = 2.0  # ratio of a candidate's score to the CDN's best, at most


def match_by_rank(
    score: Floats, cost: Floats, cdn: Ints, offered: Bools, *, bids: int, similar: float = SIMILAR
) -> Bools:
    """Return the first `bids` clusters that each CDN offers to each location, (L, C) of bool.

    Candidates are the clusters that score at most `similar` times the CDN's best; where that is the
    best alone, the second best too. They are ranked by cost, the cheapest first; of equal cost, the
    better score first.

    score    (L, C), smaller is better
    cost     (C,) of a cluster to its CDN
    cdn      (C,) of each cluster
    offered  (L, C) clusters that may be offered at all
    source   Mukerjee 2018, 3.5.1 (CDN matching algorithm and bidding)
    """
    selected = np.zeros_like(offered)
    for owner in np.unique(cdn):
        own_clusters = np.flatnonzero(cdn == owner)
        # by cost first, so that a stable order of candidates is the order of cost
        own_clusters = own_clusters[np.argsort(cost[own_clusters], kind="stable")]
        own_score = np.where(offered[:, own_clusters], score[:, own_clusters], np.inf)
        best = own_score.min(axis=1)
        candidate = np.isfinite(own_score) & (own_score <= similar * best[:, None])
        if len(own_clusters) > 1:
            second = np.partition(own_score, 1, axis=1)[:, 1]
            alone = (candidate.sum(axis=1) == 1) & np.isfinite(second)
            candidate |= alone[:, None] & np.isfinite(own_score) & (own_score <= second[:, None])
        cost_of = np.broadcast_to(cost[own_clusters], own_score.shape)
        order = np.lexsort(
            (np.where(candidate, own_score, np.inf), np.where(candidate, cost_of, np.inf)), axis=1
        )
        rank = np.empty_like(order)
        np.put_along_axis(rank, order, np.broadcast_to(np.arange(len(own_clusters)), order.shape), axis=1)
        selected[:, own_clusters] = candidate & (rank < bids)
    return selected


def match_stably(
    score: Floats, demand_mbps: Floats, capacity_mbps: Floats, cdn: Ints, offered: Bools
) -> Bools:
    """Return a stable matching of each CDN's clusters with all locations' traffic, (L, C) of bool.

    Locations and clusters both prefer the better score, so taking pairs in order of score gives the one
    matching in which no location and cluster prefer each other. Traffic is divisible. A location that
    exceeds a CDN's capacity is offered its best-scoring cluster all the same.

    demand_mbps    (L,) traffic of each location
    capacity_mbps  (C,) that each cluster can still carry
    source         Gale and Shapley 1962; Maggs and Sitaraman 2015 (stable allocation in a CDN)
    """
    selected = np.zeros_like(offered)
    for owner in np.unique(cdn):
        own_clusters = np.flatnonzero(cdn == owner)
        own_score = np.where(offered[:, own_clusters], score[:, own_clusters], np.inf)
        unserved, residual = demand_mbps.astype(float), capacity_mbps[own_clusters].astype(float)  # copies
        order = np.argsort(own_score, axis=None, kind="stable")
        for location, cluster in zip(*np.unravel_index(order, own_score.shape), strict=True):
            if not np.isfinite(own_score[location, cluster]):
                break
            sent = min(unserved[location], residual[cluster])
            if sent > 0:
                unserved[location] -= sent
                residual[cluster] -= sent
                selected[location, own_clusters[cluster]] = True
        without = np.flatnonzero(~selected[:, own_clusters].any(axis=1) & np.isfinite(own_score).any(axis=1))
        selected[without, own_clusters[own_score[without].argmin(axis=1)]] = True
    return selected
