"""Orders of Table 3.3 on the calibrated market, and its trade-off curve."""

from __future__ import annotations

import pandas as pd
import pytest

from planner.runs.run import compare
from planner.scenarios.scenario import load
from planner_models.brokering.published.table_3_3_designs import at_equal


@pytest.mark.slow
def test_orders_of_table_3_3_that_hold_over_seeds() -> None:
    for seed in range(1, 5):
        table = compare(load("brokering/table_3_3", changes={"problem.seed": seed})).metrics
        for kind in ("median", "mean"):
            cost, score = table[f"{kind}_cost"], table[f"{kind}_score"]
            for more in ("multicluster_2", "multicluster_100"):  # better served, at higher cost
                assert cost[more] > cost["brokered"], seed
                assert score[more] < score["brokered"], seed
            for bids in ("marketplace", "best_lookup"):  # better in both
                assert cost[bids] < cost["brokered"], seed
                assert score[bids] < score["brokered"], seed
            assert cost["dynamic_pricing"] < cost["brokered"], seed
            assert score["dynamic_pricing"] > score["marketplace"], seed
            assert cost["marketplace"] == pytest.approx(cost["best_lookup"], rel=0.05), seed
        distance = table["median_distance_km"]
        for more in ("multicluster_2", "multicluster_100"):
            assert distance[more] < distance["brokered"], seed
        assert distance["marketplace"] <= distance["brokered"], seed
        congested = table["congested_percent"]
        assert congested["marketplace"] == congested["omniscient"] == 0, seed
        assert max(congested["brokered"], congested["dynamic_pricing"]) <= 2, seed
        assert congested["multicluster_2"] > congested["brokered"], seed
        for overloading in ("multicluster_100", "dynamic_multicluster"):
            assert congested[overloading] > max(congested["best_lookup"], congested["brokered"]), seed
        assert table["objective"]["omniscient"] <= table["objective"]["marketplace"] * (1 + 1e-2), seed
        assert table["objective"]["marketplace"] < 0.9 * table["objective"]["brokered"], seed


def test_the_trade_off_curve_is_read_where_the_other_figure_is_equal() -> None:
    half = pd.DataFrame({"cost": [0.5, 1.5], "distance": [2.0, 1.0]})
    assert at_equal(half, "cost", "distance") == pytest.approx(1.5)
    assert at_equal(half.assign(cost=[2.0, 3.0]), "cost", "distance") is None
