"""Drawings of a plan: connections by position in the search, and hits of entries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import pandas as pd

from planner.contract.drawing import Curve, Drawing
from planner_models.flowtables.plan.plan import Cache
from planner_models.flowtables.problem.problem import FlowTables

MOST_POINTS: Final = 200


def draw(problem: FlowTables, plan: Cache) -> Sequence[Drawing]:
    """Draw the share of connections that the first masks serve, and that the most used entries serve."""
    count = len(problem.flows)
    masks = plan.masks.sort_values("position", kind="stable")["connections"].to_numpy(float)
    hits = np.sort(plan.megaflows["connections"].to_numpy(float))[::-1]
    return (
        _draw_shares("Connections served by the first masks", "masks searched", masks, count),
        _draw_shares("Connections served by the most used entries", "entries", hits, count),
    )


def _draw_shares(title: str, what: str, served: np.ndarray, count: int) -> Curve:
    """Return the curve of the share that the first of something serve together, in percent."""
    share = np.concatenate([[0.0], 100 * np.cumsum(served) / count])
    places = np.unique(np.linspace(0, len(served), MOST_POINTS).astype(np.int64))
    frame = pd.DataFrame({what: places.astype(float), "connections": share[places]})
    return Curve(title=title, frame=frame, units={"connections": "%"})
