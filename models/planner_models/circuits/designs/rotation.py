"""Schedules that do not depend on the demand: rotations of racks, and no circuits at all."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from pydantic import Field

from planner.contract.design import Decision
from planner.errors import InputError
from planner_models.circuits.designs.partial_schedule import DayLength, PartialSchedule, choose_day_us
from planner_models.circuits.plan import plan as schedules
from planner_models.circuits.plan.plan import Schedule
from planner_models.circuits.problem.problem import Circuits

Shifts = Annotated[
    tuple[int, ...],
    Field(min_length=1, description="rack i is connected to rack i + shift, one shift a day, in turn"),
]


def schedule_strobe(
    problem: Circuits,
    *,
    day_us: DayLength = None,
) -> Decision[Schedule]:
    """Schedule every rack to every other in turn, whatever the demand.

    source  Mukerjee 2018, 2.4.1 and Figure 2.5
    """
    shifts = tuple(range(1, len(problem.racks)))
    return schedule_fixed(problem, shifts=shifts or (0,), day_us=day_us)


def schedule_fixed(
    problem: Circuits,
    *,
    shifts: Shifts = (1,),
    day_us: DayLength = None,
) -> Decision[Schedule]:
    """Schedule given rings of racks, one after another, whatever the demand.

    With a single shift and no length the ring stays up for the whole week.

    source  Mukerjee 2018, 2.5.3
    """
    n = len(problem.racks)
    if faults := [f"shifts: {shift}, must be from 0 to {n - 1}" for shift in shifts if not 0 <= shift < n]:
        raise InputError(*faults)
    partial, length = PartialSchedule(problem), choose_day_us(problem, day_us)
    if day_us is None and len(shifts) == 1 and problem.window_us is not None:
        length = partial.longest_fit_us
    before = np.inf
    while not partial.over and partial.left.sum() < before:
        before = float(partial.left.sum())
        for shift in shifts:
            if not partial.over:
                partial.add((np.arange(n) + shift) % n, length)
    return schedules.make_decision(problem, partial.days)


def schedule_packet_only(
    problem: Circuits,
) -> Decision[Schedule]:
    """Return the schedule without circuits: the packet switch alone."""
    return schedules.make_decision(problem, [])
