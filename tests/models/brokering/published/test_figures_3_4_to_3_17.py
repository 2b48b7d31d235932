"""Figures of a small market."""

from __future__ import annotations

import pytest

from planner_models.brokering import information, measure
from planner_models.brokering.problem.generators import city_centric, world
from planner_models.brokering.published import figures_3_4_to_3_17 as market
from planner_models.brokering.published.figures_3_4_to_3_17 import profits


def test_figures_of_a_small_market() -> None:
    problem = world(clients=800, places=60, seed=1)
    shares = market.share_with_alternatives(problem)
    assert (shares.diff().dropna() <= 0).all()
    assert shares.attrs["mean"] >= shares.sum() / 100 - 1e-9
    use = market.use_by_city_size(problem)
    assert use.sum().to_numpy() == pytest.approx(100)
    assert market.use_by_country(problem).sum(axis=1).to_numpy() == pytest.approx(100)
    assert market.country_costs(problem).is_monotonic_decreasing
    assert market.moved_percent([problem, problem], information.brokered).tolist() == [0.0]
    plan = market.plan_of(information.marketplace(problem))
    assert measure(problem, plan, None)["unserved"] == 0


@pytest.mark.slow
def test_claims_of_3_7_on_profits_hold() -> None:
    problem = world(clients=10_000, seed=1)
    by_cdn, by_country = profits(problem)
    assert (by_cdn["brokered_profit"] < 0).sum() >= 7
    assert by_cdn["brokered_profit"]["distributed"] < 0
    assert (by_cdn["marketplace_profit"] >= 0).all()
    assert (by_country["marketplace_profit"] >= 0).all()
    assert (by_country["brokered_profit"] < 0).any()
    crowded, _ = profits(city_centric(clients=10_000, seed=1))
    cities = crowded[crowded.index.str.match(r"city\d")]
    assert (cities["brokered_profit"] >= -1e-9).all()
    traditional = crowded[~crowded.index.str.match(r"city\d")]
    assert (traditional["brokered_profit"] < 0).sum() >= 7
