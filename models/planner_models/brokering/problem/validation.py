"""Faults across the tables of a problem: unknown names, and clients that no cluster may serve."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import numpy as np
import pandas as pd

from planner.contract.tables import file_name, report_unknown_names, shorten_faults
from planner_models.brokering.problem import geography, restrictions

if TYPE_CHECKING:
    from planner_models.brokering.problem.problem import Brokering

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


def find_faults(problem: Brokering) -> list[str]:
    """Return the faults of the first check that finds any."""
    for check in (_unknown_names, _locations_without_offer, _clients_without_cluster):
        faults = list(check(problem))
        if faults:
            return faults
    return []


def _unknown_names(problem: Brokering) -> Iterator[str]:
    countries = set(geography.continent_by_country())
    known = {
        "location": set(problem.locations["location"]),
        "cluster": set(problem.clusters["cluster"]),
        "cdn": set(problem.clusters["cdn"]),
        "country": countries,
        "region": {geography.WORLD, *geography.CONTINENTS, *countries},
    }
    for table, columns in NAMING_COLUMNS.items():
        frame: pd.DataFrame | None = getattr(problem, table)
        for column in columns if frame is not None else ():
            assert frame is not None
            yield from report_unknown_names(frame, table, column, known[column], RULES[column])


def _locations_without_offer(problem: Brokering) -> Iterator[str]:
    if problem.bids is None:
        return
    file = file_name(problem.bids, "bids")
    without = np.flatnonzero((problem.demand_mbps > 0) & ~problem.offered.any(axis=1))
    faults = [
        f"{file}: no cluster is on offer to location '{name}', which has clients"
        for name in problem.locations["location"].iloc[without]
    ]
    yield from shorten_faults(faults, file, "are missing for locations with clients")


def _clients_without_cluster(problem: Brokering) -> Iterator[str]:
    for name in ("pinned", "forbidden"):
        table: pd.DataFrame | None = getattr(problem, name)
        if table is not None:
            yield from restrictions.unmatched_rules(name, table, problem.clients, problem.clusters)
    yield from restrictions.unservable_clients(
        problem.restriction_classes,
        problem.offered,
        problem.clients,
        problem.location,
        problem.pinned,
        problem.forbidden,
    )
