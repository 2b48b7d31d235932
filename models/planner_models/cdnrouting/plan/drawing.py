"""Drawings of a plan: links by utilization, and both parties' costs over the moves of a reaction."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from planner.contract.drawing import Curve, Drawing, Points
from planner_models.cdnrouting.plan.check import evaluate
from planner_models.cdnrouting.plan.plan import DeliveryPlan
from planner_models.cdnrouting.problem.drawing import draw_network
from planner_models.cdnrouting.problem.problem import Delivery


def draw(problem: Delivery, plan: DeliveryPlan) -> Sequence[Drawing]:
    """Draw the links by utilization, and of a reaction the costs of both parties after each move."""
    last = evaluate(problem, plan)[-1]
    drawings: list[Drawing] = [draw_network(problem, "Links by utilization", last.load, last.cluster_mbps)]
    if plan.rounds is not None and len(plan.rounds):
        drawings += draw_moves(plan.rounds)
    return drawings


def draw_moves(rounds: pd.DataFrame) -> list[Drawing]:
    """Return mean delay and moved traffic over the moves, and the orbit of both parties' costs."""
    over_moves = rounds[["move", "mean_delay_ms", "cdn_delay_ms"]].astype(float)
    orbit = pd.DataFrame(
        {
            "move": [
                f"{mover} {int(number)}"
                for mover, number in zip(rounds["mover"], rounds["round"], strict=True)
            ],
            "isp_cost": rounds["isp_cost"].to_numpy(float),
            "cdn_delay_ms": rounds["cdn_delay_ms"].to_numpy(float),
        }
    )
    units = {"mean_delay_ms": "ms", "cdn_delay_ms": "ms"}
    return [
        Curve(title="Mean delay after each move", frame=over_moves, units=units),
        Points(title="ISP cost against CDN delay after each move", frame=orbit, units={"cdn_delay_ms": "ms"}),
    ]
