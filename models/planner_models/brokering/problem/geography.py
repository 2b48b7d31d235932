"""Distances on the earth, and continents of countries."""

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
