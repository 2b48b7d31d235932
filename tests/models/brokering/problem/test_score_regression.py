"""Missing scores, filled in by regression on distance."""

from __future__ import annotations

import numpy as np
import pytest

from planner_models.brokering.problem import score_regression


def test_missing_scores_follow_the_line_of_their_location() -> None:
    distance = np.array([[0.0, 100.0, 200.0], [0.0, 50.0, 100.0]])
    score = np.array([[10.0, 20.0, np.nan], [np.nan, np.nan, 7.0]])
    full = score_regression.fill_missing_scores(score, distance)
    assert full[0].tolist() == pytest.approx([10.0, 20.0, 30.0])
    pooled = np.polynomial.polynomial.polyfit([0.0, 100.0, 100.0], [10.0, 20.0, 7.0], 1)
    assert full[1].tolist() == pytest.approx([pooled[0], pooled[0] + 50 * pooled[1], 7.0])


def test_without_any_score_the_distance_counts() -> None:
    full = score_regression.fill_missing_scores(np.full((1, 2), np.nan), np.array([[0.0, 300.0]]))
    assert full.tolist() == [[0.01, 3.0]]
