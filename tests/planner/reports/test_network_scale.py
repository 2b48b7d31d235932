"""Colours of pictures: bands, and palettes whose lightness tells the order alone."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

from planner.contract.drawing import NetworkMap
from planner.reports.network_scale import PALETTES, difference_scale, node_scale, scale_of

NODES = pd.DataFrame({"node": ["a", "b"]})


def drawing(values: list[float], limit: float | None) -> NetworkMap:
    links = pd.DataFrame({"tail": ["a"] * len(values), "head": ["b"] * len(values), "value": values})
    return NetworkMap(title="t", nodes=NODES, links=links, value="load", limit=limit)


def lightness(colour: str) -> float:
    """L* of CIELAB."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in parts]
    y = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    return 116 * y ** (1 / 3) - 16


def test_a_limit_sets_the_bands() -> None:
    scale = scale_of(drawing([1.0], 100.0))
    assert scale.labels == ("under 40", "40 to 60", "60 to 80", "80 to 100", "over 100")
    values = pd.Series([0.0, 40.0, 60.0, 99.0, 100.0, 100.1, float("nan")])
    assert scale.bands(values).tolist() == [0, 1, 2, 3, 3, 4, -1]


def test_without_a_limit_the_largest_value_sets_the_bands() -> None:
    assert scale_of(drawing([5.0, 50.0], None)).edges == (10.0, 20.0, 30.0, 40.0)
    assert scale_of(drawing([float("nan")], None)).edges == (0.2, 0.4, 0.6, 0.8)
    assert scale_of(drawing([39.88], None)).edges == (6.0, 12.0, 18.0, 24.0), "round, and the largest on top"


@pytest.mark.parametrize("largest", [1e-9, 0.37, 1.0, 4.99, 7.0, 99.0, 1e6, 123_456_789.0])
def test_the_largest_value_is_in_the_last_band(largest: float) -> None:
    scale = scale_of(drawing([0.1 * largest, largest], None))
    assert scale.bands(pd.Series([0.0, largest])).tolist() == [0, 4]


def test_nodes_on_the_scale_of_links_have_their_bands() -> None:
    own_values = drawing([0.0, 5.0], None)
    nodes = own_values.nodes.assign(value=np.arange(len(own_values.nodes), dtype=float))
    assert node_scale(replace(own_values, nodes=nodes)).edges == (40.0, 60.0, 80.0, 100.0)
    assert node_scale(replace(own_values, nodes=nodes, one_scale=True)).edges == (1.0, 2.0, 3.0, 4.0)


def test_changes_have_a_band_for_about_the_same() -> None:
    scale = difference_scale(drawing([1.0], 100.0))
    assert scale.bands(pd.Series([-50.0, -5.0, 0.0, 5.0, 50.0])).tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(("scheme", "sign"), [("light", -1), ("dark", 1)])
def test_lightness_alone_tells_the_order_of_bands(scheme: str, sign: int) -> None:
    values = [sign * lightness(str(colour)) for colour in PALETTES[scheme]["bands"]]
    assert all(later - earlier > 6 for earlier, later in pairwise(values)), values


@pytest.mark.parametrize(("scheme", "sign"), [("light", -1), ("dark", 1)])
def test_larger_changes_stand_out_more(scheme: str, sign: int) -> None:
    less, little_less, same, little_more, more = (
        sign * lightness(str(colour)) for colour in PALETTES[scheme]["difference"]
    )
    assert less > little_less > same
    assert more > little_more > same
