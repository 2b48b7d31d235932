"""Drawings of a run: its circuits over time, and completion times of flows."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from planner.contract.drawing import Distribution, Drawing
from planner_models.circuitflows.plan.metrics import replay
from planner_models.circuitflows.plan.plan import Operation
from planner_models.circuitflows.problem.problem import FlowsInTime
from planner_models.circuits.plan.drawing import timeline


def draw(problem: FlowsInTime, plan: Operation) -> Sequence[Drawing]:
    """Draw the first circuits by sending rack, and completion times of small and big flows."""
    taken = pd.Series(replay(problem, plan).taken_us / 1e3)
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
