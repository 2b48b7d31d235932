"""Write basemap.npz anew from the npm package world-atlas.

npm pack world-atlas@2.0.2 && tar xzf world-atlas-2.0.2.tgz && python data/basemap/extract.py package
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

FOLDER: Final = Path(__file__).parent
SCALES: Final = ("110m", "50m", "10m")
POLE: Final = -90.0
"""Latitude at which a ring around the south pole is closed."""

Line = NDArray[np.float64]
"""Longitude and latitude of points, degrees, shape (points, 2)."""


def main(package: Path) -> None:
    """Write coasts as rings and borders as lines, in steps of 0.001 degrees, each after the one before it."""
    arrays = {}
    for scale in SCALES:
        topology = json.loads((package / f"countries-{scale}.json").read_text())
        arcs = list(decode(topology))
        land = json.loads((package / f"land-{scale}.json").read_text())
        rings = [unwrap(ring) for ring in rings_of(land, list(decode(land)))]
        borders = [unwrap(arcs[place]) for place in shared_arcs(topology)]
        for name, lines in (("land", rings), ("borders", borders)):
            steps = [np.round(1000 * line).astype(np.int32) for line in lines]
            arrays[f"{name}_{scale}_sizes"] = np.array([len(line) for line in steps], dtype=np.int32)
            points = np.concatenate(steps)
            arrays[f"{name}_{scale}"] = np.diff(points, axis=0, prepend=np.zeros((1, 2), np.int32))
    np.savez_compressed(FOLDER / "basemap.npz", allow_pickle=False, **arrays)


def decode(topology: dict[str, Any]) -> Iterator[Line]:
    """Yield the arcs of a TopoJSON topology."""
    scale, translate = topology["transform"]["scale"], topology["transform"]["translate"]
    for arc in topology["arcs"]:
        yield np.cumsum(np.array(arc, dtype=float), axis=0) * scale + translate


def rings_of(topology: dict[str, Any], arcs: Sequence[Line]) -> Iterator[Line]:
    """Yield the rings of all polygons, the first point again at the end."""
    for geometry in topology["objects"]["land"]["geometries"]:
        polygons = geometry["arcs"] if geometry["type"] == "MultiPolygon" else [geometry["arcs"]]
        for polygon in polygons:
            for ring in polygon:
                parts = [arcs[place] if place >= 0 else arcs[~place][::-1] for place in ring]
                yield np.concatenate([parts[0], *(part[1:] for part in parts[1:])])


def shared_arcs(topology: dict[str, Any]) -> Iterator[int]:
    """Yield the arcs that two countries share: the borders on land."""
    owners: dict[int, set[int]] = {}
    for owner, geometry in enumerate(topology["objects"]["countries"]["geometries"]):
        for place in flatten(geometry.get("arcs", ())):
            owners.setdefault(place if place >= 0 else ~place, set()).add(owner)
    yield from (place for place, countries in sorted(owners.items()) if len(countries) > 1)


def flatten(nested: Any) -> Iterator[int]:
    """Yield the integers of a nested list."""
    for one in nested:
        if isinstance(one, int):
            yield one
        else:
            yield from flatten(one)


def unwrap(line: Line) -> Line:
    """Return a line whose longitudes do not jump by 360 degrees; around a pole it gets two corners there."""
    longitude = np.unwrap(line[:, 0], period=360.0)
    unwrapped = np.c_[longitude, line[:, 1]]
    is_ring = np.allclose(line[0], line[-1])
    if is_ring and abs(longitude[-1] - longitude[0]) > 180.0:
        corners = [[longitude[-1], POLE], [longitude[0], POLE], unwrapped[0]]
        unwrapped = np.concatenate([unwrapped, corners])
    return unwrapped


if __name__ == "__main__":
    main(Path(sys.argv[1]))
