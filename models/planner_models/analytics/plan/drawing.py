"""Drawings: value of answers in time, load and capacity of uplinks, and value of each query."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import pandas as pd

from planner.contract.drawing import Curve, Drawing
from planner_models.analytics.plan.answers import Loads, find_answers, find_loads, replay_queues
from planner_models.analytics.plan.metrics import find_timely_value
from planner_models.analytics.plan.plan import Levels, read_levels
from planner_models.analytics.problem.generators import finest_bytes
from planner_models.analytics.problem.problem import Analytics
from planner_models.analytics.problem.tables import BYTES_PER_MBIT

MOST_BARS: Final = 20


def draw_demand(problem: Analytics) -> Sequence[Drawing]:
    """Draw the load of all sites at the finest levels, and the capacity of their uplinks, over time."""
    sites = len(problem.site_names)
    return [_over_time(problem, "Load at the finest levels", finest_bytes(problem)[:, :sites])]


def draw(problem: Analytics, plan: Levels) -> Sequence[Drawing]:
    """Draw the value of answers that come in time, the load of uplinks, and the value of each query."""
    levels = read_levels(problem, plan)
    answers, loads = find_answers(problem, levels), find_loads(problem, levels)
    timely = find_timely_value(problem, levels, answers, replay_queues(problem, loads))[0]
    taking_part = problem.has_data.any(axis=0)
    offered = problem.is_asked @ (problem.value_usd * taking_part)
    hour = problem.start_s / 3600
    value = pd.DataFrame({"hour": hour, "answers": timely.sum(axis=1), "full quality": offered})
    total = timely.sum(axis=0) / np.maximum(problem.value_usd * problem.is_asked.sum(axis=0), 1e-300)
    lowest = np.argsort(total, kind="stable")[:MOST_BARS]
    bars = pd.DataFrame(
        {"query": [problem.query_names[row] for row in lowest.tolist()], "quality": total[lowest] * 100}
    )
    return [
        Curve(title="Value of answers in time", frame=value, units={"answers": "USD", "full quality": "USD"}),
        _over_time(problem, "Load and capacity of sites", loads.site),
        _compare_uplinks(problem, loads),
        Curve(
            title="Part of its value that each query keeps, the lowest first",
            frame=bars,
            units={"quality": "%"},
            bars=True,
        ),
    ]


def _compare_uplinks(problem: Analytics, loads: Loads) -> Curve:
    """Return the load of each uplink over its capacity, in all intervals together, %, the highest first."""
    load = np.concatenate([loads.site, loads.pop], axis=1).sum(axis=0)
    capacity = problem.capacity_bytes.sum(axis=0)
    utilization = 100 * np.divide(load, capacity, out=np.zeros_like(load), where=capacity > 0)
    highest = np.argsort(-utilization, kind="stable")[:MOST_BARS]
    frame = pd.DataFrame(
        {
            "uplink": [problem.link_names[row] for row in highest.tolist()],
            "utilization": utilization[highest],
        }
    )
    return Curve(
        title="Load of uplinks over their capacity, the highest first",
        frame=frame,
        units={"utilization": "%"},
        bars=True,
    )


def _over_time(problem: Analytics, title: str, load: np.ndarray) -> Curve:
    """Return the curve of the bytes of all sites and of the capacity of their uplinks, Mbit/s."""
    sites = len(problem.site_names)
    rate = load.sum(axis=1) / problem.length_s / BYTES_PER_MBIT
    capacity = problem.capacity_mbps[:, :sites].sum(axis=1)
    frame = pd.DataFrame({"hour": problem.start_s / 3600, "load": rate, "capacity": capacity})
    return Curve(title=title, frame=frame, units={"load": "Mbit/s", "capacity": "Mbit/s"})
