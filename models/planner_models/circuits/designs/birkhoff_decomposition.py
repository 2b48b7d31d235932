"""Birkhoff-von Neumann decomposition: demand as a weighted sum of perfect matchings, each a day."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from planner.contract.design import Decision
from planner.options import Options
from planner.search.deadline import NEVER, Deadline
from planner_models.circuits.designs import matchings
from planner_models.circuits.designs.partial_schedule import PartialSchedule
from planner_models.circuits.plan import plan as schedules
from planner_models.circuits.plan.plan import Day, Schedule
from planner_models.circuits.problem.problem import Circuits, takes_matrix

Rounds = Annotated[int, Field(ge=1, description="times that rows and columns are scaled")]


@takes_matrix
def schedule_bvn(
    problem: Circuits,
    *,
    options: Options = Options(),
) -> Decision[Schedule]:
    """Schedule one day for each matching of a Birkhoff-von Neumann decomposition of the stuffed demand.

    A time limit ends the decomposition: what is left of demand has no days.

    source  Birkhoff 1946, von Neumann 1953; Chang et al. 2000
    """
    deadline = Deadline.of(options)
    days = decompose_stuffed(problem, deadline=deadline)
    return schedules.make_decision(problem, days, options=options, is_cut=deadline.is_over)


@takes_matrix
def schedule_tms(
    problem: Circuits,
    *,
    rounds: Rounds = 50,
    options: Options = Options(),
) -> Decision[Schedule]:
    """Schedule by traffic matrix scheduling: scale demand to equal sums (Sinkhorn), then decompose it.

    The week, or without one the time that the busiest rack needs, is shared out by weight, the
    longest days first. A time limit ends the decomposition, as that of `schedule_bvn`.

    source  Porter et al. 2013 (Mordia), traffic matrix scheduling
    """
    deadline = Deadline.of(options)
    days = decompose_scaled(problem, rounds, deadline=deadline)
    return schedules.make_decision(problem, days, options=options, is_cut=deadline.is_over)


def decompose_stuffed(problem: Circuits, *, deadline: Deadline = NEVER) -> list[Day]:
    """Return the days of `schedule_bvn`, those until a deadline."""
    return _decompose(problem, matchings.stuff(problem.bits / problem.circuit_mbps), deadline)


def decompose_scaled(problem: Circuits, rounds: int = 50, *, deadline: Deadline = NEVER) -> list[Day]:
    """Return the days of `schedule_tms`, those until a deadline."""
    time = problem.bits / problem.circuit_mbps
    busiest = float(max(time.sum(axis=1).max(), time.sum(axis=0).max()))
    if busiest <= 0:
        return []
    scaled = time / busiest
    for _ in range(rounds):
        for axis in (1, 0):
            sums = scaled.sum(axis=axis, keepdims=True)
            scaled = np.divide(scaled, sums, out=np.zeros_like(scaled), where=sums > 0)
    length = problem.window_us if problem.window_us is not None else busiest
    return _decompose(problem, matchings.stuff(scaled) * length, deadline, longest_first=True)


def _decompose(
    problem: Circuits, full: NDArray[np.float64], deadline: Deadline, *, longest_first: bool = False
) -> list[Day]:
    """Return a day for each matching that a matrix of equal sums decomposes into."""
    partial = PartialSchedule(problem)
    days = matchings.decompose(full, deadline)
    for weight, target in sorted(days, key=lambda day: -day[0]) if longest_first else days:
        if partial.over:
            break
        partial.add(target, weight)
    return partial.days
