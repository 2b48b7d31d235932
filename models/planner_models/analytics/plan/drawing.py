"""Drawings: load and capacity of uplinks over time, value of answers, and levels of queries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import pandas as pd

from planner.contract.drawing import Curve, Drawing
from planner_models.analytics.plan.answers import find_answers, find_loads
from planner_models.analytics.plan.plan import Levels, read_levels
from planner_models.analytics.problem.generators import finest_bytes
from planner_models.analytics.problem.problem import BYTES_PER_MBIT, Analytics

MOST_BARS: Final = 20


def draw_demand(problem: Analytics) -> Sequence[Drawing]:
    """Draw the load of all sites at the finest levels, and the capacity of their uplinks, over time."""
    sites = len(problem.site_names)
    return [_over_time(problem, "Load at the finest levels", finest_bytes(problem)[:, :sites])]


def draw(problem: Analytics, plan: Levels) -> Sequence[Drawing]:
    """Draw the value of answers over time, the load of sites, and the value of each query."""
    chosen = read_levels(problem, plan)
    answers = find_answers(problem, chosen)
    taking_part = problem.has_data.any(axis=0)
    offered = problem.is_asked @ (problem.value_usd * taking_part)
    hour = problem.start_s / 3600
    value = pd.DataFrame({"hour": hour, "answers": answers.value_usd.sum(axis=1), "full_quality": offered})
    total = answers.value_usd.sum(axis=0) / np.maximum(
        problem.value_usd * problem.is_asked.sum(axis=0), 1e-300
    )
    lowest = np.argsort(total, kind="stable")[:MOST_BARS]
    bars = pd.DataFrame(
        {"query": [problem.query_names[row] for row in lowest.tolist()], "quality": total[lowest] * 100}
    )
    return [
        Curve(title="Value of answers", frame=value, units={"answers": "USD", "full_quality": "USD"}),
        _over_time(problem, "Load and capacity of sites", find_loads(problem, chosen).site),
        Curve(
            title="Part of its value that each query keeps, the lowest first",
            frame=bars,
            units={"quality": "%"},
            bars=True,
        ),
    ]


def _over_time(problem: Analytics, title: str, load: np.ndarray) -> Curve:
    """Return the curve of the bytes of all sites and of the capacity of their uplinks, Mbit/s."""
    sites = len(problem.site_names)
    rate = load.sum(axis=1) / problem.length_s / BYTES_PER_MBIT
    capacity = problem.capacity_mbps[:, :sites].sum(axis=1)
    frame = pd.DataFrame({"hour": problem.start_s / 3600, "load": rate, "capacity": capacity})
    return Curve(title=title, frame=frame, units={"load": "Mbit/s", "capacity": "Mbit/s"})
