"""Schedules of days of one length: rotations, hotspots by max-weight matchings, and iSLIP."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from planner.contract.design import Decision
from planner.contract.signalling import NAME, NONE, Signalling
from planner.errors import InputError
from planner.options import Options
from planner.search.deadline import NEVER, Deadline
from planner_models.circuits.designs import matchings
from planner_models.circuits.designs.partial_schedule import DayLength, PartialSchedule, choose_day_us
from planner_models.circuits.plan import plan as schedules
from planner_models.circuits.plan.plan import IDLE, Day, Schedule
from planner_models.circuits.problem.problem import Circuits, takes_matrix

Shifts = Annotated[
    tuple[int, ...],
    Field(min_length=1, description="rack i is connected to rack i + shift, one shift a day, in turn"),
]


@takes_matrix
def schedule_strobe(
    problem: Circuits,
    *,
    day_us: DayLength = None,
    options: Options = Options(),
) -> Decision[Schedule]:
    """Schedule every rack to every other in turn, whatever the demand.

    source  Mukerjee 2018, 2.4.1 and Figure 2.5
    """
    return schedules.make_decision(problem, rotate(problem, day_us=day_us), options=options)


@takes_matrix
def schedule_fixed(
    problem: Circuits,
    *,
    shifts: Shifts = (1,),
    day_us: DayLength = None,
    options: Options = Options(),
) -> Decision[Schedule]:
    """Schedule given rings of racks, one after another, whatever the demand.

    With a single shift and no length the ring stays up for the whole week.

    source  Mukerjee 2018, 2.5.3
    """
    return schedules.make_decision(problem, rotate(problem, shifts=shifts, day_us=day_us), options=options)


def rotate(
    problem: Circuits,
    *,
    shifts: tuple[int, ...] | None = None,
    day_us: float | None = None,
    deadline: Deadline = NEVER,
) -> list[Day]:
    """Return the days of `schedule_fixed` until a deadline; of all rings, in turn, without `shifts`."""
    n = len(problem.racks)
    shifts = (tuple(range(1, n)) or (0,)) if shifts is None else shifts
    if faults := [f"shifts: {shift}, must be from 0 to {n - 1}" for shift in shifts if not 0 <= shift < n]:
        raise InputError(*faults)
    partial, length = PartialSchedule(problem, deadline=deadline), choose_day_us(problem, day_us)
    if day_us is None and len(shifts) == 1 and problem.window_us is not None:
        length = partial.longest_fit_us
    before = np.inf
    while not partial.over and partial.sum_left() < before:
        before = partial.sum_left()
        for shift in shifts:
            if not partial.over:
                partial.add((np.arange(n) + shift) % n, length)
    return partial.days


@takes_matrix
def schedule_packet_only(
    problem: Circuits,
    *,
    options: Options = Options(),
) -> Decision[Schedule]:
    """Return the schedule without circuits: the packet switch alone."""
    return schedules.make_decision(problem, [], options=options)


@takes_matrix
def schedule_hotspots(
    problem: Circuits,
    *,
    day_us: DayLength = None,
    options: Options = Options(),
) -> Decision[Schedule]:
    """Schedule long days of one length, each with the max-weight matching of the demand left.

    source  Wang et al. 2010 (c-Through), Farrington et al. 2010 (Helios)
    """
    return schedules.make_decision(problem, match_heaviest(problem, day_us), options=options)


def match_heaviest(
    problem: Circuits, day_us: float | None = None, *, deadline: Deadline = NEVER
) -> list[Day]:
    """Return the days of `schedule_hotspots`, those until a deadline."""
    partial, length = PartialSchedule(problem, deadline=deadline), choose_day_us(problem, day_us)
    while not partial.over and partial.left.any():
        partial.add(matchings.find_heaviest(partial.left), length)
    return partial.days


@takes_matrix
def schedule_islip(
    problem: Circuits,
    *,
    day_us: DayLength = None,
    options: Options = Options(),
) -> Decision[Schedule]:
    """Schedule days of one length with matchings that racks agree on by requests, grants and accepts.

    source  McKeown 1999 (iSLIP)
    """
    days, _ = match_in_turn(problem, choose_day_us(problem, day_us))
    return schedules.make_decision(problem, days, options=options)


def count_requests(problem: Circuits, plan: Schedule) -> Signalling:
    """Return the signalling of requests, each with its rack's name, and of grants and accepts with theirs.

    Racks that are matched set their circuits themselves.
    """
    lengths = plan.configurations["duration_us"]
    if not len(lengths):
        return NONE
    # all days are of one length but for a last one that the week cuts short
    _, messages = match_in_turn(problem, float(lengths.max()))
    return Signalling(messages=messages, bytes=messages * NAME)


def match_in_turn(problem: Circuits, day_us: float, *, deadline: Deadline = NEVER) -> tuple[list[Day], int]:
    """Return the days of iSLIP until a deadline, and the number of requests, grants and accepts."""
    partial, messages = PartialSchedule(problem, deadline=deadline), 0
    grants, accepts = np.zeros(len(problem.racks), np.int64), np.zeros(len(problem.racks), np.int64)
    while not partial.over and partial.left.any():
        target, more = _match(partial.left > 0, grants, accepts)
        partial.add(target, day_us)
        messages += more
    return partial.days, messages


def _match(
    requests: NDArray[np.bool_], grants: NDArray[np.int64], accepts: NDArray[np.int64]
) -> tuple[NDArray[np.int64], int]:
    """Return (n,) targets of a maximal matching, and the number of its requests, grants and accepts.

    The round-robin pointers move on the first iteration only.
    """
    n, messages = len(requests), 0
    target, taken = np.full(n, IDLE, dtype=np.int64), np.zeros(n, dtype=bool)
    first = True
    while True:
        asks = requests & (target == IDLE)[:, None] & ~taken[None, :]
        if not asks.any():
            return target, messages
        granted = np.zeros_like(asks)
        for j in np.flatnonzero(asks.any(axis=0)):
            source = np.flatnonzero(asks[:, j])
            granted[source[np.argmin((source - grants[j]) % n)], j] = True
        accepted = np.flatnonzero(granted.any(axis=1))
        messages += int(asks.sum() + granted.sum() + len(accepted))
        for i in accepted:
            offers = np.flatnonzero(granted[i])
            j = offers[np.argmin((offers - accepts[i]) % n)]
            target[i], taken[j] = j, True
            if first:
                grants[j], accepts[i] = (i + 1) % n, (j + 1) % n
        first = False
