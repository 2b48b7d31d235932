"""Random networks of sources, reflectors, edge clusters and client groups after Mukerjee 2018 (4.7.1).

Largest cities of a country with their coordinates: the places of clusters and client groups.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Annotated, Final

import numpy as np
import pandas as pd
from pydantic import Field

from planner.arrays import Floats, Ints
from planner.errors import InputError
from planner_models import geonames, globe
from planner_models.livevideo.problem.schema import MOST_MBPS

TIERS = ("source", "reflector", "edge", "group")
EARTH_KM = 6371.0
distance_km: Final = functools.partial(globe.distance_km, radius_km=EARTH_KM)
FIBER_KM_PER_MS = 200.0  # speed of light in fibre, about


MOST_GBPS = 1e6

Edges = Annotated[int, Field(gt=0, le=3_000, description="edge clusters")]
Sources = Annotated[int, Field(gt=0, le=100, description="source clusters")]
Reflectors = Annotated[int, Field(gt=0, le=100, description="reflector clusters")]
Groups = Annotated[int, Field(gt=0, le=100_000, description="client groups, one a city")]
SourceGbps = Annotated[
    float, Field(gt=0, le=MOST_GBPS, description="capacity from all sources to all reflectors, Gbit/s")
]
ReflectorGbps = Annotated[
    Annotated[float, Field(gt=0, le=MOST_GBPS)] | None,
    Field(description="capacity from all reflectors to all edges, Gbit/s; none: 100 Mbit/s a link"),
]
GroupMbps = Annotated[
    float, Field(gt=0, le=MOST_MBPS, description="capacity of a link from an edge to a group, Mbit/s")
]
EdgeGbps = Annotated[
    Annotated[float, Field(gt=0, le=MOST_GBPS)] | None,
    Field(description="capacity that an edge divides evenly among its links to groups; none: no such limit"),
]
SourceDegree = Annotated[
    Annotated[int, Field(gt=0, le=10**6)] | None,
    Field(description="sources that a reflector is linked to; none: all"),
]
ReflectorDegree = Annotated[
    float, Field(ge=1, description="reflectors that an edge is linked to, on average")
]
EdgeDegree = Annotated[
    int, Field(ge=1, le=10_000, description="edges that a group is linked to, the nearest")
]
Country = Annotated[
    str, Field(description="country of the cities with edges and groups, two letters; *: the world")
]


@dataclass(frozen=True, kw_only=True)
class Layout:
    """Numbers, degrees and capacities of the network of section 4.7.1, by default the printed ones."""

    edges: Edges = 100
    sources: Sources = 4
    reflectors: Reflectors = 10
    groups: Groups = 2_587
    source_gbps: SourceGbps = 4.0
    reflector_gbps: ReflectorGbps = None
    group_link_mbps: GroupMbps = 150.0
    edge_gbps: EdgeGbps = None
    sources_per_reflector: SourceDegree = None
    reflectors_per_edge: ReflectorDegree = 3.0
    edges_per_group: EdgeDegree = 3
    country: Country = "US"


@dataclass(frozen=True, kw_only=True, eq=False)
class Network:
    """Clusters, links and the share of each group in all clients.

    groups  names of the client groups
    share   (G,) share of all clients, sums to 1
    """

    clusters: pd.DataFrame
    links: pd.DataFrame
    groups: list[str]
    share: Floats


def draw_network(layout: Layout, random: np.random.Generator) -> Network:
    """Draw the network of section 4.7.1, by default with its numbers.

    The links between two tiers have equal shares of a total capacity: `source_gbps` from sources to
    reflectors (4 sources x 1 Gbit/s over 10 links of 100 Mbit/s each), `reflector_gbps` from
    reflectors to edges (default 100 Mbit/s a link, so 30 Gbit/s at 100 edges). A link to a group
    has `group_link_mbps`; with `edge_gbps` an edge divides that evenly among its links, if that is
    less: the printed 9 Gbit/s allow 60 links of 150 Mbit/s, while 2,587 groups with 3 links each
    need 78 an edge.

    Edges stand in the largest cities, groups in each of the largest; one group (one AS) a city.
    Costs are normal between 10 and 50 (mean 30, deviation 10, redrawn outside), those of links to
    groups are 0 for half and uniform from 1 to 5 for the rest. Reflectors and sources stand in
    random cities among those with edges.

    raises  InputError for degrees or numbers of clusters that no network has
    """
    _require_possible(layout)
    counts = (layout.sources, layout.reflectors, layout.edges, layout.groups)
    city = largest_cities(layout.groups, layout.country)
    clusters = _place_clusters(city, counts, random)
    pairs = _draw_links(layout, city, random)
    first = np.cumsum([0, *counts])
    tail, head = (
        np.concatenate([ends[:, side] + first[tier + side] for tier, ends in enumerate(pairs)])
        for side in (0, 1)
    )
    core = len(pairs[0]) + len(pairs[1])
    cost = np.concatenate([_draw_core_costs(core, random), _draw_edge_costs(len(pairs[2]), random)])
    names = clusters["cluster"].to_numpy(object)
    latitude, longitude = (clusters[name].to_numpy(float) for name in ("latitude", "longitude"))
    km = _pairwise_km(latitude[tail], longitude[tail], latitude[head], longitude[head])
    links = pd.DataFrame(
        {
            "tail": names[tail],
            "head": names[head],
            "capacity_mbps": _divide_capacity(layout, *pairs),
            "cost": np.round(cost, 2),
            "latency_ms": np.round(0.5 + km / FIBER_KM_PER_MS, 3),
        }
    )
    return Network(
        clusters=clusters, links=links, groups=city.name, share=city.population / city.population.sum()
    )


def _require_possible(layout: Layout) -> None:
    """Raise InputError for degrees or numbers of clusters that no network has."""
    limits = (
        ("edges", layout.edges, "groups", layout.groups, ": each edge stands in another city"),
        ("edges_per_group", layout.edges_per_group, "edges", layout.edges, ""),
        ("reflectors_per_edge", layout.reflectors_per_edge, "reflectors", layout.reflectors, ""),
        ("sources_per_reflector", layout.sources_per_reflector or 0, "sources", layout.sources, ""),
    )
    for name, value, other, limit, reason in limits:
        if value > limit:
            raise InputError(f"{name} is {value:g}, must be at most {other}, {limit}{reason}")


def _place_clusters(
    city: Cities, counts: tuple[int, int, int, int], random: np.random.Generator
) -> pd.DataFrame:
    """Return the table of clusters: numbers of each tier, edges and groups in the largest cities."""
    sources, reflectors, edges, groups = counts
    city_rows = np.concatenate(
        [
            random.choice(edges, sources, replace=sources > edges),
            random.choice(edges, reflectors, replace=reflectors > edges),
            np.arange(edges),
            np.arange(groups),
        ]
    )
    names = [
        *(f"S{i + 1}" for i in range(sources)),
        *(f"R{i + 1}" for i in range(reflectors)),
        *(f"E {city.name[i]}" for i in range(edges)),
        *city.name,
    ]
    return pd.DataFrame(
        {
            "cluster": names,
            "tier": np.repeat(np.array(TIERS, dtype=object), counts),
            "latitude": city.latitude[city_rows],
            "longitude": city.longitude[city_rows],
        }
    )


def _draw_links(layout: Layout, city: Cities, random: np.random.Generator) -> tuple[Ints, Ints, Ints]:
    """Return (n, 2) tails and heads, numbered within their tiers, of the links below each upper tier."""
    sources, reflectors, edges, groups = layout.sources, layout.reflectors, layout.edges, layout.groups
    if layout.sources_per_reflector is None or layout.sources_per_reflector >= sources:
        sr = np.stack([np.repeat(np.arange(sources), reflectors), np.tile(np.arange(reflectors), sources)], 1)
    else:
        sr = _draw_pairs(reflectors, sources, layout.sources_per_reflector * reflectors, random)[:, ::-1]
    re = _draw_pairs(edges, reflectors, round(layout.reflectors_per_edge * edges), random)[:, ::-1]
    distance = distance_km(
        city.latitude[:groups], city.longitude[:groups], city.latitude[:edges], city.longitude[:edges]
    )
    nearest = np.argsort(distance, axis=1, kind="stable")[:, : layout.edges_per_group]
    eg = np.stack([nearest.ravel(), np.repeat(np.arange(groups), layout.edges_per_group)], axis=1)
    return sr, re, eg[np.lexsort((eg[:, 1], eg[:, 0]))]


def _divide_capacity(layout: Layout, sr: Ints, re: Ints, eg: Ints) -> Floats:
    """Return the capacity of each link, Mbit/s: equal shares of that between two tiers."""
    reflector_mbps = 100.0 if layout.reflector_gbps is None else 1000 * layout.reflector_gbps / len(re)
    group_mbps = np.full(len(eg), layout.group_link_mbps)
    if layout.edge_gbps is not None:
        degree = np.bincount(eg[:, 0], minlength=layout.edges)
        group_mbps = np.minimum(group_mbps, 1000 * layout.edge_gbps / degree[eg[:, 0]])
    source_mbps = 1000 * layout.source_gbps / len(sr)
    return np.concatenate([np.full(len(sr), source_mbps), np.full(len(re), reflector_mbps), group_mbps])


def _draw_pairs(children: int, parents: int, count: int, random: np.random.Generator) -> Ints:
    """Draw (count, 2) pairs of child and parent: equal degrees of parents, at least one parent a child."""
    count = max(count, children)
    degree = np.full(parents, count // parents) + (np.arange(parents) < count % parents)
    is_parent = np.zeros((children, parents), dtype=bool)
    for parent in range(parents):
        is_parent[random.choice(children, min(int(degree[parent]), children), replace=False), parent] = True
    for child in np.flatnonzero(~is_parent.any(axis=1)):  # takes a parent from a child that has several
        giver = int(random.choice(np.flatnonzero(is_parent.sum(axis=1) > 1)))
        parent = int(random.choice(np.flatnonzero(is_parent[giver])))
        is_parent[giver, parent], is_parent[child, parent] = False, True
    return np.argwhere(is_parent.T)[:, ::-1].astype(np.int64)


def _draw_core_costs(count: int, random: np.random.Generator) -> Floats:
    costs = random.normal(30.0, 10.0, count)
    while (outside := (costs < 10) | (costs > 50)).any():
        costs[outside] = random.normal(30.0, 10.0, int(outside.sum()))
    return np.asarray(costs)


def _draw_edge_costs(count: int, random: np.random.Generator) -> Floats:
    free = random.permutation(count) < count // 2
    return np.where(free, 0.0, random.uniform(1.0, 5.0, count))


def _pairwise_km(
    latitude: Floats,
    longitude: Floats,
    other_latitude: Floats,
    other_longitude: Floats,
) -> Floats:
    """Return the length of the great circle from each place to the other of the same row, (n,), km."""
    a, b = np.radians(latitude), np.radians(other_latitude)
    difference = np.radians(other_longitude - longitude)
    half = np.sin((b - a) / 2) ** 2 + np.cos(a) * np.cos(b) * np.sin(difference / 2) ** 2
    return np.asarray(2 * EARTH_KM * np.arcsin(np.sqrt(np.clip(half, 0.0, 1.0))))


@dataclass(frozen=True, kw_only=True, eq=False)
class Cities:
    """Cities in descending order of population.

    name        (n,) unique: a name that occurs twice is followed by its state
    latitude    (n,) degrees north
    longitude   (n,) degrees east
    population  (n,)
    """

    name: list[str]
    latitude: Floats
    longitude: Floats
    population: Floats


def largest_cities(count: int, country: str = "US") -> Cities:
    """Return the largest cities of a country, or of the world ("*").

    raises  InputError for an unknown country, or one with fewer cities
    source  GeoNames, places of over 15,000 people
    """
    world = geonames.cities()
    cities = world if country == "*" else world[world["country"] == country]
    if cities.empty:
        raise InputError(
            f"country is '{country}': no city is known there; name it by two letters, such as US"
        )
    if len(cities) < count:
        raise InputError(f"{count} cities are wanted, {len(cities)} are known in country '{country}'")
    cities = cities.sort_values(["population", "geonameid"], ascending=[False, True])[:count]
    names: list[str] = []
    used: set[str] = set()
    for name, region, number in zip(cities["name"], cities["region"], cities["geonameid"], strict=True):
        names.append(
            next(
                candidate
                for candidate in (name, f"{name} {region}", f"{name} {number}")
                if candidate not in used
            )
        )
        used.add(names[-1])
    return Cities(
        name=names,
        latitude=cities["latitude"].to_numpy(float),
        longitude=cities["longitude"].to_numpy(float),
        population=cities["population"].clip(lower=1).to_numpy(float),
    )
