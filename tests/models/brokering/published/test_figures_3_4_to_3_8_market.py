"""Figures of a small market."""

from __future__ import annotations

import pytest

from planner_models.brokering import measure
from planner_models.brokering.information import observe
from planner_models.brokering.problem.generators import world
from planner_models.brokering.published import figures_3_4_to_3_8_market as market


def test_figures_of_a_small_market() -> None:
    problem = world(clients=800, places=60, seed=1)
    shares = market.share_with_alternatives(problem)
    assert (shares.diff().dropna() <= 0).all()
    assert shares.attrs["mean"] >= shares.sum() / 100 - 1e-9
    use = market.use_by_city_size(problem)
    assert use.sum().to_numpy() == pytest.approx(100)
    assert market.use_by_country(problem).sum(axis=1).to_numpy() == pytest.approx(100)
    assert market.country_costs(problem).is_monotonic_decreasing
    assert market.moved_percent([problem, problem], observe.brokered).tolist() == [0.0]
    plan = market.plan_of(observe.marketplace(problem))
    assert measure(problem, plan, None)["unserved"] == 0
