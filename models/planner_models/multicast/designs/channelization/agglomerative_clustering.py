"""Agglomerative clustering of port sets, with local search and simulated annealing after it.

Port sets merge pair by pair; single sets move where that saves traffic. Then the search anneals: a port set
leaves its meta-group for the cheapest of a few with similar sets, or for a new entry, at first also where
that costs a little more. A price of entries controls the number in use; too many at the end merge.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from planner.arrays import Floats, Ints
from planner.errors import InputError
from planner_models.multicast.designs.channelization.local_search import (
    assign_smallest_union,
    reassign_sets,
    search_assignment,
    total_mbps,
)
from planner_models.multicast.designs.channelization.pair_merging import (
    merge_near_pairs,
    merge_pairs,
    nearest_sets,
)
from planner_models.multicast.plan.meta_groups import Masks, distinct_sets

NEIGHBOURS_PER_SET: Final = 32
TYPICAL_LOAD_FACTOR: Final = 1.4  # least traffic of a meta-group, times the median traffic of a set
EXACT_MERGE_FACTOR: Final = 1.25  # times the table: most unions that all pairs are compared of, or
MIN_EXACT_UNIONS: Final = 600


def aggregate(masks: Masks, rates: Floats, *, table_size: int, rounds: int = 1) -> Ints:
    """Return the meta-group of each group: merge pairs, reassign to supersets, move; then anneal.

    The cheapest pair of port sets merges until the table holds them (of many sets first the cheapest of
    similar pairs); each set goes to the smallest union that covers it; single sets move where that
    saves traffic. Round n then searches n times as long as the first, and keeps the better assignment. The
    result is deterministic. Congestion is linear.

    raises  InputError for a table without entries
    """
    if table_size < 1:
        raise InputError(f"table size is {table_size}, must be at least 1")
    sets, weights, place = distinct_sets(masks, rates)
    if len(sets) <= table_size:
        return place
    few = max(int(EXACT_MERGE_FACTOR * table_size), MIN_EXACT_UNIONS)
    near = np.zeros((0, 0), dtype=np.int32)
    if rounds > 0 or len(sets) > few:
        near = nearest_sets(
            sets,
            weights,
            TYPICAL_LOAD_FACTOR * float(np.median(weights)),
            min(NEIGHBOURS_PER_SET, len(sets) - 1),
        )
    unions, loads = sets, weights
    if len(sets) > few:
        unions, loads = merge_near_pairs(sets, weights, near, few)
    merged = merge_pairs(unions, loads, table_size)
    # moves alone take as long as half a search of many sets, which finds what they find
    searched = rounds > 0 and len(sets) > few
    meta = assign_smallest_union(sets, merged) if searched else reassign_sets(sets, weights, merged)
    traffic = total_mbps(sets, weights, meta)
    for nth in range(rounds):
        found = search_assignment(sets, weights, meta, near, table_size, nth + 1)
        reached = total_mbps(sets, weights, found)
        if reached < traffic:
            meta, traffic = found, reached
    used = np.bincount(meta) > 0
    return np.asarray((np.cumsum(used) - 1)[meta[place]], dtype=np.int64)
