"""Distances on the earth, continents of countries, and names of codes that are both."""

from __future__ import annotations

import functools
from typing import Final

from planner_models import globe

EARTH_RADIUS_KM: Final = 6371.0088  # mean radius, IUGG
distance_km: Final = functools.partial(globe.distance_km, radius_km=EARTH_RADIUS_KM)
WORLD: Final = "world"
CONTINENTS: Final = {
    "AF": "Africa",
    "AN": "Antarctica",
    "AS": "Asia",
    "EU": "Europe",
    "NA": "North America",
    "OC": "Oceania",
    "SA": "South America",
}
COUNTRIES_BESIDE_CONTINENTS: Final = {
    "AF": "Afghanistan",
    "AS": "American Samoa",
    "NA": "Namibia",
    "SA": "Saudi Arabia",
}
"""Countries whose code is that of a continent too; a region may have either name."""
REGION_NAMES: Final = frozenset({WORLD, *CONTINENTS.values(), *COUNTRIES_BESIDE_CONTINENTS.values()})
