"""Drawings of a plan: links by utilization, and both parties' costs, over moves or beside their front."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from planner.contract.drawing import Curve, Drawing, Points
from planner_models.cdnrouting.plan.check import Evaluation, evaluate
from planner_models.cdnrouting.plan.plan import DeliveryPlan
from planner_models.cdnrouting.problem.drawing import draw_network
from planner_models.cdnrouting.problem.problem import Delivery


def draw(problem: Delivery, plan: DeliveryPlan) -> Sequence[Drawing]:
    """Draw the links by utilization, and the costs of both parties: by moves, or beside their front."""
    last = evaluate(problem, plan)[-1]
    drawings: list[Drawing] = [draw_network(problem, "Links by utilization", last.load, last.cluster_mbps)]
    if plan.rounds is not None and len(plan.rounds):
        drawings += draw_moves(plan.rounds)
    if plan.front is not None and len(plan.front) and plan.outcome is not None and len(plan.outcome):
        drawings.append(draw_front(plan.front, plan.outcome, last))
    return drawings


def draw_front(front: pd.DataFrame, outcome: pd.DataFrame, selected: Evaluation) -> Points:
    """Return both parties' costs: of plans on the front, of the reaction, and of the bargain."""
    rows = [
        *((f"front {weight:.2g}", cost, delay) for weight, cost, delay in front.to_numpy(float).tolist()),
        ("reaction", *outcome[["isp_cost", "cdn_delay_ms"]].to_numpy(float)[0].tolist()),
        ("bargain", selected.isp_cost, selected.cdn_delay_ms or 0.0),
    ]
    return Points(
        title="ISP cost against CDN delay: front by weight of the ISP, reaction and bargain",
        frame=pd.DataFrame(rows, columns=["plan", "isp_cost", "cdn_delay_ms"]),
        units={"cdn_delay_ms": "ms"},
    )


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
