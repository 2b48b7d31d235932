"""Eclipse: day by day, the matching and the length that serve the most for the time they take."""

from __future__ import annotations

import math
from typing import Annotated, Final

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from planner.options import Options
from planner.system import Decision
from planner_models.circuits import bound, matchings
from planner_models.circuits import schedule as schedules
from planner_models.circuits.clock import Clock
from planner_models.circuits.problem import Circuits
from planner_models.circuits.schedule import IDLE, Schedule

Matching = tuple[float, float, NDArray[np.int64]]
"""What it serves for its time, bits/us; how long the day is, us; its targets."""


def schedule(
    problem: Circuits,
    *,
    starts: Annotated[
        int,
        Field(ge=1, le=64, description="lengths of day from which each search starts, evenly in logarithm"),
    ] = 4,
    prove: Annotated[bool, Field(description="also find what no schedule can beat")] = False,
    options: Options = Options(),
    previous: Decision[Schedule] | None = None,  # noqa: ARG001
) -> Decision[Schedule]:
    """Eclipse: greedily the day of the most demand served for its length and its night.

    For a length of day the best matching is a linear assignment; for a matching the best length is
    that of one of its entries. Both alternate until neither gains, from a few lengths and from that
    of the last day: far fewer assignments than trying every length. A day is never longer than what
    is left of the week, so that the last one fills it.

    source  Venkatakrishnan et al. 2016 (Eclipse), greedy over durations and matchings
    """
    clock = Clock(problem)
    last: float | None = None
    while not clock.over:
        found = best_day(problem, clock.left, clock.room_us, starts=starts, also=last)
        if found is None:
            break
        last = clock.add(found[2], found[1])
    proven = bound.limit(problem, options=options).proof.bound if prove else None
    return schedules.decided(problem, clock.days, bound=proven)


def best_day(
    problem: Circuits, left: NDArray[np.float64], room_us: float, *, starts: int, also: float | None = None
) -> Matching | None:
    """The best day found for the bits left (n, n) within room_us; None where nothing is left."""
    lengths = (left / problem.circuit_mbps)[left > 0]
    if not len(lengths):
        return None
    shortest = problem.shortest_day_us
    high = max(shortest, min(float(lengths.max()), room_us))
    low = min(high, max(shortest, float(lengths.min())))
    tries = {*np.geomspace(low, high, starts).tolist(), high}
    if also is not None:
        tries.add(min(max(also, shortest), high))
    found = [_climbed(problem, left, start, high) for start in sorted(tries)]
    return max(found, key=lambda day: day[0])


def _climbed(problem: Circuits, left: NDArray[np.float64], start_us: float, high_us: float) -> Matching:
    """Matching and length in turn, from a length on, until neither gains."""
    rate = problem.circuit_mbps
    best: Matching = (-math.inf, start_us, np.full(len(left), IDLE, dtype=np.int64))
    length = start_us
    while True:
        target = matchings.heaviest(np.minimum(left, rate * length))
        source = np.flatnonzero(target != IDLE)
        pair = source, target[source]
        worth, length = best_length(
            left[pair], rate[pair], problem.night_us, problem.shortest_day_us, high_us
        )
        if worth <= best[0] * (1 + GAIN):
            return best
        best = (worth, length, target)


GAIN: Final = 1e-12


def best_length(
    bits: NDArray[np.float64], mbps: NDArray[np.float64], night_us: float, low_us: float, high_us: float
) -> tuple[float, float]:
    """Most bits served for the time of a day and its night, and that length of the day.

    Between two entries what is served is linear in the length, so that the ratio has no maximum
    inside: only the entries' own lengths and the limits count.
    """
    needs = bits / mbps
    order = np.argsort(needs)
    needs, bits, mbps = needs[order], bits[order], mbps[order]
    length = np.unique(np.clip(np.concatenate([needs, [low_us, high_us]]), low_us, high_us))
    length = length[length > 0]
    whole = np.searchsorted(needs, length, side="right")  # entries that are served wholly
    served = np.concatenate([[0.0], np.cumsum(bits)])[whole]
    served += length * np.concatenate([np.cumsum(mbps[::-1])[::-1], [0.0]])[whole]
    worth = served / (length + night_us)
    best = int(np.argmax(worth))
    return float(worth[best]), float(length[best])
