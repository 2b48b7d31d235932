"""Prices of requests by the names that price lists give them."""

from __future__ import annotations

from fractions import Fraction

import pytest

from planner.contract.columns import match_columns
from planner.contract.request_prices import split_request_count
from planner.contract.table import Table, label, number
from planner.contract.units import LONGEST_NAME

PRICES = Table(
    name="prices",
    about="prices of a region",
    columns={
        "region": label("region"),
        "put_usd": number("price of a write, USD", optional=True, other_names=("writes",), of_requests=True),
        "server_usd": number("price of a server, USD", optional=True),
    },
    key=("region",),
)


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("PUT price per million requests", 1_000_000),
        ("PUT per 1,000 requests ($)", 1_000),
        ("put_usd_per_1000", 1_000),
        ("put price (USD/1M)", 1_000_000),
        ("Writes ($ per 10 thousand)", 10_000),
        ("PUT cost per 10k", 10_000),
        ("Put (per request)", 1),
        ("PUT ($)", 1),
    ],
)
def test_a_column_says_of_how_many_requests_its_prices_are(name: str, count: int) -> None:
    match = match_columns(PRICES, ["region", name], where="prices.csv")
    assert match.names["put_usd"] == name
    assert match.factors.get("put_usd", Fraction(1)) == Fraction(1, count)
    said = f"{count:,} requests" if count > 1 else "one request"
    assert [said in line for line in match.assumed] == [True]


@pytest.mark.parametrize(
    "name", ["Price per month", "input price", "Writes per second", "server per million"]
)
def test_other_prices_are_none_of_requests(name: str) -> None:
    match = match_columns(PRICES, ["region", name], where="prices.csv")
    assert list(match.names) == ["region"]


def test_a_name_without_a_number_of_requests_has_none() -> None:
    assert split_request_count("Price per month") is None
    assert split_request_count("PUT per 0 requests") is None
    assert split_request_count("a per 1,000 requests" + " " * LONGEST_NAME) is None


def test_two_prices_of_requests_are_refused() -> None:
    match = match_columns(PRICES, ["region", "put_usd per 1,000", "PUT price"], where="prices.csv")
    assert match.several["put_usd"] == ("put_usd per 1,000", "PUT price")
    assert any("put_usd" in line for line in match.find_faults())
