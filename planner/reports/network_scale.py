"""Colours of a network's picture: five bands of values, or of changes, for light and dark pages."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from planner.contract.drawing import NetworkMap
from planner.formatting import number

SHARES_OF_LIMIT: Final = (0.4, 0.6, 0.8, 1.0)
"""Sizes at which one band ends and the next begins."""
BANDS: Final = 5
ROUND_STEPS: Final = (1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0)
"""Width of a band without a limit, up to a power of ten."""
SMALL_CHANGE, LARGE_CHANGE = 0.02, 0.2
"""Changes, as shares of the limit or of the largest value: below the first one, values are about the same."""
PALETTES: Final[dict[str, dict[str, Any]]] = {
    "light": {
        "bands": ["#c3cfda", "#86b7e2", "#4490d0", "#b35f00", "#8f0d2b"],
        "difference": ["#00654a", "#4fb39a", "#c3cfda", "#e0977f", "#9c2a10"],
        "unknown": "#aab4be",
        "bought": "#0b7a4b",
        "sea": "#e8eff4",
        "land": "#fcfbf8",
        "coast": "#bccad6",
        "border": "#cfccc4",
        "box": "#d8dde3",
        "ink": "#1c2733",
        "muted": "#5a6672",
        "paper": "#ffffff",
        "page": "#ffffff",
        "lost": "#8f0d2b",
        "groups": ["#0072b2", "#b86b00", "#007d5a", "#b3468a", "#5b4bb7", "#7a6a00", "#a33d00", "#4d5a66"],
    },
    "dark": {
        "bands": ["#465462", "#3b72a2", "#5790c4", "#d2932c", "#ffa896"],
        "difference": ["#8af0cd", "#2f9c7c", "#465462", "#b5603f", "#ffb59d"],
        "unknown": "#5d6974",
        "bought": "#4cc38a",
        "sea": "#12171d",
        "land": "#1d242c",
        "coast": "#3a4754",
        "border": "#39434d",
        "box": "#35404b",
        "ink": "#eef1f4",
        "muted": "#a4afba",
        "paper": "#1d242c",
        "page": "#14181d",
        "lost": "#ffa896",
        "groups": ["#5fb0e5", "#f0b54a", "#3fc79f", "#e593c2", "#a89cf0", "#d5c552", "#ff9a66", "#9aa7b3"],
    },
}
"""Bands from the lowest value to the highest: on light pages ever darker, on dark pages ever lighter."""


@dataclass(frozen=True, kw_only=True)
class Scale:
    """Five bands of values.

    edges   values at which the second to the fifth band begin; the last edge belongs to the band below it
    labels  of the bands, in words
    """

    edges: tuple[float, ...]
    labels: tuple[str, ...]

    def bands(self, values: pd.Series) -> NDArray[np.int64]:
        """Return the band of each value, from 0; -1 where it is unknown."""
        numbers = values.to_numpy(float)
        band = np.searchsorted(np.array(self.edges), numbers, side="right") - (numbers == self.edges[-1])
        return np.where(np.isnan(numbers), -1, band)


NODE_EDGES: Final = tuple(100.0 * share for share in SHARES_OF_LIMIT)
"""Bands of the load of nodes, percent of what they can carry."""
NODE_CHANGES: Final = (-100 * LARGE_CHANGE, -100 * SMALL_CHANGE, 100 * SMALL_CHANGE, 100 * LARGE_CHANGE)


def node_scale(drawing: NetworkMap) -> Scale:
    """Return the bands of the values of nodes: those of links, or of loads in percent of a capacity."""
    if drawing.one_scale:
        return scale_of(drawing)
    return Scale(edges=NODE_EDGES, labels=("under 40", "40 to 60", "60 to 80", "80 to 100", "over 100"))


def scale_of(drawing: NetworkMap, *, largest: float | None = None) -> Scale:
    """Return the bands of a drawing's values, by its limit or its largest value.

    Without a limit, bands are as wide as the largest round number up to a fifth of the largest value.

    largest  value, where it is not that of the drawing
    """
    if drawing.limit is not None:
        edges = tuple(drawing.limit * share for share in SHARES_OF_LIMIT)
    else:
        step = round_step((largest_value(drawing) if largest is None else largest) / BANDS)
        edges = tuple(float(f"{step * step_number:.9g}") for step_number in range(1, BANDS))
    between = [f"{number(low)} to {number(high)}" for low, high in pairwise(edges)]
    return Scale(edges=edges, labels=(f"under {number(edges[0])}", *between, f"over {number(edges[-1])}"))


def round_step(largest: float) -> float:
    """Return the largest round number that is at most a positive one."""
    size = 10.0 ** math.floor(math.log10(largest))
    return max(size * step for step in ROUND_STEPS if size * step <= largest * (1 + 1e-9) or step == 1)


def difference_scale(drawing: NetworkMap) -> Scale:
    """Return the bands of changes of a drawing's values."""
    largest = drawing.limit or largest_value(drawing)
    small, large = SMALL_CHANGE * largest, LARGE_CHANGE * largest
    return Scale(
        edges=(-large, -small, small, large),
        labels=(
            f"less by over {number(large)}",
            "less",
            f"same within {number(small)}",
            "more",
            f"more by over {number(large)}",
        ),
    )


def largest_value(drawing: NetworkMap) -> float:
    """Return the largest value of links, on one scale with nodes else that of nodes; 1 where all are 0."""
    largest = float(np.nanmax(drawing.links["value"].to_numpy(float), initial=0.0))
    if largest <= 0 and drawing.one_scale and "value" in drawing.nodes:
        largest = float(np.nanmax(drawing.nodes["value"].to_numpy(float), initial=0.0))
    return largest or 1.0
