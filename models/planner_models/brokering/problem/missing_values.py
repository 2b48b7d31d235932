"""Values that tables leave out: contracts by location, derived prices, scores by regression on distance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import pandas as pd

from planner.arrays import Bools, Floats, Ints
from planner_models import geonames
from planner_models.brokering.problem import cluster_matching, geography

MIN_SCORE: Final = 0.01  # of scores that are filled in
KM_PER_SCORE_UNIT: Final = 100.0  # without any measured score: round trip in fibre, ms


def find_contracts(
    contracts: pd.DataFrame | None, cdn_names: Sequence[str], countries: Sequence[str]
) -> Ints:
    """Return the contract of each CDN for the clients of each location, (L, D).

    It is a row of `contracts`, the one of the narrowest region: country, continent, world; -1 where the
    CDN's contracts do not cover the location. A CDN without any contract has a row after the last one: the
    first such CDN has row len(contracts), the next one the row after that.
    """
    contracts_of = np.full((len(countries), len(cdn_names)), -1, dtype=np.int64)
    if contracts is None:
        contracts_of[:] = np.arange(len(cdn_names))
        return contracts_of
    without = np.flatnonzero(~pd.Series(cdn_names, dtype=object).isin(contracts["cdn"]))
    contracts_of[:, without] = len(contracts) + np.arange(len(without))
    # a code that is a continent's too means the continent: where such a country has locations, it is refused
    country = [name if name not in geography.CONTINENTS else "" for name in countries]
    country_name = [geography.COUNTRIES_BESIDE_CONTINENTS.get(name, "") for name in countries]
    continent = [geonames.continent_by_country()[name] for name in countries]
    continent_name = [geography.CONTINENTS[name] for name in continent]
    world = [geography.WORLD] * len(countries)
    row_of = pd.Series(np.arange(len(contracts)), index=contracts["region"].to_numpy(object))
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


def fill_missing_scores(score: Floats, distance_km: Floats) -> Floats:
    """Return `score` (L, C) with its NaN filled in.

    Each location gets the least-squares line of its own scores over distance. Where it has fewer
    than two distances, or its line falls with distance, the line through the scores of all locations is
    used; without any usable line, the mean score; without any score, the round trip in fibre in ms. No
    score that is filled in is below 0.01.

    source  Mukerjee 2018, 3.5.1 (linear regression of scores on distance)
    """
    is_known = np.isfinite(score)
    if is_known.all():
        return score
    if not is_known.any():
        return np.maximum(distance_km / KM_PER_SCORE_UNIT, MIN_SCORE)
    pooled = _fit_line(*_regression_sums(score, distance_km, is_known, axis=None))
    slope, intercept = _fit_line(*_regression_sums(score, distance_km, is_known, axis=1))
    usable = np.isfinite(slope) & (slope >= 0)
    if not (np.isfinite(pooled[0]) and pooled[0] >= 0):
        pooled = (np.zeros(1), np.array([score[is_known].mean()]))
    slope = np.where(usable, slope, pooled[0])
    intercept = np.where(usable, intercept, pooled[1])
    fitted = np.maximum(intercept[:, None] + slope[:, None] * distance_km, MIN_SCORE)
    return np.where(is_known, score, fitted)


def _regression_sums(
    score: Floats, distance: Floats, is_known: Bools, axis: int | None
) -> tuple[Floats, ...]:
    x, y = np.where(is_known, distance, 0.0), np.where(is_known, score, 0.0)
    sums = (is_known.sum(axis=axis), x.sum(axis=axis), y.sum(axis=axis), (x * x).sum(axis=axis))
    return tuple(np.atleast_1d(np.asarray(sum_, dtype=float)) for sum_ in (*sums, (x * y).sum(axis=axis)))


def _fit_line(n: Floats, x: Floats, y: Floats, xx: Floats, xy: Floats) -> tuple[Floats, Floats]:
    """Return slope and intercept of each line; NaN where the distances do not differ."""
    spread = n * xx - x * x
    flat = (n < 2) | (spread <= 1e-9 * np.maximum(n * xx, 1e-12))
    slope = np.divide(n * xy - x * y, spread, out=np.full(len(n), np.nan), where=~flat)
    intercept = np.divide(y - slope * x, n, out=np.full(len(n), np.nan), where=n > 0)
    return slope, intercept
