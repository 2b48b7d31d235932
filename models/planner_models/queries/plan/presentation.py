"""Drawings of a plan: staleness of answers, and use of each switch."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from planner.contract.drawing import Curve, Drawing
from planner_models.queries.plan.check import evaluate
from planner_models.queries.plan.plan import Answers
from planner_models.queries.problem.problem import Monitoring


def draw(problem: Monitoring, plan: Answers) -> Sequence[Drawing]:
    """Draw the share of its limits that each switch uses, and the staleness of the answers of each query."""
    return (_draw_use(problem, plan), _draw_staleness(problem, plan))


def _draw_use(problem: Monitoring, plan: Answers) -> Curve:
    """Return the use of each switch, in percent of its limits."""
    labels = ("rules", "rules of whole headers", "packets to the controller", "polls")
    columns = dict(zip(labels, evaluate(problem, plan).use_of_limits().values(), strict=True))
    frame = pd.DataFrame({"switch": problem.switch_names, **columns})
    return Curve(
        title="Use of the limits of switches", frame=frame, units=dict.fromkeys(columns, "%"), bars=True
    )


def _draw_staleness(problem: Monitoring, plan: Answers) -> Curve:
    """Return the longest time from a packet to its answer, of each query with answers."""
    evaluation = evaluate(problem, plan)
    frame = pd.DataFrame(
        {
            "query": [problem.query_names[row] for row in evaluation.period_s],
            "staleness": [evaluation.find_staleness(row) for row in evaluation.period_s],
        }
    ).astype({"staleness": float})
    return Curve(
        title="Staleness of the answers of each query", frame=frame, units={"staleness": "s"}, bars=True
    )
