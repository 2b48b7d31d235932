"""Faults across the tables of a problem: unknown names, and locations without an offer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import pandas as pd

from planner.arrays import Bools, Floats
from planner.contract.tables import file_name, report_unknown_names, shorten_faults
from planner_models.brokering.problem import geography

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


def unknown_names(tables: Mapping[str, pd.DataFrame | None]) -> Iterator[str]:
    """Yield the faults of names in the problem's tables that are no location, cluster, CDN or region."""
    countries = set(geography.continent_by_country())
    locations, clusters = tables["locations"], tables["clusters"]
    assert locations is not None
    assert clusters is not None
    known = {
        "location": set(locations["location"]),
        "cluster": set(clusters["cluster"]),
        "cdn": set(clusters["cdn"]),
        "country": countries,
        "region": {geography.WORLD, *geography.CONTINENTS, *countries},
    }
    for table, columns in NAMING_COLUMNS.items():
        frame = tables[table]
        if frame is not None:
            for column in columns:
                yield from report_unknown_names(frame, table, column, known[column], RULES[column])


def locations_without_offer(
    bids: pd.DataFrame | None, names: pd.Series, demand_mbps: Floats, offered: Bools
) -> Iterator[str]:
    """Yield the faults of locations, (L,) by name, that have clients and no cluster (L, C) on offer."""
    if bids is None:
        return
    file = file_name(bids, "bids")
    faults = [
        f"{file}: no cluster is on offer to location '{name}', which has clients"
        for name in names[(demand_mbps > 0) & ~offered.any(axis=1)]
    ]
    yield from shorten_faults(faults, file, "are missing for locations with clients")
