"""Price lists of host types as CSV."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Final

from planner.contract.notes import add_note
from planner.contract.table import Table, label, number
from planner.contract.tables import row_name, shorten_faults
from planner.contract.units import plain
from planner.errors import InputError, did_you_mean
from planner.io.layout import TableFile
from planner.io.table_files import find_tables, list_headers, read_tables

PRICES: Final = Table(
    name="prices",
    other_names=("price list",),
    about="price of a host type",
    columns={
        "host_type": label(
            "name of the type",
            other_names=("instance type", "instance", "type", "flavor", "name", "api name"),
        ),
        "price_per_h": number(
            "price of a host in an hour",
            at_least=0,
            at_most=1e9,
            least=1e-9,
        ),
    },
    key=("host_type",),
)
WITHOUT_PRICE: Final = 1.0
HOURLY: Final = (
    "price",
    "hourly price",
    "price per hour",
    "on demand",
    "on demand price",
    "on demand hourly",
    "linux on demand cost",
    "on demand linux pricing",
    "cost",
    "hourly cost",
    "cost per hour",
)
"""Names of the column of prices that say no unit: such lists give the price of an hour."""
CURRENCY: Final = re.compile(r"\((?:usd|eur|gbp|\$|€|£)\)|\b(?:usd|eur|gbp)\b|[$€£]", flags=re.IGNORECASE)
IN_WORDS: Final = replace(
    PRICES, columns={**PRICES.columns, "price_per_h": label("price of a host in an hour")}
)
"""The same list with prices as it writes them: `$0.096 hourly`."""
AMOUNT: Final = re.compile(r"(\d+(?:[.,]\d+)?)\s*(?:hourly|per\s+hour|/\s*h(?:r|our)?)?", flags=re.IGNORECASE)
UNPRICED: Final = ("unavailable", "n/a", "-", "")


def read_prices(path: Path) -> dict[str, float]:
    """Return the price of each type in a file; raises InputError with every error in it."""
    file = find_tables((PRICES,), path)["prices"] if path.is_dir() else TableFile(path=path)
    named = _name_price(file)
    if named is None:
        frame = read_tables([PRICES], {"prices": file})["prices"]
        return dict(zip(frame["host_type"].astype(str), frame["price_per_h"].astype(float), strict=True))
    frame = read_tables([IN_WORDS], {"prices": named})["prices"]
    result, faults = {}, []
    for row, (name, text) in enumerate(frame[["host_type", "price_per_h"]].astype(str).to_numpy().tolist()):
        amount = CURRENCY.sub("", text).strip()
        match = AMOUNT.fullmatch(amount)
        if match is not None:
            result[name] = float(match[1].replace(",", "."))
        elif amount.lower() not in UNPRICED:
            where = row_name(frame, "prices", row)
            faults.append(f"{where}: price_per_h is '{text[:40]}', must be a number, or as '$0.096 hourly'")
    if faults:
        raise InputError(*shorten_faults(faults, file.name, "with other prices"))
    return result


def _name_price(file: TableFile) -> TableFile | None:
    """Return the file with its column of prices named where that says no unit; None for others."""
    headers = [name for header in list_headers(file) for name in header]
    names = [
        name for name in headers if plain(CURRENCY.sub("", name)) in {plain(hourly) for hourly in HOURLY}
    ]
    is_named = any(plain(name) == plain("price_per_h") for name in headers)
    if is_named or len(set(names)) != 1:
        return None
    return replace(
        file, layout=replace(file.layout, columns={**file.layout.columns, "price_per_h": names[0]})
    )


def price_types(names: Iterable[str], prices: dict[str, float] | None) -> list[float]:
    """Return the price of each type; types without a price cost 1, which a note says."""
    result = []
    missing = []
    for name in names:
        if prices is not None and name not in prices:
            missing.append(name)
        result.append(WITHOUT_PRICE if prices is None else prices.get(name, WITHOUT_PRICE))
    if prices is None:
        add_note("assumed: each host costs 1 in an hour, as there is no price list")
    for name in dict.fromkeys(missing):
        add_note(
            f"assumed: host type '{name}' costs 1 in an hour; it is not in the price list"
            + did_you_mean(name, prices or {})
        )
    return result
