"""Drawings of a plan: its links by utilization, and the demand scale of its steps."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from planner.contract.drawing import Curve, Drawing
from planner_models.topology.plan.check import evaluate
from planner_models.topology.plan.plan import Topology
from planner_models.topology.problem.drawing import draw_fabric
from planner_models.topology.problem.problem import Fabric


def draw(problem: Fabric, plan: Topology) -> Sequence[Drawing]:
    """Draw the links of the plan, and the served share of the demand in each step of the change.

    Blocks lose the traffic that they send without a path, or beyond what fits where all is reduced alike.
    """
    evaluation = evaluate(problem, plan)
    drawings: list[Drawing] = [
        draw_fabric(
            problem, "Links by utilization", evaluation.links, evaluation.load, evaluation.unserved_mbps
        )
    ]
    if evaluation.step_scales:
        frame = pd.DataFrame(
            {
                "step": np.arange(1.0, len(evaluation.step_scales) + 1),
                "demand_that_fits": 100 * np.array(evaluation.step_scales),
            }
        )
        title = "Demand that fits on the links in service in each step"
        drawings.append(Curve(title=title, frame=frame, units={"demand_that_fits": "%"}))
    return drawings
