"""Profits of CDNs and countries."""

from __future__ import annotations

import pytest

from planner.runs.evaluation import compare
from planner_models.brokering.designs.broker import assignment
from planner_models.brokering.information import observe
from planner_models.brokering.plan import profit
from planner_models.brokering.problem.generators import world


def test_fig_3_7_flat_prices_lose_money_and_bids_earn() -> None:
    result = compare("brokering/fig_3_7", designs=["brokered", "marketplace"])
    flat, bids = (profit.profit_by_cdn(run.problem, run.plan).set_index("cdn") for run in result.runs)
    # X serves only Reykjavik, 100 Mbit/s at 0.20; it is paid 1.2 times its average cost 0.03111
    assert flat.loc["X", "traffic_mbps"] == 100
    assert flat.loc["X", "cost_per_hour"] == pytest.approx(100 * 0.45 * 0.20)
    assert flat.loc["X", "price_to_cost"] == pytest.approx(1.2 * (50 * 0.20 + 400 * 0.01) / 450 / 0.20)
    assert flat.loc["X", "profit_at_flat_price"] < 0
    # with bids its cheap clusters serve everyone, and it earns 20% of its cost
    assert bids.loc["X", "traffic_mbps"] == 900
    assert bids.loc["X", "profit_at_cluster_price"] == pytest.approx(0.2 * 0.45 * (100 * 0.20 + 800 * 0.01))


@pytest.mark.slow
def test_countries_and_cdns_add_up_to_the_same() -> None:
    problem = world(clients=500, places=40, seed=2)
    plan = assignment.assign(observe.brokered(problem)).plan
    assert plan is not None
    by_cdn, by_country = profit.profit_by_cdn(problem, plan), profit.profit_by_country(problem, plan)
    for column in ("traffic_mbps", "cost_per_hour", "profit_at_flat_price", "profit_at_cluster_price"):
        assert by_cdn[column].sum() == pytest.approx(by_country[column].sum())
    assert (by_cdn["profit_at_cluster_price"] >= 0).all()
