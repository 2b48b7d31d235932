"""Drawing of the flows between racks, without a plan."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from planner.contract.drawing import Drawing
from planner.formatting import amount
from planner_models.circuitflows.problem.problem import FlowsInTime
from planner_models.circuits.problem.drawing import draw_ring


def draw_flows(problem: FlowsInTime) -> Sequence[Drawing]:
    """Draw the racks in a ring, linked by the data of flows between them."""
    n = len(problem.racks)
    demand = np.zeros((n, n + 1))  # the last column: to any rack
    np.add.at(demand, (problem.source, problem.target), problem.flows["bytes"].to_numpy(float) * 8)
    title = "Data of flows between racks"
    if demand[:, n].any():
        title += "; flows to any rack have no link"
    return (
        draw_ring(
            problem,
            demand,
            title=title,
            note=lambda i, j: f"flows of {amount(demand[i, j] / 8, 'bytes')}",
        ),
    )
