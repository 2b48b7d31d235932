"""Price lists of host types as CSV."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from planner.contract.notes import add_note
from planner.contract.table import Table, label, number
from planner.errors import did_you_mean
from planner.io.table_files import find_tables, read_tables
from planner_models.consolidation.problem.schema import PRICE_NAMES

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
            other_names=PRICE_NAMES,
        ),
    },
    key=("host_type",),
)
WITHOUT_PRICE: Final = 1.0


def read_prices(path: Path) -> dict[str, float]:
    """Return the price of each type in a file; raises InputError with every error in it."""
    frame = read_tables(
        [PRICES], {"prices": find_tables((PRICES,), path)["prices"]} if path.is_dir() else {"prices": path}
    )["prices"]
    return dict(zip(frame["host_type"].astype(str), frame["price_per_h"].astype(float), strict=True))


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
