"""Problems: round trips through tables."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings

from planner.errors import InputError
from planner_models.brokering import Brokering, information
from planner_models.brokering.plan.transportation import transportation_problem
from planner_models.brokering.problem.missing_values import find_contracts
from tests.models.brokering.markets import market as make
from tests.models.brokering.markets import markets

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
    def change(inputs: Tables) -> None:
        frame = inputs[table].astype({column: object})
        frame.loc[row, column] = value
        inputs[table] = frame

    return change


def repeat(table: str, row: int) -> Callable[[Tables], None]:
    def change(inputs: Tables) -> None:
        inputs[table] = pd.concat([inputs[table], inputs[table].iloc[[row]]], ignore_index=True)

    return change


BAD: list[tuple[Callable[[Tables], None], str]] = [
    (
        cell("clients", 0, "location", "Lyonn"),
        "clients row 1: location 'Lyonn' is no location of the problem; did you mean 'Lyon'?",
    ),
    (cell("clients", 1, "clients", 2.5), "clients row 2: clients is 2.5, must be a whole number"),
    (cell("clients", 1, "clients", -1), "clients row 2: clients is -1.0, must be at least 0"),
    (cell("clients", 1, "clients", 1e300), "clients row 2: clients is 1e+300, must be at most 1e+09"),
    (
        cell("clients", 0, "bitrate_kbps", 1e-300),
        "clients row 1: bitrate_kbps is 1e-300, must be at least 0.001",
    ),
    (
        cell("clients", 0, "bitrate_kbps", 1e13),
        "clients row 1: bitrate_kbps is 10000000000000.0, must be at most 1e+09",
    ),
    (
        cell("clusters", 0, "capacity_mbps", 1e300),
        "clusters row 1: capacity_mbps is 1e+300, must be at most 1e+12",
    ),
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
        cell("contracts", 0, "region", "Narnia"),
        "contracts row 1: region 'Narnia' is no region: a country's code, a continent's, or world",
    ),
    (cell("contracts", 0, "cdn", "q"), "contracts row 1: cdn 'q' is no CDN of the problem"),
    (repeat("bids", 1), "bids row 4: location 'Oslo', cluster 'a' is there already in row 2"),
    (
        cell("terms", 0, "cost_per", "MB"),
        "terms row 1: cost_per is 'MB', must be one of GB, TB, GiB, Mbps-month",
    ),
    (repeat("terms", 0), "terms: has 2 rows, must have one"),
]


@pytest.mark.parametrize(("change", "message"), BAD, ids=[message[:50] for _, message in BAD])
def test_bad_input_is_one_clear_line(change: Callable[[Tables], None], message: str) -> None:
    inputs = tables()
    change(inputs)
    with pytest.raises(InputError) as caught:
        Brokering.from_tables(inputs)
    assert len(caught.value.faults) == 1
    assert caught.value.faults[0].startswith(message)


def test_all_faults_are_listed_at_once() -> None:
    inputs = tables()
    cell("clients", 0, "clients", -1)(inputs)
    cell("clusters", 0, "bandwidth_cost", -1)(inputs)
    with pytest.raises(InputError) as caught:
        Brokering.from_tables(inputs)
    assert len(caught.value.faults) == 2


@pytest.mark.parametrize(
    ("region", "country", "price"),
    [
        ("SA", "BR", 0.03),
        ("South America", "BR", 0.03),
        ("South America", "SA", 0.09),
        ("Saudi Arabia", "SA", 0.03),
        ("Saudi Arabia", "BR", 0.09),
        ("AS", "SA", 0.03),
        ("Asia", "SA", 0.03),
        ("NA", "CA", 0.03),
        ("Namibia", "NA", 0.03),
        ("AF", "NA", 0.03),
        ("Afghanistan", "AF", 0.03),
        ("American Samoa", "AS", 0.03),
        ("Oceania", "AS", 0.03),
    ],
)
def test_a_region_is_a_country_or_a_continent(region: str, country: str, price: float) -> None:
    contracts = pd.DataFrame({"cdn": "A", "region": [region, "world"], "price": [0.03, 0.09]})
    row = find_contracts(contracts, ["A"], [country])[0, 0]
    assert contracts["price"].iloc[row] == price


@pytest.mark.parametrize(
    ("code", "country", "continent"),
    [
        ("SA", "Saudi Arabia", "South America"),
        ("NA", "Namibia", "North America"),
        ("AF", "Afghanistan", "Africa"),
        ("AS", "American Samoa", "Asia"),
    ],
)
def test_a_region_with_two_readings_is_asked_about(code: str, country: str, continent: str) -> None:
    inputs = tables()
    inputs["locations"] = inputs["locations"].assign(country=code)
    inputs["contracts"] = pd.DataFrame({"cdn": ["x"], "region": [code], "price": [0.03]})
    with pytest.raises(InputError) as error:
        Brokering.from_tables(inputs)
    assert error.value.faults == (
        (
            f"contracts row 1: region '{code}' is {country}, which has locations, or {continent}: write "
            f"{country} or {continent}"
        ),
    )
    for name in (country, continent):
        contracts = inputs["contracts"].assign(region=name)
        Brokering.from_tables({**inputs, "contracts": contracts})


@settings(max_examples=25)
@given(markets())
def test_tables_make_the_same_problem_again(problem: Brokering) -> None:
    again = Brokering.from_tables(problem.to_tables())
    assert again.terms == problem.terms
    assert np.array_equal(again.score, problem.score)
    assert np.array_equal(again.groups.count, problem.groups.count)
    assert np.array_equal(transportation_problem(again).cost, transportation_problem(problem).cost)


@pytest.mark.slow
@settings(max_examples=25)
@given(markets())
def test_an_observation_is_a_problem_like_any(problem: Brokering) -> None:

    observed = information.multicluster(problem, bids=2)
    again = Brokering.from_tables(observed.to_tables())
    assert np.array_equal(again.offered, observed.offered)
    assert np.array_equal(transportation_problem(again).cost, transportation_problem(observed).cost)
    assert np.array_equal(again.residual_mbps, observed.residual_mbps)
