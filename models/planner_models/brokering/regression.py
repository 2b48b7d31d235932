"""Scores that nobody measured: a straight line through those that are, by distance."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

FLOOR: Final = 0.01  # no score is nearer to perfect than this
KM_PER_SCORE: Final = 100.0  # without any measurement: round trip in fibre, ms


def complete(score: NDArray[np.float64], distance_km: NDArray[np.float64]) -> NDArray[np.float64]:
    """(L, C) `score` with its NaN filled in.

    Each location gets the least-squares line of its own scores over distance. Where it has fewer
    than two distances, or its line falls with distance, the line through the scores of all
    locations is used; without any usable line, the mean score there is; without any score, the
    round trip in fibre in ms. No score filled in is below 0.01.

    source  Mukerjee 2018, 3.5.1 (linear regression of scores on distance)
    """
    known = np.isfinite(score)
    if known.all():
        return score
    if not known.any():
        return np.maximum(distance_km / KM_PER_SCORE, FLOOR)
    everywhere = _line(*_sums(score, distance_km, known, axis=None))
    slope, intercept = _line(*_sums(score, distance_km, known, axis=1))
    usable = np.isfinite(slope) & (slope >= 0)
    if not (np.isfinite(everywhere[0]) and everywhere[0] >= 0):
        everywhere = (np.zeros(1), np.array([score[known].mean()]))
    slope = np.where(usable, slope, everywhere[0])
    intercept = np.where(usable, intercept, everywhere[1])
    fitted = np.maximum(intercept[:, None] + slope[:, None] * distance_km, FLOOR)
    return np.where(known, score, fitted)


def _sums(
    score: NDArray[np.float64], distance: NDArray[np.float64], known: NDArray[np.bool_], axis: int | None
) -> tuple[NDArray[np.float64], ...]:
    x, y = np.where(known, distance, 0.0), np.where(known, score, 0.0)
    sums = (known.sum(axis=axis), x.sum(axis=axis), y.sum(axis=axis), (x * x).sum(axis=axis))
    return tuple(np.atleast_1d(np.asarray(part, dtype=float)) for part in (*sums, (x * y).sum(axis=axis)))


def _line(
    n: NDArray[np.float64],
    x: NDArray[np.float64],
    y: NDArray[np.float64],
    xx: NDArray[np.float64],
    xy: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Slope and intercept; NaN where the distances do not differ."""
    spread = n * xx - x * x
    flat = (n < 2) | (spread <= 1e-9 * np.maximum(n * xx, 1e-12))
    slope = np.divide(n * xy - x * y, spread, out=np.full(len(n), np.nan), where=~flat)
    intercept = np.divide(y - slope * x, n, out=np.full(len(n), np.nan), where=n > 0)
    return slope, intercept
