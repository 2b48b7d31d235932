"""Flat prices of CDNs by contract, and derived where a CDN has no contract."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from planner.arrays import Bools, Floats, Ints
from planner_models import geonames
from planner_models.brokering.problem import cluster_matching, geography


def contract_prices(
    contracts: pd.DataFrame | None, cdn_names: Sequence[str], countries: Sequence[str], derived: Floats
) -> Floats:
    """Return the flat price of each CDN for the clients of each location, (L, D).

    The contract of the narrowest region applies: country, continent, world. A CDN without any contract
    has its derived price (D,); one whose contracts do not cover a location has no price there: NaN.
    """
    price = np.tile(derived, (len(countries), 1))
    if contracts is None:
        return price
    # the code of Namibia is that of North America too, and means the continent
    country = [name if name not in geography.CONTINENTS else "" for name in countries]
    continent = [geonames.continent_by_country()[name] for name in countries]
    world = [geography.WORLD] * len(countries)
    for cdn, name in enumerate(cdn_names):
        own = contracts[contracts["cdn"] == name].set_index("region")["price"]
        if own.empty:
            continue
        price[:, cdn] = np.nan
        for region in (world, continent, country):
            found = own.reindex(region).to_numpy(float)
            price[:, cdn] = np.where(np.isnan(found), price[:, cdn], found)
    return price


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
    for one in range(len(price)):
        clusters = np.flatnonzero(cdn == one)
        chosen = first[:, clusters]
        served = chosen.any(axis=1) & (demand_mbps > 0)
        cost = unit_cost[clusters][chosen.argmax(axis=1)][served]
        demand = demand_mbps[served]
        average = cost @ demand / demand.sum() if demand.sum() > 0 else unit_cost[clusters].mean()
        price[one] = float(average)
    return price
