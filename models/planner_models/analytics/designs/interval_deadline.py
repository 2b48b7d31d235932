"""The time limit of designs that plan one interval after another, with time reserved for those to come."""

from __future__ import annotations

from typing import Final

import numpy as np

from planner import clock
from planner.options import Options

REPAIR: Final = 4.0  # times the seconds of building an interval's choices, which its shortest plan takes


class IntervalDeadline:
    """The seconds for searches of intervals, without those reserved for short plans of later ones."""

    def __init__(self, options: Options, intervals: int) -> None:
        self.until = np.inf if options.time_limit_s is None else clock.now() + options.time_limit_s
        self.remaining, self.started, self.build_s = intervals, clock.now(), 0.0

    def start_interval(self) -> None:
        """Note that the choices of the next interval are being built."""
        self.started = clock.now()
        self.remaining -= 1

    def end_build(self) -> None:
        """Note that the choices of the interval are built."""
        self.build_s = clock.now() - self.started

    def remaining_options(self, options: Options) -> Options:
        """Return the options with the time that is left, as they are without a limit."""
        return options.until(None if np.isinf(self.until) else self.until)

    def search_s(self) -> float:
        """Return the seconds left for searches of this interval and later ones; 0 or less when late."""
        return self.until - clock.now() - REPAIR * self.build_s * self.remaining
