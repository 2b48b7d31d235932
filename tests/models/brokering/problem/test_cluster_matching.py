"""Matching of clusters: ranked by cost, and stable."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings

from planner_models.brokering import Brokering
from planner_models.brokering.problem import cluster_matching
from tests.models.brokering.markets import markets


@settings(max_examples=25)
@given(markets())
def test_a_stable_matching_has_no_pair_that_would_rather_have_each_other(problem: Brokering) -> None:
    room = problem.residual_mbps
    selected = cluster_matching.match_stably(
        problem.score, problem.demand_mbps, room, problem.cdn, problem.offered
    )
    assert (selected.sum(axis=1) > 0).all()
    for cdn in range(len(problem.cdn_names)):
        rows = np.flatnonzero(problem.cdn == cdn)
        # replay: from the best score up, nobody who was refused fits
        remaining, free = problem.demand_mbps.copy(), room.copy()
        for position, cluster in sorted(
            ((p, c) for p in range(len(remaining)) for c in rows),
            key=lambda pair: (problem.score[pair], pair[0], pair[1]),
        ):
            sent = min(remaining[position], free[cluster])
            if sent > 0:
                assert selected[position, cluster]
            remaining[position] -= sent
            free[cluster] -= sent


def test_candidates_are_ranked_by_cost_among_similar_scores() -> None:
    score = np.array([[10.0, 19.0, 21.0, 15.0], [10.0, 50.0, 40.0, 60.0]])
    cost = np.array([4.0, 3.0, 1.0, 2.0])
    cdn = np.zeros(4, dtype=np.int64)
    offered = np.ones((2, 4), dtype=bool)
    item = cluster_matching.match_by_rank(score, cost, cdn, offered, bids=1)
    two = cluster_matching.match_by_rank(score, cost, cdn, offered, bids=2)
    everyone = cluster_matching.match_by_rank(score, cost, cdn, offered, bids=100)
    assert item.tolist() == [[False, False, False, True], [False, False, True, False]]
    assert two.tolist() == [[False, True, False, True], [True, False, True, False]]
    assert everyone.tolist() == [[True, True, False, True], [True, False, True, False]]
