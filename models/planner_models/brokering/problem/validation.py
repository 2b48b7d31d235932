"""Faults across the tables of a problem: unknown names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import pandas as pd

from planner.contract.tables import file_name, report_unknown_names, row_name, shorten_faults
from planner_models import geonames
from planner_models.brokering.problem import geography
from planner_models.brokering.problem.schema import MOST_CLIENTS

NAMING_COLUMNS: Final = {
    "clients": ("location",),
    "locations": ("country",),
    "clusters": ("location",),
    "scores": ("location", "cluster"),
    "contracts": ("cdn", "region"),
    "bids": ("location", "cluster"),
}
RULES: Final = {
    "location": "no location of the problem",
    "cluster": "no cluster of the problem",
    "cdn": "no CDN of the problem",
    "country": "no country's code (ISO 3166, two letters)",
    "region": "no region: a country's code, a continent's, or world",
}


def too_many_clients(clients: pd.DataFrame) -> Iterator[str]:
    """Yield a fault where the clients of all rows together are more than can be counted."""
    total = float(clients["clients"].sum())
    if total > MOST_CLIENTS:
        yield f"clients: has {total:,.0f} clients in all rows, must have at most {MOST_CLIENTS:,}"


def unknown_names(tables: Mapping[str, pd.DataFrame | None]) -> Iterator[str]:
    """Yield the faults of names in the problem's tables that are no location, cluster, CDN or region."""
    countries = set(geonames.continent_by_country())
    locations, clusters = tables["locations"], tables["clusters"]
    assert locations is not None
    assert clusters is not None
    names_of = {
        "location": set(locations["location"]),
        "cluster": set(clusters["cluster"]),
        "cdn": set(clusters["cdn"]),
        "country": countries,
        "region": {*geography.REGION_NAMES, *geography.CONTINENTS, *countries},
    }
    for table, columns in NAMING_COLUMNS.items():
        frame = tables[table]
        if frame is not None:
            for column in columns:
                yield from report_unknown_names(frame, table, column, names_of[column], RULES[column])
    yield from _unclear_regions(locations, tables["contracts"])


def _unclear_regions(locations: pd.DataFrame, contracts: pd.DataFrame | None) -> Iterator[str]:
    """Yield an error for each region with the code of both a continent and a country with locations."""
    if contracts is None:
        return
    present = set(locations["country"])
    faults = []
    for row, code in enumerate(contracts["region"].astype(str)):
        country = geography.COUNTRIES_BESIDE_CONTINENTS.get(code)
        if country is not None and code in present:
            continent = geography.CONTINENTS[code]
            faults.append(
                f"{row_name(contracts, 'contracts', row)}: region '{code}' is {country}, which has "
                f"locations, or {continent}: write {country} or {continent}"
            )
    yield from shorten_faults(faults, file_name(contracts, "contracts"), "of such regions")
