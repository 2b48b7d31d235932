"""iSLIP: maximal matchings by requests, grants and accepts in round robin, on days of one length."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from planner.contract.design import Decision
from planner.contract.signalling import NAME, NONE, Signalling
from planner_models.circuits.designs.partial_schedule import DayLength, PartialSchedule, choose_day_us
from planner_models.circuits.plan import plan as schedules
from planner_models.circuits.plan.plan import IDLE, Day, Schedule
from planner_models.circuits.problem.problem import Circuits


def schedule(
    problem: Circuits,
    *,
    day_us: DayLength = None,
) -> Decision[Schedule]:
    """Schedule days of one length whose matchings racks agree on by requests, grants and accepts.

    source  McKeown 1999 (iSLIP)
    """
    return schedules.make_decision(problem, match_in_turn(problem, choose_day_us(problem, day_us))[0])


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


def match_in_turn(problem: Circuits, day_us: float) -> tuple[list[Day], int]:
    """Return the days of iSLIP, and how many requests, grants and accepts they took."""
    partial, messages = PartialSchedule(problem), 0
    grants, accepts = np.zeros(len(problem.racks), np.int64), np.zeros(len(problem.racks), np.int64)
    while not partial.over and partial.left.any():
        target, more = _match(partial.left > 0, grants, accepts)
        partial.add(target, day_us)
        messages += more
    return partial.days, messages


def _match(
    wanted: NDArray[np.bool_], grants: NDArray[np.int64], accepts: NDArray[np.int64]
) -> tuple[NDArray[np.int64], int]:
    """Return (n,) targets of a maximal matching, and how many requests, grants and accepts it took.

    The round-robin pointers move on the first iteration only.
    """
    n, messages = len(wanted), 0
    target, taken = np.full(n, IDLE, dtype=np.int64), np.zeros(n, dtype=bool)
    first = True
    while True:
        asks = wanted & (target == IDLE)[:, None] & ~taken[None, :]
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
