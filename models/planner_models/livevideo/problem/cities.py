"""Largest cities of a country with their coordinates: the places of clusters and client groups."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Final

from planner.arrays import Floats
from planner.errors import InputError
from planner_models import geonames, globe

EARTH_KM = 6371.0
distance_km: Final = functools.partial(globe.distance_km, radius_km=EARTH_KM)
FIBER_KM_PER_MS = 200.0  # speed of light in fibre, about


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
