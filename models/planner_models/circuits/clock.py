"""A schedule in the making: the days so far, the demand that is left and the time that is."""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numba as nb
import numpy as np
from numpy.typing import NDArray

from planner_models.circuits.problem import Circuits
from planner_models.circuits.schedule import IDLE, Day

GRAIN: Final = 1e-12
FULL: Final = 1 - 1e-9


class Limits(NamedTuple):
    """What a schedule must keep, as compiled code takes it.

    window_us    inf without one
    packet_mbps  (n,) rate of each rack's link to the packet switch
    grain_bits   amounts of bits below this are rounding
    """

    night_us: float
    window_us: float
    shortest_us: float
    switches: int
    packet_mbps: NDArray[np.float64]
    grain_bits: float

    @classmethod
    def of(cls, problem: Circuits) -> Limits:
        return cls(
            night_us=problem.night_us,
            window_us=math.inf if problem.window_us is None else problem.window_us,
            shortest_us=problem.shortest_day_us,
            switches=problem.switches,
            packet_mbps=problem.packet_mbps,
            grain_bits=GRAIN * float(problem.pair_bits.max(initial=0.0)),
        )


@nb.njit(cache=True)
def is_over(
    limits: Limits, used_us: NDArray[np.float64], out: NDArray[np.float64], into: NDArray[np.float64]
) -> bool:
    """No switch has room for a day, or the packet switch can carry what is left, by rack.

    used_us    (switches,) time of each switch's days, nights included
    out, into  (n,) bits that are left from and to each rack
    """
    window = limits.window_us
    time = used_us.max() if window == np.inf else window
    fits = True
    for i in range(len(out)):
        budget = limits.packet_mbps[i] * time + limits.grain_bits
        if out[i] > budget or into[i] > budget:
            fits = False
            break
    if fits or window == np.inf:
        return fits
    room = window - used_us.min() - limits.night_us
    return bool(room < limits.shortest_us * FULL or room <= GRAIN * window)


class Clock:
    """Days one after another, each after a night, until the week or the demand is over.

    Where there are several switches, a day is one of the switch whose days took the least time so far.

    days     so far
    left     (n, n) bits that they leave
    used_us  (switches,) time of each switch's days, nights included
    """

    def __init__(self, problem: Circuits) -> None:
        self.problem = problem
        self.days: list[Day] = []
        self.left = problem.bits.copy()
        self.used_us = np.zeros(problem.switches)
        self._limits = Limits.of(problem)

    @property
    def room_us(self) -> float:
        """The longest day that still fits; inf without a window."""
        return self._limits.window_us - float(self.used_us.min()) - self._limits.night_us

    @property
    def over(self) -> bool:
        """No day fits any more, or the packet switch can carry all that is left."""
        return bool(is_over(self._limits, self.used_us, self.left.sum(axis=1), self.left.sum(axis=0)))

    def add(self, target: NDArray[np.int64], duration_us: float) -> float:
        """Add a day, as long as asked or as rules and room have it; returns how long it is."""
        duration = min(max(duration_us, self.problem.shortest_day_us), self.room_us)
        switch = int(self.used_us.argmin())
        source = np.flatnonzero(target != IDLE)
        pair = source, target[source]
        carried = duration * self.problem.circuit_mbps[pair]
        self.left[pair] = np.clip(self.left[pair] - carried, 0.0, None)
        self.used_us[switch] += self.problem.night_us + duration
        self.days.append(Day(duration_us=duration, target=target, switch=switch))
        return duration
