"""Drawings of a run: its circuits over time, data left of each pair, and completion times of flows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pandas as pd

from planner.contract.drawing import Distribution, Drawing
from planner_models.circuitflows.plan.plan import Operation
from planner_models.circuitflows.plan.service import Service
from planner_models.circuitflows.problem.problem import FlowsInTime
from planner_models.circuits.plan.drawing import MOST_BARS, MOST_LANES, draw_timeline
from planner_models.circuits.problem.drawing import draw_ring

MOST_IN_LANE: Final = 120
"""Circuits of a rack that a timeline shows, each of which a reader can still see."""


def draw(problem: FlowsInTime, plan: Operation) -> Sequence[Drawing]:
    """Draw the first circuits of racks over time, data left of each pair, and completion times of flows."""
    service = Service.of(problem, plan)
    offered, delivered = (8 * bytes_ for bytes_ in service.pair_sums)
    shown: list[Drawing] = []
    if len(plan.configurations):
        days, title = choose_first_weeks(problem, plan.configurations)
        shown.append(
            draw_timeline(
                problem,
                days,
                demand=offered,
                remaining=offered - delivered,
                note=service.describe_pair,
                elements=service.name_pairs,
                title=title,
            )
        )
    shown.append(
        draw_ring(
            problem,
            offered,
            title="Data not delivered",
            note=service.describe_pair,
            elements=service.name_pairs,
            left_bits=offered - delivered,
        )
    )
    taken = pd.Series(service.run.taken_us / 1e3)
    ended = {"small flows": taken[~problem.big].dropna(), "big flows": taken[problem.big].dropna()}
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


def choose_first_weeks(problem: FlowsInTime, days: pd.DataFrame) -> tuple[pd.DataFrame, str]:
    """Return the circuits of the first whole weeks, as many as a timeline can show, and its title."""
    title = "Circuits by sending rack"
    # the night before a day is of the same week
    begin = days["start_us"] - problem.of("night_us")
    week = (begin / problem.of("week_us") + 1e-9).astype(int)
    lanes = min(len(problem.racks), MOST_LANES) / len(problem.racks)
    circuits = week.value_counts().sort_index()
    max_circuits = min(MOST_BARS, MOST_IN_LANE * lanes * len(problem.racks))
    fitting = circuits.index[(circuits.cumsum() * lanes <= max_circuits).to_numpy()]
    last = int(fitting[-1]) if len(fitting) else int(circuits.index[0])
    if last < int(circuits.index[-1]):
        until = (last + 1) * problem.of("week_us") / 1e3
        title += f", the first {until:,.4g} of {problem.of('horizon_us') / 1e3:,.4g} ms"
    return days[week <= last], title
