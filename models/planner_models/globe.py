"""Geometry on the globe: great-circle distances, and squares of the map."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def distance_km(
    latitude: Floats, longitude: Floats, other_latitude: Floats, other_longitude: Floats, *, radius_km: float
) -> Floats:
    """Return the great-circle distance of n places to m others, (n, m), by haversine; angles in degrees."""
    lat, lon = np.radians(latitude)[:, None], np.radians(longitude)[:, None]
    other_lat, other_lon = np.radians(other_latitude)[None, :], np.radians(other_longitude)[None, :]
    half = (
        np.sin((other_lat - lat) / 2) ** 2
        + np.cos(lat) * np.cos(other_lat) * np.sin((other_lon - lon) / 2) ** 2
    )
    return np.asarray(2 * radius_km * np.arcsin(np.sqrt(np.clip(half, 0.0, 1.0))))


def km_per_degree(radius_km: float) -> float:
    """Return the length of a degree of latitude."""
    return float(np.pi * radius_km / 180)


def squares(latitude: Floats, longitude: Floats, *, side_km: float, radius_km: float) -> Floats:
    """Return row and column of the map square of each place, (n, 2); angles in degrees.

    Rows run along latitudes; columns are as wide in the middle of their row as it is high.
    """
    per_degree = km_per_degree(radius_km)
    row = np.floor(latitude * per_degree / side_km)
    middle = np.clip((row + 0.5) * side_km / per_degree, -90, 90)
    column = np.floor(longitude * per_degree * np.cos(np.radians(middle)) / side_km)
    return np.column_stack([row, column])
