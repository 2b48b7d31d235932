"""Coasts and borders of the world, cut to the box of a network: Natural Earth (data/basemap)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import as_file, files
from typing import Final

import numpy as np
from numpy.typing import NDArray

MAX_LATITUDE: Final = 84.0
"""Degrees: Mercator's map has no poles."""
WIDEST: Final = {"10m": 30.0, "50m": 110.0}
"""Degrees of longitude up to which a network's box is drawn at a scale of 1:10 or 1:50 million."""
COARSER: Final = 4
"""Ratio of the steps outside the detailed box to those inside."""

Points = NDArray[np.float64]
"""Points of the map, x to the east and y to the south, degrees of longitude at the equator, shape (n, 2)."""


@dataclass(frozen=True, kw_only=True)
class Box:
    """Rectangle of the map, in degrees of longitude at the equator; y grows to the south."""

    west: float
    north: float
    east: float
    south: float

    @property
    def width(self) -> float:
        """The extent from west to east."""
        return self.east - self.west

    @property
    def height(self) -> float:
        """The extent from north to south."""
        return self.south - self.north


@dataclass(frozen=True, kw_only=True, eq=False)
class Coast:
    """Outlines within a box, in steps of `step` from the box's north-west corner.

    land     rings of land; parts on the box's edges are no coast
    borders  lines between countries
    """

    land: tuple[NDArray[np.int64], ...]
    borders: tuple[NDArray[np.int64], ...]


def project(latitude: NDArray[np.float64], longitude: NDArray[np.float64]) -> Points:
    """Return the points of Web Mercator's map, shape (n, 2)."""
    safe = np.radians(np.clip(latitude, -MAX_LATITUDE, MAX_LATITUDE))
    points: Points = np.c_[longitude, -np.degrees(np.arcsinh(np.tan(safe)))]
    return points


def cut(box: Box, detailed: Box, step: float) -> Coast:
    """Return land and borders of a box; outside the detailed box their points are farther apart.

    step  distance of points within the detailed box, degrees
    """
    scale = next((scale for scale, widest in WIDEST.items() if detailed.width <= widest), "110m")
    rings, lines = [], []
    for turn in range(int(np.floor((box.west - 180) / 360)), int(np.ceil((box.east + 540) / 360)) + 1):
        around = np.array([360.0 * turn, 0.0])
        for line in _near(scale, "land", box, around[0]):
            ring = _round(_clip_ring(line + around, box), box, detailed, step)
            if len(ring) > 3:
                rings.append(ring)
        for line in _near(scale, "borders", box, around[0]):
            rounded = _round(line + around, box, detailed, step)
            if len(rounded) > 1:
                lines.append(rounded)
    return Coast(land=tuple(rings), borders=tuple(lines))


def _near(scale: str, name: str, box: Box, shift: float) -> list[Points]:
    """Return the lines that may reach into a box when they are shifted to the east."""
    lines = _lines(scale, name)
    west, north, east, south = lines.corners.T
    is_near = (
        (west + shift <= box.east) & (east + shift >= box.west) & (north <= box.south) & (south >= box.north)
    )
    return [lines.points[lines.starts[i] : lines.starts[i + 1]] for i in np.flatnonzero(is_near)]


@dataclass(frozen=True, eq=False)
class _Lines:
    points: Points
    starts: NDArray[np.int64]
    corners: NDArray[np.float64]


@lru_cache
def _lines(scale: str, name: str) -> _Lines:
    """Return lines of the world at a scale, projected; corners are west, north, east and south of each."""
    with as_file(files("planner_data") / "basemap" / "basemap.npz") as path, np.load(path) as arrays:
        degrees = np.cumsum(arrays[f"{name}_{scale}"], axis=0) / 1000
        starts = np.r_[0, np.cumsum(arrays[f"{name}_{scale}_sizes"])]
    points = project(degrees[:, 1], degrees[:, 0])
    corners = np.c_[
        np.minimum.reduceat(points, starts[:-1], axis=0), np.maximum.reduceat(points, starts[:-1], axis=0)
    ]
    return _Lines(points, starts, corners)


def _clip_ring(ring: Points, box: Box) -> Points:
    """Return the part of a ring within a box.

    source  Sutherland and Hodgman 1974
    """
    for axis, limit, sign in ((0, box.west, 1), (0, box.east, -1), (1, box.north, 1), (1, box.south, -1)):
        if not len(ring):
            return ring
        beyond = sign * (ring[:, axis] - limit)
        if (beyond >= 0).all():
            continue
        following = np.roll(ring, -1, axis=0)
        beyond_next = np.roll(beyond, -1)
        is_inside = beyond >= 0
        crosses = is_inside != (beyond_next >= 0)
        share = np.where(crosses, beyond / np.where(crosses, beyond - beyond_next, 1.0), 0.0)
        crossing = ring + share[:, None] * (following - ring)
        crossing[:, axis] = limit
        pairs = np.stack([ring, crossing], axis=1).reshape(-1, 2)
        ring = pairs[np.stack([is_inside, crosses], axis=1).ravel()]
    return ring


def _round(line: Points, box: Box, detailed: Box, step: float) -> NDArray[np.int64]:
    """Return a line in steps from the box's corner, without points that fall on the one before."""
    is_detailed = (
        (line[:, 0] >= detailed.west)
        & (line[:, 0] <= detailed.east)
        & (line[:, 1] >= detailed.north)
        & (line[:, 1] <= detailed.south)
    )
    coarse = np.where(is_detailed, 1, COARSER)[:, None]
    steps = np.rint((line - [box.west, box.north]) / step / coarse).astype(np.int64) * coarse
    is_new = np.ones(len(steps), dtype=bool)
    is_new[1:] = (np.diff(steps, axis=0) != 0).any(axis=1)
    return steps[is_new]
