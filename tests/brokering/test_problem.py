"""Problems: every fault of bad input as its exact line, round trips, and what is filled in."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings

from planner.errors import InputError
from planner_models.brokering import Brokering, geography, market, matching, regression
from tests.brokering.markets import CITIES, markets
from tests.brokering.markets import market as make

Tables = dict[str, pd.DataFrame]


def tables() -> Tables:
    problem = make(
        [("Lyon", 1000.0, 10), ("Oslo", 500.0, 4)],
        [("a", "x", "Lyon", 60.0, 0.1), ("b", "y", "Oslo", 50.0, 0.2)],
        scores=[("Lyon", "a", 5.0)],
        contracts=[("x", "EU", 0.1)],
        bids=[("Lyon", "a"), ("Oslo", "a"), ("Oslo", "b")],
    )
    return {**problem.to_tables(), "bids": problem.bids} if problem.bids is not None else {}


def cell(table: str, row: int, column: str, value: object) -> Callable[[Tables], None]:
    def change(given: Tables) -> None:
        frame = given[table].astype({column: object})
        frame.loc[row, column] = value
        given[table] = frame

    return change


def repeat(table: str, row: int) -> Callable[[Tables], None]:
    def change(given: Tables) -> None:
        given[table] = pd.concat([given[table], given[table].iloc[[row]]], ignore_index=True)

    return change


def drop_bids_of(location: str) -> Callable[[Tables], None]:
    def change(given: Tables) -> None:
        given["bids"] = given["bids"][given["bids"]["location"] != location].reset_index(drop=True)

    return change


BAD: list[tuple[Callable[[Tables], None], str]] = [
    (
        cell("clients", 0, "location", "Lyonn"),
        "clients row 1: location 'Lyonn' is no location of the problem; did you mean 'Lyon'?",
    ),
    (cell("clients", 1, "clients", 2.5), "clients row 2: clients is 2.5, must be a whole number"),
    (cell("clients", 1, "clients", -1), "clients row 2: clients is -1.0, must be at least 0"),
    (cell("clients", 0, "bitrate_kbps", 0), "clients row 1: bitrate_kbps is 0.0, must be greater than 0"),
    (cell("clients", 0, "bitrate_kbps", "fast"), "clients row 1: bitrate_kbps is 'fast', must be a number"),
    (
        cell("locations", 0, "country", "XQ"),
        "locations row 1: country 'XQ' is no country's code (ISO 3166, two letters)",
    ),
    (cell("locations", 0, "latitude", 91), "locations row 1: latitude is 91.0, must be at most 90"),
    (repeat("locations", 0), "locations row 3: location 'Lyon' is there already in row 1"),
    (
        cell("clusters", 1, "bandwidth_cost", -0.1),
        "clusters row 2: bandwidth_cost is -0.1, must be at least 0",
    ),
    (
        cell("clusters", 1, "capacity_mbps", float("inf")),
        "clusters row 2: capacity_mbps is inf, must be a finite number",
    ),
    (
        cell("clusters", 0, "location", "Rome"),
        "clusters row 1: location 'Rome' is no location of the problem",
    ),
    (cell("scores", 0, "cluster", "z"), "scores row 1: cluster 'z' is no cluster of the problem"),
    (cell("contracts", 0, "price", -1), "contracts row 1: price is -1.0, must be at least 0"),
    (
        cell("contracts", 0, "region", "Europe"),
        "contracts row 1: region 'Europe' is no region: a country's code, a continent's, or world",
    ),
    (cell("contracts", 0, "cdn", "q"), "contracts row 1: cdn 'q' is no CDN of the problem"),
    (repeat("bids", 1), "bids row 4: location 'Oslo', cluster 'a' is there already in row 2"),
    (drop_bids_of("Oslo"), "bids: no cluster is on offer to location 'Oslo', which has clients"),
    (
        cell("terms", 0, "cost_per", "MB"),
        "terms row 1: cost_per is 'MB', must be one of GB, TB, GiB, Mbps-month",
    ),
    (repeat("terms", 0), "terms: has 2 rows, must have one"),
]


@pytest.mark.parametrize(("change", "message"), BAD, ids=[message[:50] for _, message in BAD])
def test_bad_input_is_one_clear_line(change: Callable[[Tables], None], message: str) -> None:
    given = tables()
    change(given)
    with pytest.raises(InputError) as caught:
        Brokering.from_tables(given)
    assert len(caught.value.faults) == 1
    assert caught.value.faults[0].startswith(message)


def test_all_faults_are_told_at_once() -> None:
    given = tables()
    cell("clients", 0, "clients", -1)(given)
    cell("clusters", 0, "bandwidth_cost", -1)(given)
    with pytest.raises(InputError) as caught:
        Brokering.from_tables(given)
    assert len(caught.value.faults) == 2


@settings(max_examples=25)
@given(markets())
def test_tables_make_the_same_problem_again(problem: Brokering) -> None:
    again = Brokering.from_tables(problem.to_tables())
    assert again.terms == problem.terms
    assert np.array_equal(again.score, problem.score)
    assert np.array_equal(again.groups.count, problem.groups.count)
    assert np.array_equal(market.transport_of(again).cost, market.transport_of(problem).cost)


@settings(max_examples=25)
@given(markets())
def test_what_is_believed_is_a_problem_like_any(problem: Brokering) -> None:
    from planner_models.brokering import sees

    believed = sees.multicluster(problem, bids=2)
    again = Brokering.from_tables(believed.to_tables())
    assert np.array_equal(again.offered, believed.offered)
    assert np.array_equal(market.transport_of(again).cost, market.transport_of(believed).cost)
    assert np.array_equal(again.free_mbps, believed.free_mbps)


def test_missing_scores_follow_the_line_of_their_location() -> None:
    distance = np.array([[0.0, 100.0, 200.0], [0.0, 50.0, 100.0]])
    score = np.array([[10.0, 20.0, np.nan], [np.nan, np.nan, 7.0]])
    whole = regression.complete(score, distance)
    assert whole[0].tolist() == pytest.approx([10.0, 20.0, 30.0])
    pooled = np.polynomial.polynomial.polyfit([0.0, 100.0, 100.0], [10.0, 20.0, 7.0], 1)
    assert whole[1].tolist() == pytest.approx([pooled[0], pooled[0] + 50 * pooled[1], 7.0])


def test_without_any_score_the_distance_counts() -> None:
    whole = regression.complete(np.full((1, 2), np.nan), np.array([[0.0, 300.0]]))
    assert whole.tolist() == [[0.01, 3.0]]


def test_distances_are_great_circles() -> None:
    (_, *lyon), (_, *oslo) = CITIES["Lyon"], CITIES["Oslo"]
    one, other = (np.array([[value] for value in place]) for place in (lyon, oslo))
    assert geography.distance_km(*one, *other)[0, 0] == pytest.approx(1624, rel=0.01)


def test_the_narrowest_contract_holds_and_others_are_derived() -> None:
    problem = make(
        [("Lyon", 1000.0, 10), ("Oslo", 1000.0, 30), ("Recife", 1000.0, 0)],
        [("a", "x", "Lyon", 60.0, 0.1), ("b", "y", "Oslo", 50.0, 0.2), ("c", "y", "Recife", 50.0, 0.6)],
        scores=[(place, "b", 1.0) for place in ("Oslo",)]
        + [("Lyon", "c", 1.0), ("Lyon", "b", 9.0), ("Oslo", "c", 9.0)],
        contracts=[("x", "EU", 0.3), ("x", "FR", 0.4)],
        bids=[("Lyon", "a"), ("Lyon", "c"), ("Oslo", "a"), ("Oslo", "b"), ("Recife", "c")],
    )
    price = problem.contract_price
    rows = {name: row for row, name in enumerate(problem.locations["location"])}
    assert price[rows["Lyon"], 0] == 0.4
    assert price[rows["Oslo"], 0] == 0.3
    assert np.isnan(price[rows["Recife"], 0])
    # all of Lyon's 10 Mbit/s at 0.6, all of Oslo's 30 at 0.2
    assert price[:, 1].tolist() == pytest.approx([(10 * 0.6 + 30 * 0.2) / 40] * 3)


@settings(max_examples=25)
@given(markets())
def test_a_stable_matching_has_no_pair_that_would_rather_have_each_other(problem: Brokering) -> None:
    room = problem.free_mbps
    chosen = matching.stable(problem.score, problem.demand_mbps, room, problem.cdn, problem.offered)
    assert (chosen.sum(axis=1) > 0).all()
    for cdn in range(len(problem.cdn_names)):
        mine = np.flatnonzero(problem.cdn == cdn)
        # replay: from the best score up, nobody who was refused fits
        left, free = problem.demand_mbps.copy(), room.copy()
        for place, cluster in sorted(
            ((p, c) for p in range(len(left)) for c in mine),
            key=lambda pair: (problem.score[pair], pair[0], pair[1]),
        ):
            sent = min(left[place], free[cluster])
            if sent > 0:
                assert chosen[place, cluster]
            left[place] -= sent
            free[cluster] -= sent


def test_candidates_are_ranked_by_cost_among_similar_scores() -> None:
    score = np.array([[10.0, 19.0, 21.0, 15.0], [10.0, 50.0, 40.0, 60.0]])
    cost = np.array([4.0, 3.0, 1.0, 2.0])
    cdn = np.zeros(4, dtype=np.int64)
    offered = np.ones((2, 4), dtype=bool)
    one = matching.ranked(score, cost, cdn, offered, bids=1)
    two = matching.ranked(score, cost, cdn, offered, bids=2)
    everyone = matching.ranked(score, cost, cdn, offered, bids=100)
    assert one.tolist() == [[False, False, False, True], [False, False, True, False]]
    assert two.tolist() == [[False, True, False, True], [True, False, True, False]]
    assert everyone.tolist() == [[True, True, False, True], [True, False, True, False]]
