"""Check that tables are an operation of this network, and find the limits that it violates."""

from __future__ import annotations

from typing import Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from planner.contract.plan import Violations
from planner.errors import PlanRejected
from planner_models.circuitflows.plan.plan import Operation, target_racks
from planner_models.circuitflows.problem.problem import FlowsInTime

TOLERANCE: Final = 1e-6
ENDS: Final = ("source_rack", "target_rack")


def check(problem: FlowsInTime, plan: Operation) -> Violations:
    """Return the constraint violations of the plan, by name.

    night         a day starts before the night after the last one is over
    shortest_day  a day is too short
    horizon       a day starts after the end
    packet_rate   a rack's link to the packet switch is set faster than it is

    PlanRejected where it is no operation: circuits of a day that are no matching or do not start and
    end together, unknown racks, a flow that is placed nowhere, at home, or though it has its target,
    several rows of settings.
    """
    if len(plan.settings) != 1:
        raise PlanRejected(f"settings: has {len(plan.settings)} rows, must have one")
    target_racks(problem, plan.placement)
    for name in ("configurations", "queues"):
        frame = getattr(plan, name)
        for column in ENDS:
            _require_racks(problem, frame, column, name)
    frame = plan.configurations
    if (frame["source_rack"].to_numpy() == frame["target_rack"].to_numpy()).any():
        raise PlanRejected("configurations: a rack has a circuit to itself")
    for column, verb in zip(ENDS, ("sends", "receives"), strict=True):
        twice = frame.duplicated(["day", column]).to_numpy()
        if twice.any():
            row = frame.iloc[int(np.argmax(twice))]
            raise PlanRejected(
                f"configurations row {int(np.argmax(twice)) + 1}: rack '{row[column]}' {verb} over two "
                f"circuits in day {row['day']:g}, must be a matching"
            )
    spread = frame.groupby("day")[["start_us", "duration_us"]]
    if (spread.max() != spread.min()).to_numpy().any():
        raise PlanRejected("configurations: the circuits of a day must start and end together")
    days = frame.drop_duplicates("day").sort_values("start_us", kind="stable")
    return _times(problem, days) + _rates(problem, float(plan.settings["packet_mbps"].iloc[0]))


def _times(problem: FlowsInTime, days: pd.DataFrame) -> Violations:
    """Return the violations of limits of time."""
    start = days["start_us"].to_numpy(float)
    lasts = days["duration_us"].to_numpy(float)
    night, shortest, horizon = (problem.of(f"{name}_us") for name in ("night", "shortest_day", "horizon"))
    gap = start - np.concatenate([[0.0], (start + lasts)[:-1]])[: len(start)]
    slack = TOLERANCE * problem.of("week_us")
    found = _days("night", days, gap, gap < night - slack, night)
    found += _days("shortest_day", days, lasts, lasts < shortest - slack, shortest)
    return found + _days("horizon", days, start, start >= horizon + slack, horizon)


def _rates(problem: FlowsInTime, packet_mbps: float) -> Violations:
    """Return the violations of the rates of links to the packet switch."""
    over = packet_mbps > problem.packet_mbps * (1 + TOLERANCE)
    return Violations.of(
        "packet_rate",
        where=[str(name) for name in problem.names[over]],
        amount=packet_mbps,
        allowed=problem.packet_mbps[over],
        unit="Mbit/s",
    )


def _days(
    limit: str, days: pd.DataFrame, amount: NDArray[np.float64], broken: NDArray[np.bool_], allowed: float
) -> Violations:
    """Return the violations of a limit by days."""
    where = [f"day {day:g}" for day in days["day"].to_numpy()[broken]]
    return Violations.of(limit, where=where, amount=amount[broken], allowed=allowed, unit="us")


def _require_racks(problem: FlowsInTime, frame: pd.DataFrame, column: str, table: str) -> None:
    """Raise PlanRejected where a column names an unknown rack."""
    unknown = ~frame[column].isin(problem.places).to_numpy()
    if unknown.any():
        row = int(np.argmax(unknown))
        raise PlanRejected(f"{table} row {row + 1}: {column} '{frame[column].iloc[row]}' is no rack")
