"""The market in time: CDNs that learn, conservation of traffic, and the shipped scenario."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

from planner.options import Options
from planner.runs.simulate import simulate
from planner_models.brokering import SYSTEM
from planner_models.brokering.problem import series
from planner_models.brokering.problem.generators import world
from planner_models.brokering.simulation import SIMULATION, run, simulate_market
from tests.models.brokering.markets import market as make

MARKETPLACE = SYSTEM.design("marketplace")


def run_day(design: str, **parameters: Any) -> Any:
    problem = world(clients=300, places=30, seed=2)
    return run(
        problem,
        design=SYSTEM.design(design),
        information={},
        decision_parameters={},
        options=Options(gap=0.01, seed=1),
        windows=3,
        **parameters,
    )


@pytest.mark.slow
def test_bidders_raise_prices_of_full_clusters_and_never_go_below_cost() -> None:
    problem = make(
        [("Lyon", 1000.0, 10)],
        [("a", "x", "Lyon", 10.5, 0.1), ("b", "y", "Lyon", 20.0, 0.2)],
        scores=[("Lyon", "a", 5.0), ("Lyon", "b", 5.0)],
    )
    tables = simulate_market([problem] * 20, design=MARKETPLACE, step=0.2).tables
    assert len(tables["rounds"]) == 20
    x = tables["cdns"][tables["cdns"]["cdn"] == "x"]
    assert (x["profit"] >= -1e-9).all()
    # x fills up at its cost, raises its price, and earns, until y's cost undercuts it
    assert 10 * 0.45 * 0.1 * (1.2**3 - 1) <= x["profit"].max() <= 10 * 0.45 * (0.2 - 0.1)
    assert x["traffic_mbps"].min() == 0
    constant = simulate_market([problem] * 4, design=MARKETPLACE, step=0.0).tables
    assert constant["rounds"]["moved_between_cdns_percent"].tolist()[1:] == [0.0, 0.0, 0.0]


@pytest.mark.parametrize("design", ["marketplace", "brokered", "several_brokers"])
def test_all_demand_is_served_or_counted_as_unserved(design: str) -> None:
    rounds = run_day(design).tables["rounds"]
    problem = world(clients=300, places=30, seed=2)
    demand = [share.demand_mbps.sum() for _, share in series.Day(problem=problem, windows=3, swing=0.5)]
    assert rounds["unserved"].tolist() == [0.0, 0.0, 0.0]
    assert rounds["traffic_mbps"].tolist() == pytest.approx(demand)


def test_the_traffic_and_profit_of_cdns_add_up_to_those_of_the_market() -> None:
    result = run_day("marketplace", step=0.3, caution=1.0)
    by_window = result.tables["cdns"].groupby("window")[["traffic_mbps", "profit"]].sum()
    rounds = result.tables["rounds"].set_index("window")
    assert by_window["traffic_mbps"].to_numpy() == pytest.approx(rounds["traffic_mbps"].to_numpy())
    assert by_window["profit"].to_numpy() == pytest.approx(rounds["profit_per_hour"].to_numpy())
    assert set(result.metrics) == {metric.name for metric in SIMULATION.metrics}
    assert result.metrics["profit_per_hour"] == pytest.approx(rounds["profit_per_hour"].mean())


@pytest.mark.slow
def test_cdns_learn_only_where_a_design_announces_prices() -> None:
    assert run_day("brokered").metrics["profit_per_hour"] == 0
    assert set(run_day("brokered").rounds["controller"]) == {"brokered"}
    assert len(set(run_day("marketplace").rounds["controller"])) == 1 + 14


@pytest.mark.slow
def test_a_simulation_repeats_exactly() -> None:
    item, other = (run_day("marketplace", step=0.2) for _ in range(2))
    for name in ("rounds", "cdns"):
        pd.testing.assert_frame_equal(item.tables[name], other.tables[name])


@pytest.mark.slow
def test_the_shipped_scenario_runs_with_each_of_its_designs() -> None:
    result = simulate("brokering/learning_market")
    assert [run.entry.label for run in result.runs] == ["brokered", "marketplace"]
    assert all(run.result is not None and len(run.result.tables["rounds"]) == 6 for run in result.runs)


@pytest.mark.slow
def test_frames_show_each_window_under_its_assignment() -> None:
    result = run_day("brokered", frames=True)
    assert [frame.label for frame in result.frames] == ["00h00", "08h00", "16h00"]
    rounds = result.tables["rounds"]
    assert [frame.value for frame in result.frames] == rounds["paid_per_hour"].tolist()
    assert run_day("brokered").frames == ()
    for frame in result.frames:
        assert frame.drawing.title.startswith("Clusters by load")
