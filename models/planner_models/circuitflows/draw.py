"""What shows a run best: its circuits, and how long flows took."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from planner.drawing import Distribution, Drawing
from planner_models.circuitflows.measure import played
from planner_models.circuitflows.plan import Operation
from planner_models.circuitflows.problem import FlowsInTime
from planner_models.circuits.draw import timeline


def draw(problem: FlowsInTime, plan: Operation) -> Sequence[Drawing]:
    """The first circuits by sending rack, and completion times of small and big flows."""
    taken = pd.Series(played(problem, plan).taken_us / 1e3)
    ended = {"small flows": taken[~problem.big].dropna(), "big flows": taken[problem.big].dropna()}
    shown: list[Drawing] = []
    if len(plan.configurations):
        shown.append(timeline(plan.configurations, problem.racks["rack"]))
    if any(len(times) for times in ended.values()):
        shown.append(
            Distribution(
                title="Completion times of flows that end",
                values=ended,
                what="completion time",
                unit="ms",
                log_x=True,
            )
        )
    return shown
