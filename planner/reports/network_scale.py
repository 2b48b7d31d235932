"""Colours of a network's picture: five bands of values, for light and dark pages."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np
import pandas as pd

from planner.contract.drawing import NetworkMap
from planner.formatting import number

SHARES: Final = (0.4, 0.6, 0.8, 1.0)
"""Of the limit: where a band ends and the next begins."""
PALETTES: Final = {
    "light": {
        "bands": ["#c3cfda", "#8dbbe2", "#4a93cd", "#c96f00", "#8f0d2b"],
        "less": ["#00654a", "#4fb39a"],
        "more": ["#e0977f", "#9c2a10"],
        "same": "#c3cfda",
        "sea": "#e8eff4",
        "land": "#fcfbf8",
        "coast": "#bccad6",
        "border": "#cfccc4",
        "box": "#d8dde3",
        "ink": "#1c2733",
        "muted": "#5a6672",
        "paper": "#ffffff",
        "lost": "#8f0d2b",
        "groups": ["#0072b2", "#b86b00", "#007d5a", "#b3468a", "#5b4bb7", "#7a6a00", "#a33d00", "#4d5a66"],
    },
    "dark": {
        "bands": ["#465462", "#3f79ab", "#5f9fd4", "#dda136", "#ff9a86"],
        "less": ["#8af0cd", "#2f9c7c"],
        "more": ["#b5603f", "#ffb59d"],
        "same": "#465462",
        "sea": "#12171d",
        "land": "#1d242c",
        "coast": "#3a4754",
        "border": "#39434d",
        "box": "#35404b",
        "ink": "#eef1f4",
        "muted": "#a4afba",
        "paper": "#1d242c",
        "lost": "#ff9a86",
        "groups": ["#5fb0e5", "#f0b54a", "#3fc79f", "#e593c2", "#a89cf0", "#d5c552", "#ff9a66", "#9aa7b3"],
    },
}
"""Bands from the lowest value to the highest: on light pages ever darker, on dark pages ever lighter."""


@dataclass(frozen=True, kw_only=True)
class Scale:
    """Five bands of values.

    edges   values at which the second to the fifth band begin
    labels  of the bands, in words
    """

    edges: tuple[float, ...]
    labels: tuple[str, ...]


def scale_of(drawing: NetworkMap, factor: float = 1.0) -> Scale:
    """Return the bands of a drawing's values: by its limit, or in fifths of the largest value.

    factor  ratio of the values to those of the drawing
    """
    if drawing.limit is not None:
        edges = tuple(float(factor * drawing.limit * share) for share in SHARES)
        last = f"over {number(edges[3])}"
    else:
        values = pd.concat([drawing.links["value"], drawing.nodes.get("value", pd.Series(dtype=float))])
        largest = float(values.max()) if values.notna().any() else 1.0
        edges = tuple(float(factor * (largest or 1.0) * share) for share in (0.2, 0.4, 0.6, 0.8))
        last = f"over {number(edges[3])}"
    between = [f"{number(low)} to {number(high)}" for low, high in pairwise(edges)]
    return Scale(edges=edges, labels=(f"under {number(edges[0])}", *between, last))


def bands_of(values: pd.Series, scale: Scale) -> pd.Series:
    """Return the band of each value, from 0; -1 where it is unknown."""
    band = np.searchsorted(np.array(scale.edges), values.to_numpy(float), side="right")
    at_limit = values.to_numpy(float) == scale.edges[-1]
    return pd.Series(np.where(values.isna(), -1, band - at_limit), index=values.index)
