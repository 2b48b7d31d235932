"""The least number of regions that meet all covers of a group: a valid inequality that its costs do not show.

Where users must each have a region within their limit, a linear program takes fractions of regions, so that
it pays for fewer replicas than any placement has. The number is that of a shortest way through the sets of
covers that are met (dynamic programming over subsets).
"""

from __future__ import annotations

from typing import Final

import numpy as np

from planner.arrays import Bools, Ints

MAX_COVERS: Final = 14
"""Covers that are regarded, those with the fewest regions; fewer covers need no more regions."""


def cover_number(cover: Bools) -> int:
    """Return the least number of regions of which each cover, (K, N), has one; 0 for no covers."""
    rows = _minimal(np.unique(cover, axis=0)) if len(cover) else cover
    rows = rows[np.argsort(rows.sum(axis=1), kind="stable")[:MAX_COVERS]]
    if not len(rows) or not rows.any(axis=1).all():
        return 0
    masks = np.unique((rows * (1 << np.arange(len(rows)))[:, None]).sum(axis=0))
    full, number = (1 << len(rows)) - 1, 1
    met: Ints = masks
    while not (met == full).any():
        met = np.unique(met[:, None] | masks[None, :])
        number += 1
    return number


def _minimal(rows: Bools) -> Bools:
    """Return the covers that contain no other one: to meet these meets all."""
    contains: Bools = np.asarray((rows[:, None, :] >= rows[None, :, :]).all(axis=2))
    np.fill_diagonal(contains, False)
    return np.asarray(rows[~contains.any(axis=1)])
