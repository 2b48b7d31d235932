"""Round-trip times and prices between regions: relays for missing pairs, and plausibility."""

from __future__ import annotations

from typing import Final

import numpy as np

from planner.arrays import Floats
from planner_models.globe import distance_km

EARTH_KM: Final = 6371.0
FIBRE_KM_PER_MS: Final = 204.0
"""Speed of light in glass of refractive index 1.47."""
ASYMMETRY: Final = 0.2


def relay_ms(times: Floats) -> Floats:
    """Return times, (N, N), in which missing pairs (NaN) take the fastest way over others; inf for none."""
    shortest = np.where(np.isnan(times), np.inf, times)
    np.fill_diagonal(shortest, 0.0)
    for over in range(len(shortest)):  # Floyd and Warshall
        np.minimum(shortest, shortest[:, over, None] + shortest[None, over, :], out=shortest)
    return np.asarray(np.where(np.isnan(times), shortest, times))


def relay_cost(prices: Floats, times: Floats) -> Floats:
    """Return prices, (N, N), in which missing pairs (NaN) pay each hop of their fastest way."""
    shortest = np.where(np.isnan(times), np.inf, times)
    np.fill_diagonal(shortest, 0.0)
    paid = np.where(np.isnan(prices), np.inf, prices)
    for over in range(len(shortest)):
        time = shortest[:, over, None] + shortest[None, over, :]
        is_faster = time < shortest
        shortest = np.where(is_faster, time, shortest)
        paid = np.where(is_faster, paid[:, over, None] + paid[None, over, :], paid)
    return np.asarray(np.where(np.isnan(prices), paid, prices))


def find_too_fast(times: Floats, position: Floats) -> list[tuple[int, int, float]]:
    """Return pairs that are faster than light in fibre: source, target, distance in km.

    position  (N, 2) latitude and longitude in degrees
    """
    latitude, longitude = position[:, 0], position[:, 1]
    km = distance_km(latitude, longitude, latitude, longitude, radius_km=EARTH_KM)
    rows = np.argwhere(times < 2 * km / FIBRE_KM_PER_MS)
    return [(source, target, float(km[source, target])) for source, target in rows.tolist()]


def asymmetric_share(times: Floats) -> float:
    """Return the share of pairs of regions with times that differ by direction by more than 20%."""
    upper = np.triu_indices(len(times), 1)
    if not len(upper[0]):
        return 0.0
    there, back = times[upper], times.T[upper]
    return float((np.abs(there - back) > ASYMMETRY * np.minimum(there, back)).mean())
