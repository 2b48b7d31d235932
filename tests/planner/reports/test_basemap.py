"""Coasts and borders, cut to a box."""

from __future__ import annotations

import numpy as np
import pytest

from planner.reports import basemap
from planner.reports.basemap import Box


def box_of(south: float, west: float, north: float, east: float) -> Box:
    corners = basemap.project(np.array([north, south]), np.array([west, east]))
    return Box(west=corners[0, 0], north=corners[0, 1], east=corners[1, 0], south=corners[1, 1])


def is_land(latitude: float, longitude: float, box: Box) -> bool:
    """Count the rings around a point: the even-odd rule."""
    step = box.width / 2000
    x, y = (basemap.project(np.array([latitude]), np.array([longitude]))[0] - [box.west, box.north]) / step
    inside = False
    for ring in basemap.cut(box, box, step).land:
        x0, y0 = ring.T
        x1, y1 = np.roll(ring, -1, axis=0).T
        crosses = (y0 > y) != (y1 > y)
        index = x0 + (y - y0) * (x1 - x0) / np.where(crosses, y1 - y0, 1)
        inside ^= bool(np.count_nonzero(crosses & (x < index)) % 2)
    return inside


EUROPE = (35.0, -12.0, 70.0, 40.0)
PACIFIC = (-50.0, 110.0, 72.0, 250.0)


@pytest.mark.parametrize(
    ("place", "box", "expected"),
    [
        ((51.0, 10.0), (47.0, 5.0, 55.0, 15.0), True),  # Germany, all of it inside the box
        ((55.5, 3.0), EUROPE, False),  # the North Sea
        ((48.0, 2.0), EUROPE, True),
        ((69.5, 30.0), EUROPE, True),
        ((66.0, 190.0), PACIFIC, True),  # the east end of Siberia, beyond 180 degrees
        ((60.0, 185.0), PACIFIC, False),  # the Bering Sea
        ((75.0, 200.0), (60.0, 150.0, 80.0, 230.0), False),  # the Arctic Ocean north of it
        ((-25.0, 135.0), PACIFIC, True),
        ((-80.0, 0.0), (-84.0, -180.0, 84.0, 180.0), True),  # Antarctica
        ((0.0, -150.0), (-84.0, -180.0, 84.0, 180.0), False),
    ],
)
def test_land_and_sea(
    place: tuple[float, float], box: tuple[float, float, float, float], expected: bool
) -> None:
    assert is_land(*place, box_of(*box)) is expected


def test_outlines_stay_inside_the_box_and_are_coarser_outside_the_detailed_one() -> None:
    box, detailed = box_of(*EUROPE), box_of(47.0, 5.0, 55.0, 15.0)
    step = detailed.width / 1000
    coast = basemap.cut(box, detailed, step)
    points = np.concatenate(coast.land)
    assert (points >= 0).all()
    assert (points <= np.array([box.width, box.height]) / step + basemap.COARSER).all()
    far_south = points[points[:, 1] > (detailed.south - box.north) / step + basemap.COARSER]
    assert len(far_south)
    assert not (far_south % basemap.COARSER).any()
    assert (points % basemap.COARSER).any()
    assert coast.borders
