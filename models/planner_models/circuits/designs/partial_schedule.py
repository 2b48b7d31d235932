"""A schedule under construction: its days so far, the demand that is left, and the time that is left."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Annotated, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from planner.compiled import inner, kernel, run_small_in_python
from planner.search.deadline import NEVER, Deadline
from planner.search.tolerances import SUM_ROUNDING
from planner_models.circuits.plan.plan import IDLE, Day, find_rate
from planner_models.circuits.problem.problem import Circuits
from planner_models.graphs.max_weight_matching import Pairs, sum_ends

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
DayLength = Annotated[
    Annotated[float, Field(gt=0)] | None,
    Field(
        description="length of every day, us; default: nine nights, and no less than a thousandth of the "
        "longest demand; without nights the longest demand"
    ),
]

ROUNDING: Final = SUM_ROUNDING
FULL: Final = 1 - 1e-9


class Limits(NamedTuple):
    """Limits of a schedule, as compiled code takes them.

    window_us    inf without one
    packet_mbps  (n,) rate of each rack's link to the packet switch
    tolerance_bits   amounts of bits below this are rounding
    """

    night_us: float
    window_us: float
    shortest_us: float
    switches: int
    packet_mbps: NDArray[np.float64]
    tolerance_bits: float

    @classmethod
    def of(cls, problem: Circuits) -> Limits:
        """Return the limits of a problem."""
        return cls(
            night_us=problem.night_us,
            window_us=math.inf if problem.window_us is None else problem.window_us,
            shortest_us=problem.shortest_day_us,
            switches=problem.switches,
            packet_mbps=problem.packet_mbps.copy(),
            tolerance_bits=ROUNDING * float(problem.pair_bits.max(initial=0.0)),
        )


class Days(NamedTuple):
    """Days of a schedule, as compiled code makes them; it stops where they are full.

    duration_us  (K,)
    switch       (K,) the switch of each, from 0
    target       (K, n) rack that each rack sends to, or IDLE
    """

    duration_us: Floats
    switch: Ints
    target: Ints

    @classmethod
    def reserve(cls, count: int, n: int) -> Days:
        """Return places for so many days."""
        return cls(np.empty(count), np.empty(count, np.int64), np.empty((count, n), np.int64))

    def made(self, count: int) -> list[Day]:
        """Return the first `count` days."""
        return [
            Day(
                duration_us=float(self.duration_us[day]),
                target=self.target[day],
                switch=int(self.switch[day]),
            )
            for day in range(count)
        ]


class Demand(NamedTuple):
    """Demand of pairs of racks, m of them, as compiled code takes it.

    pairs  of racks with demand
    bits   (m,)
    mbps   (m,) rate of a circuit of each pair
    """

    pairs: Pairs
    bits: Floats
    mbps: Floats

    @classmethod
    def of(cls, problem: Circuits) -> Demand:
        """Return the demand of a problem."""
        return cls(Pairs.of(problem.bits > 0), problem.pair_bits, problem.pair_mbps)


class Remaining(NamedTuple):
    """Demand that the days of a schedule leave, and the time that they take, as compiled code updates them.

    bits       (m,) of each pair
    used_us    (switches,) time of each switch's days, nights included
    out, into  (n,) bits from and to each rack
    """

    bits: Floats
    used_us: Floats
    out: Floats
    into: Floats

    @classmethod
    def of(cls, problem: Circuits, switches: int) -> Remaining:
        """Return all demand of a problem, and no time of so many switches."""
        bits, n = problem.pair_bits, len(problem.racks)
        out, into = (sum_ends(end, bits, n) for end in problem.pairs)
        return cls(bits.copy(), np.zeros(switches), out, into)


@inner
def find_first_free(used_us: Floats) -> int:
    """Return the switch with the least time of days so far, the first of equals."""
    switch = 0
    for other in range(len(used_us)):
        if used_us[other] < used_us[switch]:
            switch = other
    return switch


@inner
def carry(remaining: Remaining, pair: int, source: int, target: int, capacity_bits: float) -> None:
    """Carry the demand that remains of a pair, up to the capacity of a circuit in its day."""
    carried = min(remaining.bits[pair], capacity_bits)
    remaining.bits[pair] -= carried
    remaining.out[source] = max(0.0, remaining.out[source] - carried)
    remaining.into[target] = max(0.0, remaining.into[target] - carried)


@run_small_in_python(max_elements=20_000)
@kernel
def is_complete(limits: Limits, used_us: Floats, out: Floats, into: Floats) -> bool:
    """Return whether no switch has time for another day, or the packet switch can carry all that is left.

    used_us    (switches,) time of each switch's days, nights included
    out, into  (n,) bits that are left from and to each rack
    """
    window, first, last = limits.window_us, np.inf, 0.0
    for used in used_us:
        first, last = min(first, used), max(last, used)
    time = last if window == np.inf else window
    fits = True
    for i in range(len(out)):
        budget = limits.packet_mbps[i] * time + limits.tolerance_bits
        if out[i] > budget or into[i] > budget:
            fits = False
            break
    if fits or window == np.inf:
        return fits
    time_left = window - first - limits.night_us
    return bool(time_left < limits.shortest_us * FULL or time_left <= ROUNDING * window)


class PartialSchedule:
    """A sequence of days, each after a night, that grows until the week is full or the demand is served.

    Where there are several switches, a day is one of the switch whose days took the least time so far.

    days     so far
    left     (n, n) bits that they leave
    used_us  (switches,) time of each switch's days, nights included
    deadline, when it grows no more
    """

    def __init__(self, problem: Circuits, *, deadline: Deadline = NEVER) -> None:
        self.problem = problem
        self.deadline = deadline
        self.days: list[Day] = []
        self.left = problem.bits.copy()
        self.used_us = np.zeros(problem.switches)
        self._limits = Limits.of(problem)

    @property
    def longest_fit_us(self) -> float:
        """The longest day that still fits, us; inf without a window."""
        return self._limits.window_us - float(self.used_us.min()) - self._limits.night_us

    @property
    def over(self) -> bool:
        """Return whether no day fits any more, or the packet switch can carry all that is left.

        True at the deadline too.
        """
        if self.deadline.is_over:
            return True
        remaining = self.left[self.problem.pairs]
        ends = (sum_ends(end, remaining, len(self.left)) for end in self.problem.pairs)
        return bool(is_complete(self._limits, self.used_us, *ends))

    def sum_left(self) -> float:
        """Return the bits that the days leave."""
        return float(self.left[self.problem.pairs].sum())

    def add(self, target: NDArray[np.int64], duration_us: float) -> float:
        """Add a day, within the limits and the time left, and return its length, us."""
        duration = min(max(duration_us, self.problem.shortest_day_us), self.longest_fit_us)
        switch = int(self.used_us.argmin())
        source = np.flatnonzero(target != IDLE)
        pair = source, target[source]
        carried = duration * self.problem.circuit_mbps[pair]
        self.left[pair] = np.clip(self.left[pair] - carried, 0.0, None)
        self.used_us[switch] += self.problem.night_us + duration
        self.days.append(Day(duration_us=duration, target=target, switch=switch))
        return duration


def longest_day_us(problem: Circuits, switches: int) -> float:
    """Return the time of the busiest rack over the number of switches, us; inf where there is a window.

    Without a window, a longer day of one switch may leave the others without demand for the same pairs.
    """
    if problem.window_us is not None:
        return math.inf
    time_us, n = problem.pair_bits / problem.pair_mbps, len(problem.racks)
    return float(max(sum_ends(end, time_us, n).max() for end in problem.pairs)) / switches


def choose_switches(problem: Circuits, tried: Iterator[list[Day]]) -> list[Day]:
    """Return the best of schedules over one circuit switch, two, and so on, the first of equals."""
    if problem.switches == 1:
        return next(tried)
    best, highest = list[Day](), -1.0
    offered = float(problem.pair_bits.sum()) / (problem.window_us or math.inf)
    for schedule in tried:
        rate = find_rate(problem, schedule)
        if rate > highest:
            best, highest = schedule, rate
        if problem.window_us is not None and rate >= offered * (1 - ROUNDING):
            break  # no schedule over more switches serves more
    return best


def choose_day_us(problem: Circuits, day_us: float | None) -> float:
    """Return `day_us`, or the length of days by default, us."""
    if day_us is not None:
        return day_us
    longest = float((problem.bits / problem.circuit_mbps).max(initial=0.0))
    if problem.night_us > 0:  # Mukerjee 2018, 2.2.2: circuits are up 90% of the time
        return max(9 * problem.night_us, longest / 1_000)
    return longest or 1.0
