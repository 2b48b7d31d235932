"""Contracts of CDNs by location, and derived prices where a CDN has no contract."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from planner.arrays import Bools, Floats, Ints
from planner_models import geonames
from planner_models.brokering.problem import cluster_matching, geography


def find_contracts(
    contracts: pd.DataFrame | None, cdn_names: Sequence[str], countries: Sequence[str]
) -> Ints:
    """Return the contract of each CDN for the clients of each location, (L, D).

    It is a row of `contracts`, the one of the narrowest region: country, continent, world; -1 where the
    CDN's contracts do not cover the location. A CDN without any contract has a row after the last one: the
    first such CDN has row len(contracts), the next one the row after that.
    """
    contracts_of = np.full((len(countries), len(cdn_names)), -1, dtype=np.int64)
    rows = 0 if contracts is None else len(contracts)
    owners = set() if contracts is None else set(contracts["cdn"])
    without = [cdn for cdn, name in enumerate(cdn_names) if name not in owners]
    contracts_of[:, without] = rows + np.arange(len(without))
    if contracts is None:
        return contracts_of
    # a code that is a continent's too means the continent: where such a country has locations, it is refused
    country = [name if name not in geography.CONTINENTS else "" for name in countries]
    country_name = [geography.COUNTRIES_BESIDE_CONTINENTS.get(name, "") for name in countries]
    continent = [geonames.continent_by_country()[name] for name in countries]
    continent_name = [geography.CONTINENTS[name] for name in continent]
    world = [geography.WORLD] * len(countries)
    row_of = pd.Series(np.arange(rows), index=contracts["region"].to_numpy(object))
    for cdn, name in enumerate(cdn_names):
        rows_of = row_of[(contracts["cdn"] == name).to_numpy()]
        for region in (world, continent, continent_name, country, country_name):
            row = rows_of.reindex(region, fill_value=-1).to_numpy(np.int64)
            contracts_of[:, cdn] = np.where(row < 0, contracts_of[:, cdn], row)
    return contracts_of


def derived_prices(
    score: Floats, unit_cost: Floats, cdn: Ints, offered: Bools, demand_mbps: Floats
) -> Floats:
    """Return the average cost of each CDN if it served all clients, (D,).

    Each location is served by the CDN's first match. A CDN that would serve no clients has the mean of its
    clusters' costs.

    source  Mukerjee 2018, 3.5.1
    """
    first = cluster_matching.match_by_rank(score, unit_cost, cdn, offered, bids=1)
    price = np.zeros(int(cdn.max(initial=-1)) + 1)
    for index in range(len(price)):
        clusters = np.flatnonzero(cdn == index)
        selected = first[:, clusters]
        served = selected.any(axis=1) & (demand_mbps > 0)
        cost = unit_cost[clusters][selected.argmax(axis=1)][served]
        demand = demand_mbps[served]
        average = cost @ demand / demand.sum() if demand.sum() > 0 else unit_cost[clusters].mean()
        price[index] = float(average)
    return price
