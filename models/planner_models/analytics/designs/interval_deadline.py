"""The time limit of designs that plan one interval after another, with time reserved for those to come."""

from __future__ import annotations

from typing import Final

from planner.options import Options
from planner.search.deadline import Deadline, Stopwatch

REPAIR: Final = 4.0  # times the seconds of building an interval's choices, which its shortest plan takes


class IntervalDeadline:
    """The seconds for searches of intervals, without those reserved for short plans of later ones."""

    def __init__(self, options: Options, intervals: int) -> None:
        self.deadline, self.building = Deadline.of(options), Stopwatch()
        self.remaining, self.build_s = intervals, 0.0

    def start_interval(self) -> None:
        """Note that the choices of the next interval are being built."""
        self.building = Stopwatch()
        self.remaining -= 1

    def end_build(self) -> None:
        """Note that the choices of the interval are built."""
        self.build_s = self.building.seconds

    def remaining_options(self, options: Options) -> Options:
        """Return the options with the time that is left, as they are without a limit."""
        return self.deadline.options(options)

    def search_s(self) -> float:
        """Return the seconds left for searches of this interval and later ones; 0 or less when late."""
        return self.deadline.left_s - REPAIR * self.build_s * self.remaining
