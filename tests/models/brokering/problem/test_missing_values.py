"""Contract prices by region, and derived prices."""

from __future__ import annotations

import numpy as np
import pytest

from planner_models.brokering.problem import missing_values
from tests.models.brokering.markets import market as make


def test_the_narrowest_contract_holds_and_others_are_derived() -> None:
    problem = make(
        [("Lyon", 1000.0, 10), ("Oslo", 1000.0, 30), ("Recife", 1000.0, 0)],
        [("a", "x", "Lyon", 60.0, 0.1), ("b", "y", "Oslo", 50.0, 0.2), ("c", "y", "Recife", 50.0, 0.6)],
        scores=[(position, "b", 1.0) for position in ("Oslo",)]
        + [("Lyon", "c", 1.0), ("Lyon", "b", 9.0), ("Oslo", "c", 9.0)],
        contracts=[("x", "EU", 0.3), ("x", "FR", 0.4)],
        bids=[("Lyon", "a"), ("Lyon", "c"), ("Oslo", "a"), ("Oslo", "b"), ("Recife", "c")],
    )
    price = problem.contract_price
    rows = {name: row for row, name in enumerate(problem.locations["location"])}
    assert price[rows["Lyon"], 0] == 0.4
    assert price[rows["Oslo"], 0] == 0.3
    assert np.isnan(price[rows["Recife"], 0])
    # all of Lyon's 10 Mbit/s at 0.6, all of Oslo's 30 at 0.2
    assert price[:, 1].tolist() == pytest.approx([(10 * 0.6 + 30 * 0.2) / 40] * 3)


def test_missing_scores_follow_the_line_of_their_location() -> None:
    distance = np.array([[0.0, 100.0, 200.0], [0.0, 50.0, 100.0]])
    score = np.array([[10.0, 20.0, np.nan], [np.nan, np.nan, 7.0]])
    full = missing_values.fill_missing_scores(score, distance)
    assert full[0].tolist() == pytest.approx([10.0, 20.0, 30.0])
    pooled = np.polynomial.polynomial.polyfit([0.0, 100.0, 100.0], [10.0, 20.0, 7.0], 1)
    assert full[1].tolist() == pytest.approx([pooled[0], pooled[0] + 50 * pooled[1], 7.0])


def test_without_any_score_the_distance_counts() -> None:
    full = missing_values.fill_missing_scores(np.full((1, 2), np.nan), np.array([[0.0, 300.0]]))
    assert full.tolist() == [[0.01, 3.0]]
