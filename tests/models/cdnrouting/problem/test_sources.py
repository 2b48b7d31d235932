"""Sources that take a network of another scenario: a CDN drawn on it, and a market joined to it."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from planner.errors import InputError
from planner_models.cdnrouting.problem.sources import join, split
from planner_models.cdnrouting.problem.utilization import smallest_utilization


def test_half_of_the_traffic_is_requested_from_clusters() -> None:
    problem = split(network="traffic/abilene", seed=1)
    assert problem.group_mbps.sum() == pytest.approx(problem.rate_mbps.sum())
    assert len(problem.clusters) == 4
    assert problem.capacity_mbps.sum() == pytest.approx(1.5 * problem.group_mbps.sum())


def test_clients_may_be_at_the_places_alone_that_most_traffic_goes_to() -> None:
    every, some = (split(network="traffic/abilene", locations=count) for count in (None, 3))
    total = every.group_mbps.sum() + every.rate_mbps.sum()
    assert sorted(some.group_mbps) == pytest.approx(sorted(every.group_mbps)[-3:])
    assert some.group_mbps.sum() + some.rate_mbps.sum() == pytest.approx(total)
    assert set(some.clusters["location"]) <= set(some.clients["location"])


def test_a_network_a_market_and_places_make_a_problem(tmp_path: Path) -> None:
    nodes = split(network="traffic/abilene").nodes["node"].tolist()
    places = pd.DataFrame({"location": ["north", "south", "east", "west"], "node": nodes[:4]})
    places.to_csv(tmp_path / "places.csv", index=False)
    problem = join(network="traffic/abilene", market="cdnrouting/own_data", places=tmp_path)
    assert problem.size()["nodes"] == 12
    assert problem.group_mbps.sum() == pytest.approx(136.0)


def test_a_scenario_without_clients_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="traffic/abilene: has no table clients"):
        join(network="traffic/abilene", market="traffic/abilene", places=tmp_path)


def test_a_network_without_latency_is_refused() -> None:
    with pytest.raises(InputError, match="links have no latency_ms, which delays need"):
        split(network="traffic/figure_4")


def test_a_split_network_has_the_utilization_and_the_capacity_of_links() -> None:
    problem = split(network="traffic/abilene", utilization=0.8, link_mbps=5_000.0, seed=2)
    assert set(problem.links["capacity_mbps"]) == {5_000.0}
    assert smallest_utilization(problem) == pytest.approx(0.8)
    with pytest.raises(InputError, match="utilization: is given beside load; give one of them"):
        split(network="traffic/abilene", utilization=0.8, load=1.0)
