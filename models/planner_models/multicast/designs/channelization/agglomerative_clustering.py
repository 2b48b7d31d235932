"""Agglomerative clustering of port sets, with local search and simulated annealing after it.

Port sets merge pair by pair; single sets move where that saves traffic. Then the search anneals: a port set
leaves its meta-group for the cheapest of a few with similar sets and of a window of others, or for a new
entry, at first also where that costs a little more. A price of entries controls the number in use; too many
at the end merge.
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

NEIGHBOURS_PER_SET: Final = 12
TYPICAL_LOAD_FACTOR: Final = 1.4  # least traffic of a meta-group, times the median traffic of a set
EXACT_MERGE_FACTOR: Final = 1.25  # times the table: most unions that all pairs are compared of, or
MIN_EXACT_UNIONS: Final = 600
MOST_SEARCHED_UNIONS: Final = 300  # as above, where a search of many sets follows


def aggregate(masks: Masks, rates: Floats, *, table_size: int, rounds: int = 1) -> Ints:
    """Return the meta-group of each group: merge pairs, reassign to supersets, move; then anneal.

    The cheapest pair of port sets merges until the table holds them (of many sets the cheapest of similar
    pairs). Of few sets, each goes to the smallest union that covers it, and moves where that saves traffic.
    Round n then searches n times as long as the first, and keeps the better assignment. The
    result is deterministic. Congestion is linear.

    raises  InputError for a table without entries
    """
    if table_size < 1:
        raise InputError(f"table size is {table_size}, must be at least 1")
    sets, weights, inverse = distinct_sets(masks, rates)
    if len(sets) <= table_size:
        return inverse
    few = max(int(EXACT_MERGE_FACTOR * table_size), MIN_EXACT_UNIONS)
    near = np.zeros((0, 0), dtype=np.int32)
    if rounds > 0 or len(sets) > few:
        near = nearest_sets(
            sets,
            weights,
            TYPICAL_LOAD_FACTOR * float(np.median(weights)),
            min(NEIGHBOURS_PER_SET, len(sets) - 1),
        )
    # moves alone, and pairs that are not similar, take as long as a search of many sets, which finds as much
    if searched := rounds > 0 and len(sets) > EXACT_MERGE_FACTOR * MOST_SEARCHED_UNIONS:
        few = max(table_size, MOST_SEARCHED_UNIONS)
    unions, loads, meta = sets, weights, np.arange(len(sets))
    if len(sets) > few:
        unions, loads, meta = merge_near_pairs(sets, weights, near, few)
    if not searched:
        meta = reassign_sets(sets, weights, merge_pairs(unions, loads, table_size))
    elif len(unions) > table_size:
        meta = assign_smallest_union(sets, merge_pairs(unions, loads, table_size))
    traffic = total_mbps(sets, weights, meta)
    for nth in range(rounds):
        assignment = search_assignment(sets, weights, meta, near, table_size, nth + 1)
        reached = total_mbps(sets, weights, assignment)
        if reached < traffic:
            meta, traffic = assignment, reached
    used = np.bincount(meta) > 0
    return np.asarray((np.cumsum(used) - 1)[meta[inverse]], dtype=np.int64)
