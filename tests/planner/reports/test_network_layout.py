"""Places of nodes in pictures of networks."""

from __future__ import annotations

import numpy as np
import pandas as pd

from planner.reports.network_layout import STEPS, lay_out

LINKS = pd.DataFrame({"tail": ["a", "b"], "head": ["b", "c"]})


def test_coordinates_give_a_map_with_north_up() -> None:
    nodes = pd.DataFrame({"node": list("abc"), "latitude": [50, 52, 51], "longitude": [8, 9, 12]})
    layout = lay_out(nodes, LINKS)
    assert layout.coast is not None
    assert layout.limits is not None
    assert layout.places[1, 1] < layout.places[2, 1] < layout.places[0, 1]
    assert layout.places[0, 0] < layout.places[1, 0] < layout.places[2, 0]
    west, north, east, south = layout.limits
    assert (layout.places > [west, north]).all()
    assert (layout.places < [east, south]).all()


def test_a_network_around_the_pacific_is_not_torn_apart() -> None:
    nodes = pd.DataFrame(
        {"node": list("abc"), "latitude": [35.0, 21.0, 37.0], "longitude": [139, -158, -122]}
    )
    positions = lay_out(nodes, LINKS).places
    assert positions[0, 0] < positions[1, 0] < positions[2, 0]
    assert abs(np.ptp(positions[:, 0]) - STEPS) < 1


def test_places_that_are_given_are_kept_with_y_upwards() -> None:
    nodes = pd.DataFrame({"node": list("abc"), "x": [0, 1, 2], "y": [0, 4, 0]})
    layout = lay_out(nodes, LINKS)
    assert layout.coast is None
    assert layout.places.tolist() == [[0, STEPS], [STEPS / 4, 0], [STEPS / 2, STEPS]]


def test_nodes_without_places_are_laid_out_the_same_way_each_time() -> None:
    nodes = pd.DataFrame({"node": list("abc")})
    first, second = lay_out(nodes, LINKS), lay_out(nodes, LINKS)
    assert np.array_equal(first.places, second.places)
    assert len(np.unique(first.places.round(6), axis=0)) == 3
