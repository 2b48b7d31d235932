"""The generated markets, and the shipped scenarios."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from planner.scenarios.scenario import load
from planner.scenarios.shipped import scenario_names
from planner_models.brokering.problem import cluster_matching
from planner_models.brokering.problem.generators import LEAST_CLIENTS, _split_capacity, city_centric, world


def test_the_same_seed_makes_the_same_market() -> None:
    item, other = (world(clients=300, places=30, seed=7).to_tables() for _ in range(2))
    for name, frame in item.items():
        pd.testing.assert_frame_equal(frame, other[name])
    assert not world(clients=300, places=30, seed=8).clusters.equals(item["clusters"])


def test_a_market_is_made_as_3_5_1_says() -> None:
    problem = world(clients=2000, places=200, seed=1)
    assert problem.size()["clients"] == 2000
    assert len(problem.cdn_names) == 14
    assert problem.background_mbps == pytest.approx(3 * problem.residual_mbps)
    first = cluster_matching.match_by_rank(
        problem.score, problem.unit_cost, problem.cdn, problem.offered, bids=1
    )
    received = problem.demand_mbps @ first
    for_clients = problem.residual_mbps
    assert for_clients.min() == pytest.approx(LEAST_CLIENTS * 3.0)  # ten clients of 3 Mbit/s
    busy = received > 4 * LEAST_CLIENTS * 3.0
    share = for_clients[busy] / (2 * received[busy])  # half where other clusters take from it
    assert np.logical_or(np.isclose(share, 1.0), np.isclose(share, 0.5)).all()
    assert np.isclose(share, 1.0).any()
    assert np.isclose(share, 0.5).any()
    costs = problem.clusters.groupby("location")["colocation_cost"].first()
    crowd = problem.clusters.groupby("location")["cdn"].count()
    country = problem.locations.set_index("location")["country"].reindex(costs.index)
    base = costs * (1 + np.log(crowd))
    assert (base.groupby(country).agg(lambda c: c.max() / c.min()) < 1 + 1e-9).all()


def test_clusters_without_clients_share_half_of_their_neighbour() -> None:
    degrees = np.array([[0.0, 0.0], [0.0, 1.0], [0.0, -2.0], [0.0, 9.0], [50.0, 50.0]])
    split = _split_capacity(np.array([90.0, 0.0, 0.0, 40.0, 0.0]), degrees)
    # the half of 90 in proportion to 1 and 1/2; the last one is far from all others
    assert split == pytest.approx([45.0, 30.0, 15.0, 40.0, 0.0])
    near = _split_capacity(np.array([8.0, 0.0]), np.zeros((2, 2)))
    assert near == pytest.approx([4.0, 4.0])


def test_city_cdns_have_one_cluster_where_others_are_and_lower_their_costs() -> None:
    plain, crowded = world(clients=500, places=50, seed=1), city_centric(clients=500, places=50, seed=1)
    extra = crowded.clusters[crowded.clusters["cdn"].str.startswith("city")]
    assert len(extra) == extra["cdn"].nunique() == 200
    assert set(extra["location"]) <= set(plain.clusters["location"])
    assert (
        crowded.clusters["colocation_cost"].iloc[:14].sum()
        <= plain.clusters["colocation_cost"].iloc[:14].sum()
    )
    # the only cluster's cost is the contract's price
    current = crowded.clusters["cdn"].str.startswith("city").to_numpy()
    assert crowded.contract_price[0, crowded.cdn[current]] == pytest.approx(crowded.unit_cost[current])


@pytest.mark.parametrize("name", [name for name in scenario_names() if name.startswith("brokering/")])
def test_every_scenario_is_valid(name: str) -> None:
    assert load(name).system.name == "brokering"


def test_background_clients_are_drawn_at_the_places_of_the_brokers() -> None:
    plain = world(clients=2000, places=60, seed=1)
    drawn = world(clients=2000, places=60, seed=1, background_clients="drawn")
    assert drawn.clients.equals(plain.clients)
    assert drawn.capacity_mbps == pytest.approx(plain.capacity_mbps)
    traffic_mbps = float(plain.count @ plain.bitrate_mbps)
    assert drawn.background_mbps.sum() == pytest.approx(3 * traffic_mbps)
    assert (drawn.background_mbps < drawn.capacity_mbps).all()
    first = cluster_matching.match_by_rank(drawn.score, drawn.unit_cost, drawn.cdn, drawn.offered, bids=1)
    received = drawn.demand_mbps @ first
    assert not drawn.background_mbps[received == 0].any()
    by_cdn = np.bincount(drawn.cdn, drawn.background_mbps) / traffic_mbps
    assert by_cdn == pytest.approx(np.full(14, 3 / 14), rel=0.2)
