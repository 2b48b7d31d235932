"""Drawings of a plan: the network with the purchases, and the distribution of utilization."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from planner.contract.drawing import Drawing
from planner.formatting import amount
from planner.search.tolerances import NEGLIGIBLE
from planner_models.capacity.plan.check import evaluate
from planner_models.capacity.plan.plan import Purchases
from planner_models.capacity.problem.drawing import draw_network
from planner_models.capacity.problem.problem import CapacityPlanning


def draw(problem: CapacityPlanning, plan: Purchases) -> Sequence[Drawing]:
    """Draw the network of the last year: links as wide as their capacity, by utilization without failures.

    The title says what is not served in the worst year and failure, where that is more than the labels give.
    """
    evaluation = evaluate(problem, plan)
    load = np.zeros(len(problem.lines))
    np.maximum.at(load, evaluation.row_line, evaluation.load[-1])
    left_out = np.maximum(problem.rate_mbps[-1] - evaluation.sent[-1], 0.0)
    title = "Links with what is bought, by utilization without failures"
    worst_mbps = evaluation.worst_shed
    if worst_mbps > left_out.sum() * (1 + NEGLIGIBLE) + NEGLIGIBLE:
        title += f"; {amount(worst_mbps, 'Mbit/s')} not served in the worst case"
    return (draw_network(problem, title, evaluation.capacity[-1], load=load, unserved=left_out),)
