"""Orders of Table 3.3 on the calibrated market, and its trade-off curve."""

from __future__ import annotations

import pandas as pd
import pytest

from planner.runs.evaluation import compare
from planner.scenarios.scenario import load
from planner_models.brokering.published.tables_3_2_and_3_3 import at_equal


@pytest.mark.exhaustive
def test_orders_of_table_3_3_that_hold_in_single_markets() -> None:
    several, guessing = ["multicluster_2", "multicluster_100"], ["dynamic_multicluster", "best_lookup"]
    for seed in (1, 4, 7):
        table = compare(load("brokering/table_3_3", changes={"problem.seed": seed})).metrics
        for kind in ("median", "mean"):
            cost = table[f"{kind}_cost"]
            assert cost[several].min() > cost["brokered"], seed
            assert cost[["best_lookup", "marketplace", "omniscient"]].max() < cost["brokered"], seed
            assert cost["marketplace"] == pytest.approx(cost["best_lookup"], rel=0.05), seed
        for better in ("median_score", "median_distance_km"):
            assert table[better][several].max() < table[better]["brokered"], seed
        congested, load_percent = table["congested_percent"], table["median_own_load_percent"]
        for careful in ("brokered", "dynamic_pricing", "marketplace", "omniscient"):
            assert congested[careful] == 0, seed
        assert congested["multicluster_100"] > congested["multicluster_2"] > congested[guessing].max(), seed
        assert congested[guessing].min() > 0, seed
        assert load_percent["omniscient"] > load_percent["brokered"], seed
        objective = table["objective"]
        assert objective["omniscient"] <= objective["marketplace"] * (1 + 1e-2), seed
        assert objective["marketplace"] < 0.9 * objective["brokered"], seed


def test_the_trade_off_curve_is_read_where_the_other_figure_is_equal() -> None:
    half = pd.DataFrame({"cost": [0.5, 1.5], "distance": [2.0, 1.0]})
    assert at_equal(half, "cost", "distance") == pytest.approx(1.5)
    assert at_equal(half.assign(cost=[2.0, 3.0]), "cost", "distance") is None
