"""Places of a network's nodes in its picture, and the map below them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from planner.contract.layout import place_nodes
from planner.reports import basemap
from planner.reports.basemap import Box, Coast

STEPS: Final = 4096
"""Units of the picture along the larger extent of the network."""
LEAST_EXTENT_DEGREES: Final = 0.5
"""So that one place still has a map around it."""
COAST_STEP: Final = 4
"""Units between points of the coast within the network's box."""
MARGIN: Final = 0.08
"""Of the network's extent, around it: within it the map is detailed."""
WIDEST_VIEW, TALLEST_VIEW, LARGEST_VIEW = 2.6, 1.5, 1.5
"""Ratios of width to height, and of height to width, that a view may have, and how far out it may zoom."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Layout:
    """Places of nodes in units of the picture, y downwards.

    places  x and y of each node, shape (nodes, 2)
    limits  west, north, east and south of what is drawn below the network; None where there is no map
    coast   of the map, in steps of COAST_STEP units from the limits' north-west corner; None without a map
    """

    places: NDArray[np.float64]
    limits: tuple[float, float, float, float] | None = None
    coast: Coast | None = None


def lay_out(nodes: pd.DataFrame, links: pd.DataFrame) -> Layout:
    """Return the layout of a network: on a map where nodes have coordinates, else as `place_nodes` has it.

    nodes  as those of `NetworkMap`
    links  tail, head
    """
    has_places = {"x", "y"} <= set(nodes) and nodes[["x", "y"]].notna().all(axis=None)
    degrees = ["latitude", "longitude"]
    if not has_places and set(degrees) <= set(nodes) and nodes[degrees].notna().all(axis=None):
        return _on_map(nodes["latitude"].to_numpy(float), nodes["longitude"].to_numpy(float))
    positions = place_nodes(nodes, links).to_numpy(float) * [1.0, -1.0]
    corner, extent = positions.min(axis=0), float(np.ptp(positions, axis=0).max())
    return Layout(places=(positions - corner) * (STEPS / (extent or 1.0)))


def strip_offsets(
    tail: NDArray[np.int64], head: NDArray[np.int64], width: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the distance of each link's strip to the right of the line between its nodes, shape (links,).

    Links of one direction lie beside each other, 1 apart; a link alone between its nodes lies on the line.

    width  of the strips, in the unit of the result
    """
    offsets = np.zeros(len(tail))
    links = pd.DataFrame({"low": np.minimum(tail, head), "high": np.maximum(tail, head), "tail": tail})
    is_alone = ~links.duplicated(["low", "high"], keep=False).to_numpy()
    before = pd.Series(width + 1).groupby([links["low"], links["high"], links["tail"]]).cumsum().to_numpy()
    offsets[~is_alone] = (before - width / 2 - 0.5)[~is_alone]
    return offsets


def _on_map(latitude: NDArray[np.float64], longitude: NDArray[np.float64]) -> Layout:
    points = basemap.project(latitude, _unwrapped(longitude))
    low, high = points.min(axis=0), points.max(axis=0)
    extent = max(float((high - low).max()), LEAST_EXTENT_DEGREES)
    step = extent / STEPS
    around = MARGIN * extent
    detailed = Box(west=low[0] - around, north=low[1] - around, east=high[0] + around, south=high[1] + around)
    half_width = LARGEST_VIEW / 2 * max(detailed.width, WIDEST_VIEW * detailed.height)
    half_height = LARGEST_VIEW / 2 * max(detailed.height, TALLEST_VIEW * detailed.width)
    edge = abs(float(basemap.project(np.array([basemap.MAX_LATITUDE]), np.zeros(1))[0, 1]))
    x, y = (low + high) / 2
    box = Box(
        west=x - half_width,
        north=max(y - half_height, -edge),
        east=x + half_width,
        south=min(y + half_height, edge),
    )
    corner = np.array([detailed.west, detailed.north])
    limits = (np.array([box.west, box.north, box.east, box.south]) - np.tile(corner, 2)) / step
    return Layout(
        places=(points - corner) / step,
        limits=(float(limits[0]), float(limits[1]), float(limits[2]), float(limits[3])),
        coast=basemap.cut(box, detailed, COAST_STEP * step),
    )


def _unwrapped(longitude: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return longitudes that begin east of the widest gap between nodes, so that it is the map's edge."""
    turned = np.sort(np.unique(longitude % 360.0))
    gaps = np.diff(turned, append=turned[0] + 360.0)
    first = turned[(int(gaps.argmax()) + 1) % len(turned)]
    unwrapped = first + (longitude - first) % 360.0
    centred: NDArray[np.float64] = unwrapped - 360.0 * np.round(unwrapped.mean() / 360.0)
    return centred
