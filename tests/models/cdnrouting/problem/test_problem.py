"""Problems of system `cdnrouting`: bad tables with the message of each, and arrays."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from planner.errors import InputError
from planner_models.cdnrouting import Delivery
from planner_models.cdnrouting.problem import generators
from planner_models.cdnrouting.problem.adjustments import adjust

TABLES = generators.small().to_tables()

BAD: dict[str, tuple[str, Any, str]] = {
    "a location without node": (
        "clients",
        {"location": "moon"},
        "clients row 1: location 'moon' is without node: no location of places",
    ),
    "shares that do not add up": (
        "places",
        {"share": [0.6, 0.3, 1.0, 1.0, 1.0]},
        "places: shares of location 'north' add up to 0.9, must be 1",
    ),
    "an unknown node": (
        "places",
        {"node": list("abzdf")},
        "places row 3: node 'z' is no node of the network",
    ),
    "content in no cluster": (
        "clients",
        {"content": ["game", "news", "film", "news", "film"]},
        "clients row 1: content 'game' is in no cluster of holdings",
    ),
    "an unknown cluster in ranks": (
        "ranks",
        {"cluster": ["moon", *TABLES["ranks"]["cluster"][1:]]},
        "ranks row 1: cluster 'moon' is no cluster of the CDN",
    ),
    "a tie": (
        "ranks",
        {"rank": 1.0},
        "ranks row 2: rank 1 of location 'north' is there already, must differ",
    ),
    "a step of 0": ("terms", {"step": 0.0}, "terms row 1: step is 0.0, must be greater than 0"),
    "a step above 1": ("terms", {"step": 1.5}, "terms row 1: step is 1.5, must be at most 1"),
    "a negative capacity": (
        "links",
        {"capacity_mbps": -3.0},
        "links row 1: capacity_mbps is -3.0, must be at least 0",
    ),
    "a loop": ("links", {"head": "a"}, "links row 1: tail and head are both 'a', must differ"),
    "no clients": ("clients", {"clients": 0.0}, "clients: has no clients, one row must have some"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_tables_are_refused_by_row(case: str) -> None:
    table, columns, words = BAD[case]
    tables = {**TABLES, table: TABLES[table].assign(**columns)}
    with pytest.raises(InputError) as result:
        Delivery.from_tables(tables)
    assert any(words in fault for fault in result.value.faults), result.value.faults


def test_a_missing_pair_of_a_cost_map_is_named() -> None:
    tables = {**TABLES, "ranks": TABLES["ranks"].iloc[1:]}
    with pytest.raises(
        InputError, match="has no rank of cluster 'north cluster' for location 'north' by 'isp'"
    ):
        Delivery.from_tables(tables)


def test_links_need_latency() -> None:
    tables = {**TABLES, "links": TABLES["links"].drop(columns="latency_ms")}
    with pytest.raises(InputError, match="latency_ms"):
        Delivery.from_tables(tables)


def test_two_rows_of_terms_are_refused() -> None:
    tables = {**TABLES, "terms": pd.concat([TABLES["terms"]] * 2, ignore_index=True)}
    with pytest.raises(InputError, match="terms: has 2 rows, must have one"):
        Delivery.from_tables(tables)


def test_groups_add_up_clients() -> None:
    problem = generators.small()
    assert problem.groups["mbps"].tolist() == [24.0, 40.0, 20.0, 32.0, 20.0]  # east, north twice, south, west
    assert problem.groups["location"].tolist() == ["east", "north", "north", "south", "west"]


def test_a_place_behind_two_nodes_splits_its_traffic() -> None:
    problem = generators.small()
    north = problem.location_share[[problem.location_index.get_loc("north")]].toarray()[0]
    assert north.tolist() == [0.6, 0.4, 0.0, 0.0, 0.0, 0.0]


def test_clusters_serve_only_what_they_hold() -> None:
    problem = generators.small()
    news = problem.groups["content"].to_numpy() == "news"
    west = problem.cluster_index.get_loc("west cluster")
    assert not problem.allowed[news, west].any()
    assert problem.allowed[~news].all()


def test_a_disconnected_cluster_serves_nobody_elsewhere() -> None:
    problem = generators.small()
    cut = adjust(problem, fail_links=("c->b", "c->d"))
    east = problem.cluster_index.get_loc("east cluster")
    served = cut.groups["location"][cut.allowed[:, east]].tolist()
    assert served == ["east"]


def test_adjustments_name_what_is_not_there() -> None:
    with pytest.raises(InputError, match="fail_links: 'a->x' is no link"):
        adjust(generators.small(), fail_links=("a->x",))
    with pytest.raises(InputError, match="'west' is no cluster"):
        adjust(generators.small(), fail_clusters=("west",))


def test_adjustments_change_traffic_capacity_and_terms() -> None:
    problem = generators.small()
    changed = adjust(problem, scale=2.0, link_factors={"a->b": 0.5}, step=0.25, cdn_rounds=3)
    assert changed.group_mbps == pytest.approx(2 * problem.group_mbps)
    assert changed.rate_mbps == pytest.approx(2 * problem.rate_mbps)
    assert changed.network.capacity[0] == 50.0
    assert (changed.step, changed.cdn_rounds) == (0.25, 3)


def test_backbone_has_the_load_that_is_asked_for() -> None:
    problem = generators.backbone(nodes=8, clusters=2, load=0.7, seed=4)
    traffic = problem.background + np.asarray(
        (problem.target_share.T @ generators._nearest(problem)) @ problem.source_share.toarray()
    )
    load = problem.network.carry(problem.network.first_paths, traffic)
    assert (load / problem.network.capacity).max() == pytest.approx(0.7)
    assert problem.capacity_mbps.sum() == pytest.approx(1.5 * problem.group_mbps.sum())


def test_names_of_clusters_in_sentences_say_what_they_are_once() -> None:
    problem = generators.small()
    renamed = problem.clusters.assign(cluster=["north", "east cluster", "Cluster 3"])
    labels = replace(problem, clusters=renamed, holdings=None, ranks=None).cluster_labels
    assert labels == ["cluster north", "east cluster", "Cluster 3"]
