"""Drawing of the data between racks, without a plan."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from planner.contract.drawing import Drawing
from planner.formatting import amount
from planner_models.circuits.problem.drawing import draw_ring
from planner_models.coflows.problem.problem import CoflowsInTime, Floats

COFLOW = "coflow"


def pair_bits(problem: CoflowsInTime) -> Floats:
    """Return (n, n) the bits of all flows by pair of racks."""
    bits = np.zeros((len(problem.racks),) * 2)
    np.add.at(bits, (problem.source, problem.target), problem.bits)
    return bits


def draw_flows(problem: CoflowsInTime) -> Sequence[Drawing]:
    """Draw the racks in a ring, linked by the data of flows between them."""
    offered = pair_bits(problem)
    return (
        draw_ring(
            problem,
            offered,
            title="Data of coflows between racks",
            note=lambda i, j: f"flows of {amount(offered[i, j] / 8, 'bytes')}",
        ),
    )
