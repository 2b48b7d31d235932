"""Drawings of a plan of system `rotors`: circuits over time, demand left over, and waits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import pandas as pd

from planner.contract.drawing import Distribution, Drawing
from planner.formatting import amount, amount_of
from planner_models.circuits.plan.drawing import draw_timeline
from planner_models.circuits.problem.drawing import draw_ring
from planner_models.rotors.plan.check import evaluate
from planner_models.rotors.plan.plan import Routing
from planner_models.rotors.problem.problem import RotorNetwork

POINTS: Final = 200


def draw(problem: RotorNetwork, plan: Routing) -> Sequence[Drawing]:
    """Draw circuits by sending rack over one period, unserved demand, and the waiting time of traffic."""
    evaluation = evaluate(problem, plan)
    offered = problem.offered_mbps
    remaining = np.maximum(offered - evaluation.delivered, 0.0)

    def note(i: int, j: int) -> str:
        return f"delivers {amount_of(float(evaluation.delivered[i, j]), float(offered[i, j]), 'Mbit/s')}"

    ring = draw_ring(
        problem, offered, title="Demand left over", note=note, left_bits=remaining, unit="Mbit/s"
    )
    shown: list[Drawing] = []
    if len(plan.circuits):
        days = plan.circuits.assign(duration_us=plan.circuits["end_us"] - plan.circuits["start_us"])
        shown.append(draw_timeline(problem, days, demand=offered, remaining=remaining, note=note))
    shown.append(ring)
    waits = _weigh_waits(evaluation.waits[0], evaluation.paths.rate, float(evaluation.at_once.sum()))
    if len(waits):
        shown.append(
            Distribution(
                title="Mean wait for circuits by traffic", values={"traffic": waits}, what="wait", unit="us"
            )
        )
    return shown


def draw_demand(problem: RotorNetwork) -> Sequence[Drawing]:
    """Draw the racks in a ring, linked by demand."""
    offered = problem.offered_mbps
    rate = problem.count * problem.racks["circuit_mbps"].to_numpy(float)
    busiest = np.maximum(offered.sum(axis=1), offered.sum(axis=0))
    return (
        draw_ring(
            problem,
            offered,
            title="Demand between racks",
            load=100 * busiest / rate,
            note=lambda i, j: f"demand {amount(float(offered[i, j]), 'Mbit/s')}",
            unit="Mbit/s",
        ),
    )


def _weigh_waits(mean: np.ndarray, rate: np.ndarray, at_once: float) -> pd.Series:
    """Return the mean waits of equal parts of the traffic, at most 200, in order."""
    finite = np.isfinite(mean)
    waits = np.concatenate([[0.0], mean[finite]])
    weight = np.concatenate([[at_once], rate[finite]])
    if weight.sum() <= 0:
        return pd.Series(dtype=float)
    order = np.argsort(waits, kind="stable")
    share = np.cumsum(weight[order]) / weight.sum()
    index = np.searchsorted(share, (np.arange(POINTS) + 0.5) / POINTS)
    return pd.Series(waits[order][np.minimum(index, len(order) - 1)])
