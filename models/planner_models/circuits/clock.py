"""A schedule in the making: the days so far, the demand that is left and the time that is."""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

from planner_models.circuits.problem import Circuits
from planner_models.circuits.schedule import IDLE, Day

GRAIN: Final = 1e-12


class Clock:
    """Days one after another, each after a night, until the week or the demand is over.

    days     so far
    left     (n, n) bits that they leave
    used_us  their time, nights included
    """

    def __init__(self, problem: Circuits) -> None:
        self.problem = problem
        self.days: list[Day] = []
        self.left = problem.bits.copy()
        self.used_us = 0.0

    @property
    def room_us(self) -> float:
        """The longest day that still fits; inf without a window."""
        window = self.problem.window_us
        return math.inf if window is None else window - self.used_us - self.problem.night_us

    @property
    def over(self) -> bool:
        """No day fits any more, or the packet switch can carry all that is left."""
        window = self.problem.window_us
        if window is None:
            return self.fits
        shortest = self.problem.shortest_day_us
        full = self.room_us < shortest * (1 - 1e-9) or self.room_us <= GRAIN * window
        return full or self.fits

    @property
    def fits(self) -> bool:
        """The packet switch can carry all that is left, in the week or in the time used so far."""
        time = self.used_us if self.problem.window_us is None else self.problem.window_us
        budget = self.problem.packet_mbps * time + GRAIN * self.problem.bits.max(initial=0.0)
        return bool((self.left.sum(axis=1) <= budget).all() and (self.left.sum(axis=0) <= budget).all())

    def add(self, target: NDArray[np.int64], duration_us: float) -> float:
        """Add a day, as long as asked or as rules and room have it; returns how long it is."""
        duration = min(max(duration_us, self.problem.shortest_day_us), self.room_us)
        source = np.flatnonzero(target != IDLE)
        pair = source, target[source]
        carried = duration * self.problem.circuit_mbps[pair]
        self.left[pair] = np.clip(self.left[pair] - carried, 0.0, None)
        self.used_us += self.problem.night_us + duration
        self.days.append(Day(duration_us=duration, target=target))
        return duration
