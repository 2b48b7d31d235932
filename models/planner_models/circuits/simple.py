"""Schedules that look at demand little or not at all, and textbook decompositions."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from planner.errors import InputError
from planner.options import Options
from planner.system import Decision
from planner_models.circuits import matchings
from planner_models.circuits import schedule as schedules
from planner_models.circuits.clock import Clock
from planner_models.circuits.problem import Circuits
from planner_models.circuits.schedule import IDLE, Day, Schedule

DayLength = Annotated[
    Annotated[float, Field(gt=0)] | None,
    Field(
        description="length of every day, us; default: nine nights, and no less than a thousandth of the "
        "longest demand; without nights the longest demand"
    ),
]
Shifts = Annotated[
    tuple[int, ...],
    Field(min_length=1, description="rack i is connected to rack i + shift, one shift a day, in turn"),
]


def schedule_bvn(
    problem: Circuits,
    *,
    options: Options = Options(),  # noqa: ARG001
    previous: Decision[Schedule] | None = None,  # noqa: ARG001
) -> Decision[Schedule]:
    """Birkhoff-von Neumann: stuffed demand as a sum of perfect matchings, any, one day each.

    source  Birkhoff 1946, von Neumann 1953; Chang et al. 2000
    """
    return _decomposed(problem, matchings.stuffed(problem.bits / problem.circuit_mbps))


def schedule_tms(
    problem: Circuits,
    *,
    rounds: Annotated[int, Field(ge=1, description="times that rows and columns are scaled")] = 50,
    options: Options = Options(),  # noqa: ARG001
    previous: Decision[Schedule] | None = None,  # noqa: ARG001
) -> Decision[Schedule]:
    """Traffic matrix scheduling: demand scaled to equal sums (Sinkhorn), then Birkhoff-von Neumann.

    The week, or without one the time that the busiest rack needs, is shared out by weight, the
    longest days first.

    source  Porter et al. 2013 (Mordia), traffic matrix scheduling
    """
    time = problem.bits / problem.circuit_mbps
    busiest = float(max(time.sum(axis=1).max(), time.sum(axis=0).max()))
    if busiest <= 0:
        return schedules.decided(problem, [])
    scaled = time / busiest
    for _ in range(rounds):
        for axis in (1, 0):
            sums = scaled.sum(axis=axis, keepdims=True)
            scaled = np.divide(scaled, sums, out=np.zeros_like(scaled), where=sums > 0)
    length = problem.window_us if problem.window_us is not None else busiest
    return _decomposed(problem, matchings.stuffed(scaled) * length, longest_first=True)


def schedule_hotspot(
    problem: Circuits,
    *,
    day_us: DayLength = None,
    options: Options = Options(),  # noqa: ARG001
    previous: Decision[Schedule] | None = None,  # noqa: ARG001
) -> Decision[Schedule]:
    """Hotspots: the matching of the most demand left, on long days of one length.

    source  Wang et al. 2010 (c-Through), Farrington et al. 2010 (Helios)
    """
    clock, length = Clock(problem), _day_us(problem, day_us)
    while not clock.over and clock.left.any():
        clock.add(matchings.heaviest(clock.left), length)
    return schedules.decided(problem, clock.days)


def schedule_islip(
    problem: Circuits,
    *,
    day_us: DayLength = None,
    options: Options = Options(),  # noqa: ARG001
    previous: Decision[Schedule] | None = None,  # noqa: ARG001
) -> Decision[Schedule]:
    """iSLIP: racks request, grant and accept in round robin until no pair is left, on days of one length.

    source  McKeown 1999 (iSLIP)
    """
    return schedules.decided(problem, islip(problem, _day_us(problem, day_us))[0])


def islip(problem: Circuits, day_us: float) -> tuple[list[Day], int]:
    """The days of iSLIP alone, and how many requests, grants and accepts they took."""
    clock, said = Clock(problem), 0
    grants, accepts = np.zeros(len(problem.racks), np.int64), np.zeros(len(problem.racks), np.int64)
    while not clock.over and clock.left.any():
        target, more = _granted(clock.left > 0, grants, accepts)
        clock.add(target, day_us)
        said += more
    return clock.days, said


def schedule_strobe(
    problem: Circuits,
    *,
    day_us: DayLength = None,
    options: Options = Options(),
    previous: Decision[Schedule] | None = None,
) -> Decision[Schedule]:
    """Strobe: every rack to every other in turn, whatever the demand.

    source  Mukerjee 2018, 2.4.1 and Figure 2.5
    """
    shifts = tuple(range(1, len(problem.racks)))
    return schedule_fixed(problem, shifts=shifts or (0,), day_us=day_us, options=options, previous=previous)


def schedule_fixed(
    problem: Circuits,
    *,
    shifts: Shifts = (1,),
    day_us: DayLength = None,
    options: Options = Options(),  # noqa: ARG001
    previous: Decision[Schedule] | None = None,  # noqa: ARG001
) -> Decision[Schedule]:
    """A fixed schedule: rings of racks, by hand, one after another.

    With a single shift and no length the ring stays up for the whole week.

    source  Mukerjee 2018, 2.5.3
    """
    n = len(problem.racks)
    if faults := [f"shifts: {shift}, must be from 0 to {n - 1}" for shift in shifts if not 0 <= shift < n]:
        raise InputError(*faults)
    clock, length = Clock(problem), _day_us(problem, day_us)
    if day_us is None and len(shifts) == 1 and problem.window_us is not None:
        length = clock.room_us
    before = np.inf
    while not clock.over and clock.left.sum() < before:
        before = float(clock.left.sum())
        for shift in shifts:
            if not clock.over:
                clock.add((np.arange(n) + shift) % n, length)
    return schedules.decided(problem, clock.days)


def schedule_packet_only(
    problem: Circuits,
    *,
    options: Options = Options(),  # noqa: ARG001
    previous: Decision[Schedule] | None = None,  # noqa: ARG001
) -> Decision[Schedule]:
    """The packet switch alone: no circuit at all."""
    return schedules.decided(problem, [])


def _decomposed(
    problem: Circuits, full: NDArray[np.float64], *, longest_first: bool = False
) -> Decision[Schedule]:
    clock = Clock(problem)
    days = matchings.decomposed(full)
    for weight, target in sorted(days, key=lambda day: -day[0]) if longest_first else days:
        if clock.over:
            break
        clock.add(target, weight)
    return schedules.decided(problem, clock.days)


def _day_us(problem: Circuits, day_us: float | None) -> float:
    if day_us is not None:
        return day_us
    longest = float((problem.bits / problem.circuit_mbps).max(initial=0.0))
    if problem.night_us > 0:  # Mukerjee 2018, 2.2.2: circuits are up 90% of the time
        return max(9 * problem.night_us, longest / 1_000)
    return longest or 1.0


def _granted(
    wanted: NDArray[np.bool_], grants: NDArray[np.int64], accepts: NDArray[np.int64]
) -> tuple[NDArray[np.int64], int]:
    """(n,) targets of a maximal matching, and how many requests, grants and accepts it took.

    The round-robin pointers move on the first iteration only.
    """
    n, said = len(wanted), 0
    target, taken = np.full(n, IDLE, dtype=np.int64), np.zeros(n, dtype=bool)
    first = True
    while True:
        asks = wanted & (target == IDLE)[:, None] & ~taken[None, :]
        if not asks.any():
            return target, said
        granted = np.zeros_like(asks)
        for j in np.flatnonzero(asks.any(axis=0)):
            source = np.flatnonzero(asks[:, j])
            granted[source[np.argmin((source - grants[j]) % n)], j] = True
        accepted = np.flatnonzero(granted.any(axis=1))
        said += int(asks.sum() + granted.sum() + len(accepted))
        for i in accepted:
            offers = np.flatnonzero(granted[i])
            j = offers[np.argmin((offers - accepts[i]) % n)]
            target[i], taken[j] = j, True
            if first:
                grants[j], accepts[i] = (i + 1) % n, (j + 1) % n
        first = False
