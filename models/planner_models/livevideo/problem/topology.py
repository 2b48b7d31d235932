"""Random networks of sources, reflectors, edge clusters and client groups after Mukerjee 2018 (4.7.1).

Largest cities of a country with their coordinates: the places of clusters and client groups.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Final

import numpy as np
import pandas as pd

from planner.arrays import Floats, Ints
from planner.errors import InputError
from planner_models import geonames, globe

TIERS = ("source", "reflector", "edge", "group")
EARTH_KM = 6371.0
distance_km: Final = functools.partial(globe.distance_km, radius_km=EARTH_KM)
FIBER_KM_PER_MS = 200.0  # speed of light in fibre, about


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


def draw_network(
    *,
    sources: int = 4,
    reflectors: int = 10,
    edges: int = 100,
    groups: int = 2_587,
    sources_per_reflector: int | None = None,
    reflectors_per_edge: float = 3.0,
    edges_per_group: int = 3,
    source_gbps: float = 4.0,
    reflector_gbps: float | None = None,
    group_link_mbps: float = 150.0,
    edge_gbps: float | None = None,
    country: str = "US",
    random: np.random.Generator,
) -> Network:
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
    limits = (
        ("edges", edges, "groups", groups, ": each edge stands in another city"),
        ("edges_per_group", edges_per_group, "edges", edges, ""),
        ("reflectors_per_edge", reflectors_per_edge, "reflectors", reflectors, ""),
        ("sources_per_reflector", sources_per_reflector or 0, "sources", sources, ""),
    )
    for name, value, other, limit, reason in limits:
        if value > limit:
            raise InputError(f"{name} is {value:g}, must be at most {other}, {limit}{reason}")
    city = largest_cities(groups, country)
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
    counts = (sources, reflectors, edges, groups)
    latitude, longitude = city.latitude[city_rows], city.longitude[city_rows]
    clusters = pd.DataFrame(
        {
            "cluster": names,
            "tier": np.repeat(np.array(TIERS, dtype=object), counts),
            "latitude": latitude,
            "longitude": longitude,
        }
    )
    first = np.cumsum([0, *counts])

    if sources_per_reflector is None or sources_per_reflector >= sources:
        sr = np.stack([np.repeat(np.arange(sources), reflectors), np.tile(np.arange(reflectors), sources)], 1)
    else:
        sr = _draw_pairs(reflectors, sources, sources_per_reflector * reflectors, random)[:, ::-1]
    re = _draw_pairs(edges, reflectors, round(reflectors_per_edge * edges), random)[:, ::-1]
    distance = distance_km(
        city.latitude[:groups], city.longitude[:groups], city.latitude[:edges], city.longitude[:edges]
    )
    nearest = np.argsort(distance, axis=1, kind="stable")[:, :edges_per_group]
    eg = np.stack([nearest.ravel(), np.repeat(np.arange(groups), edges_per_group)], axis=1)
    eg = eg[np.lexsort((eg[:, 1], eg[:, 0]))]

    tail = np.concatenate([sr[:, 0] + first[0], re[:, 0] + first[1], eg[:, 0] + first[2]])
    head = np.concatenate([sr[:, 1] + first[1], re[:, 1] + first[2], eg[:, 1] + first[3]])
    reflector_mbps = 100.0 if reflector_gbps is None else 1000 * reflector_gbps / len(re)
    group_mbps = np.full(len(eg), group_link_mbps)
    if edge_gbps is not None:
        degree = np.bincount(eg[:, 0], minlength=edges)
        group_mbps = np.minimum(group_mbps, 1000 * edge_gbps / degree[eg[:, 0]])
    core = len(sr) + len(re)
    cost = np.concatenate([_draw_core_costs(core, random), _draw_edge_costs(len(eg), random)])
    km = _pairwise_km(latitude[tail], longitude[tail], latitude[head], longitude[head])
    links = pd.DataFrame(
        {
            "tail": np.array(names, dtype=object)[tail],
            "head": np.array(names, dtype=object)[head],
            "capacity_mbps": np.concatenate(
                [np.full(len(sr), 1000 * source_gbps / len(sr)), np.full(len(re), reflector_mbps), group_mbps]
            ),
            "cost": np.round(cost, 2),
            "latency_ms": np.round(0.5 + km / FIBER_KM_PER_MS, 3),
        }
    )
    return Network(
        clusters=clusters, links=links, groups=city.name, share=city.population / city.population.sum()
    )


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
