"""Drawings of a plan: connections by position in the search, hits of entries, and misses by size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import pandas as pd

from planner.contract.drawing import Curve, Drawing
from planner_models.flowtables.plan.cache_sizes import count_misses
from planner_models.flowtables.plan.plan import Cache, read_plan
from planner_models.flowtables.problem.problem import FlowTables

MOST_POINTS: Final = 200


def draw(problem: FlowTables, plan: Cache) -> Sequence[Drawing]:
    """Draw the shares that the first masks and the most used entries serve, and misses by cache size."""
    count = len(problem.flows)
    masks = plan.masks.sort_values("position", kind="stable")["connections"].to_numpy(float)
    hits = np.sort(plan.megaflows["connections"].to_numpy(float))[::-1]
    return (
        _draw_shares("Connections served by the first masks", "masks searched", masks, count),
        _draw_shares("Connections served by the most used entries", "entries", hits, count),
        _draw_misses(problem, plan),
    )


def _draw_misses(problem: FlowTables, plan: Cache) -> Curve:
    """Return the curve of misses by the size of a cache that replaces the least recently used entry."""
    content, service = read_plan(problem, plan)
    misses = 100 * count_misses(service.entry, len(content.value)) / len(problem.flows)
    sizes = np.unique(np.linspace(0, len(misses) - 1, MOST_POINTS).astype(np.int64))
    frame = pd.DataFrame({"entries": sizes.astype(float), "misses": misses[sizes]})
    return Curve(title="Misses by the size of the cache", frame=frame, units={"misses": "%"})


def _draw_shares(title: str, what: str, served: np.ndarray, count: int) -> Curve:
    """Return the curve of the share that the first of something serve together, in percent."""
    share = np.concatenate([[0.0], 100 * np.cumsum(served) / count])
    sizes = np.unique(np.linspace(0, len(served), MOST_POINTS).astype(np.int64))
    frame = pd.DataFrame({what: sizes.astype(float), "connections": share[sizes]})
    return Curve(title=title, frame=frame, units={"connections": "%"})
