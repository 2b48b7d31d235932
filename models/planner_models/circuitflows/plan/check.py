"""Check that tables are an operation of this network, and find the limits that it violates."""

from __future__ import annotations

import numpy as np
import pandas as pd

from planner.contract.plan import Violations
from planner.contract.tolerances import differs, exceeds, falls_short
from planner.errors import PlanRejected
from planner_models.circuitflows.plan.plan import Operation, target_racks
from planner_models.circuitflows.problem.problem import FlowsInTime
from planner_models.circuits.plan.check import report_days, require_matchings, require_racks
from planner_models.circuits.problem.racks import ENDS


def check(problem: FlowsInTime, plan: Operation) -> Violations:
    """Return the constraint violations of the plan, by name.

    night         a day starts before the night after the last one is over
    shortest_day  a day is too short
    horizon       a day starts after the end
    packet_rate   a rack's link to the packet switch is set faster than it is

    PlanRejected where it is no operation: circuits of a day that are no matching or do not start and
    end together, unknown racks, a flow that is placed nowhere, at home, or though it has its target,
    several rows of settings, a record of more than the run.
    """
    if len(plan.settings) != 1:
        raise PlanRejected(f"settings: has {len(plan.settings)} rows, must have one")
    target_racks(problem, plan.placement)
    frame = plan.configurations
    require_matchings(problem, frame)
    if "switch" in frame and (frame["switch"].to_numpy(float) != 1).any():
        row = int(np.argmax(frame["switch"].to_numpy(float) != 1))
        raise PlanRejected(
            f"configurations row {row + 1}: switch {frame['switch'].iloc[row]:g}, there is only 1"
        )
    source, target = require_racks(problem, plan.queues, "queues")
    if (source == target).any():
        raise PlanRejected(
            f"queues row {int(np.argmax(source == target)) + 1}: a rack has no queue to itself"
        )
    twice = plan.queues.duplicated(["at_us", *ENDS]).to_numpy()
    if twice.any():
        raise PlanRejected(f"queues row {int(np.argmax(twice)) + 1}: the queue is resized twice at one time")
    days = frame.drop_duplicates("day").sort_values("start_us", kind="stable")
    end, last = float(plan.settings["simulated_us"].iloc[0]), problem.of("horizon_us")
    if end > last:
        raise PlanRejected(f"settings row 1: simulated_us is {end:g}, the run ends at {last:g}")
    return _times(problem, days) + _rates(problem, float(plan.settings["packet_mbps"].iloc[0]))


def _times(problem: FlowsInTime, days: pd.DataFrame) -> Violations:
    """Return the violations of limits of time."""
    number, start, lasts = (days[name].to_numpy(float) for name in ("day", "start_us", "duration_us"))
    night, shortest, horizon = (problem.of(f"{name}_us") for name in ("night", "shortest_day", "horizon"))
    gap = start - np.concatenate([[0.0], (start + lasts)[:-1]])[: len(start)]
    violations = report_days("night", gap, falls_short(gap, night, start), night, number)
    violations += report_days("shortest_day", lasts, falls_short(lasts, shortest, start), shortest, number)
    late = (start >= horizon) & differs(start, horizon)
    return violations + report_days("horizon", start, late, horizon, number)


def _rates(problem: FlowsInTime, packet_mbps: float) -> Violations:
    """Return the violations of the rates of links to the packet switch."""
    over = exceeds(packet_mbps, problem.packet_mbps)
    return Violations.of(
        "packet_rate",
        where=[str(name) for name in problem.names[over]],
        amount=packet_mbps,
        allowed=problem.packet_mbps[over],
        unit="Mbit/s",
    )
