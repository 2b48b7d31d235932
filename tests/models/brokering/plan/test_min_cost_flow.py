"""Min-cost flow of divisible clients, and its dual prices."""

from __future__ import annotations

import pytest

from planner_models.brokering.plan import min_cost_flow
from planner_models.brokering.plan.transportation import transportation_problem
from tests.models.brokering.markets import market as make


def test_dual_prices_are_the_saving_of_one_more_mbps() -> None:
    problem = make(
        [("Lyon", 1000.0, 100)],
        [("near", "x", "Lyon", 60.0, 0.1), ("far", "y", "Oslo", 500.0, 0.1)],
        scores=[("Lyon", "near", 10.0), ("Lyon", "far", 35.0), ("Oslo", "near", 1.0), ("Oslo", "far", 1.0)],
    )
    relaxation = min_cost_flow.solve_relaxation(transportation_problem(problem))
    assert relaxation.dual_price.tolist() == pytest.approx([25.0, 0.0])
    assert relaxation.bound == pytest.approx(60 * 10 + 40 * 35 + 100 * 0.1 * 0.45)
