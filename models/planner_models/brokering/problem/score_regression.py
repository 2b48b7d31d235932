"""Linear regression of missing scores on distance."""

from __future__ import annotations

from typing import Final

import numpy as np

from planner.arrays import Bools, Floats

MIN_SCORE: Final = 0.01  # of scores that are filled in
KM_PER_SCORE_UNIT: Final = 100.0  # without any measured score: round trip in fibre, ms


def fill_missing_scores(score: Floats, distance_km: Floats) -> Floats:
    """Return `score` (L, C) with its NaN filled in.

    Each location gets the least-squares line of its own scores over distance. Where it has fewer
    than two distances, or its line falls with distance, the line through the scores of all locations is
    used; without any usable line, the mean score; without any score, the round trip in fibre in ms. No
    score that is filled in is below 0.01.

    source  Mukerjee 2018, 3.5.1 (linear regression of scores on distance)
    """
    is_known = np.isfinite(score)
    if is_known.all():
        return score
    if not is_known.any():
        return np.maximum(distance_km / KM_PER_SCORE_UNIT, MIN_SCORE)
    pooled = _fit_line(*_regression_sums(score, distance_km, is_known, axis=None))
    slope, intercept = _fit_line(*_regression_sums(score, distance_km, is_known, axis=1))
    usable = np.isfinite(slope) & (slope >= 0)
    if not (np.isfinite(pooled[0]) and pooled[0] >= 0):
        pooled = (np.zeros(1), np.array([score[is_known].mean()]))
    slope = np.where(usable, slope, pooled[0])
    intercept = np.where(usable, intercept, pooled[1])
    fitted = np.maximum(intercept[:, None] + slope[:, None] * distance_km, MIN_SCORE)
    return np.where(is_known, score, fitted)


def _regression_sums(
    score: Floats, distance: Floats, is_known: Bools, axis: int | None
) -> tuple[Floats, ...]:
    x, y = np.where(is_known, distance, 0.0), np.where(is_known, score, 0.0)
    sums = (is_known.sum(axis=axis), x.sum(axis=axis), y.sum(axis=axis), (x * x).sum(axis=axis))
    return tuple(np.atleast_1d(np.asarray(sum_, dtype=float)) for sum_ in (*sums, (x * y).sum(axis=axis)))


def _fit_line(n: Floats, x: Floats, y: Floats, xx: Floats, xy: Floats) -> tuple[Floats, Floats]:
    """Return slope and intercept of each line; NaN where the distances do not differ."""
    spread = n * xx - x * x
    flat = (n < 2) | (spread <= 1e-9 * np.maximum(n * xx, 1e-12))
    slope = np.divide(n * xy - x * y, spread, out=np.full(len(n), np.nan), where=~flat)
    intercept = np.divide(y - slope * x, n, out=np.full(len(n), np.nan), where=n > 0)
    return slope, intercept
