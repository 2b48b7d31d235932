"""The end of a search, by the clock of time limits (`planner.clock`), and the stopwatch of its steps.

A search makes one `Deadline` from its options at its start, gives shares of it to its steps, and asks it
where a step may end. A deadline without a limit is one too, `NEVER`: no search tells the two cases apart.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Final

from planner import clock
from planner.options import Options

MINIMUM_S: Final = 1e-3
"""Time limit of solvers that begin when nothing remains."""


def _now(is_cpu: bool) -> float:
    return clock.cpu_now() if is_cpu else clock.now()


@dataclass(frozen=True, slots=True)
class Deadline:
    """The time at which a search ends.

    start   reading of the clock when the limit began
    end     reading of the clock when it is over; inf for never
    is_cpu  whether it counts CPU seconds even where time limits count seconds on the wall
    """

    start: float
    end: float = math.inf
    is_cpu: bool = False

    @classmethod
    def of(cls, options: Options, *, default_s: float | None = None) -> Deadline:
        """Return the deadline of the options' time limit, which begins now.

        default_s  seconds where the options have no limit; None: never
        """
        return cls.after(default_s if options.time_limit_s is None else options.time_limit_s)

    @classmethod
    def after(cls, limit_s: float | None, *, is_cpu: bool = False) -> Deadline:
        """Return the deadline that is over some seconds from now; never for None and inf."""
        start = _now(is_cpu)
        return cls(start, math.inf if limit_s is None else start + limit_s, is_cpu)

    @property
    def is_never(self) -> bool:
        """Return whether there is no limit."""
        return math.isinf(self.end)

    @property
    def is_over(self) -> bool:
        """Return whether the time is over."""
        return not self.is_never and _now(self.is_cpu) >= self.end

    @property
    def left_s(self) -> float:
        """Return the seconds until the end, below 0 after it; inf for never."""
        return math.inf if self.is_never else self.end - _now(self.is_cpu)

    @property
    def limit_s(self) -> float:
        """Return the seconds from start to end; inf for never."""
        return self.end - self.start

    def share(self, fraction: float) -> Deadline:
        """Return the deadline at which a fraction of the limit is over, counted from the same start."""
        return self if self.is_never else replace(self, end=self.start + fraction * self.limit_s)

    def share_left(self, fraction: float) -> Deadline:
        """Return the deadline at which a fraction of the remaining seconds is over; its limit begins now."""
        return self if self.is_never else Deadline.after(fraction * self.left_s, is_cpu=self.is_cpu)

    def reserve(self, seconds: float) -> Deadline:
        """Return the deadline so many seconds earlier, by half of the limit at most."""
        return self if self.is_never else replace(self, end=self.end - min(self.limit_s / 2, seconds))

    def within(self, limit_s: float) -> Deadline:
        """Return the earlier one of this deadline and the one that is over some seconds from now."""
        other = Deadline.after(limit_s, is_cpu=self.is_cpu)
        return other if other.end < self.end else self

    def beyond(self, limit_s: float) -> Deadline:
        """Return the later one of this deadline and the one that is over some seconds from now."""
        other = Deadline.after(limit_s, is_cpu=self.is_cpu)
        return other if other.end > self.end else self

    def options(self, options: Options, *, minimum_s: float = MINIMUM_S) -> Options:
        """Return the options with the remaining seconds as time limit, as they are for never.

        minimum_s  time limit where fewer seconds remain
        """
        return options if self.is_never else replace(options, time_limit_s=max(self.left_s, minimum_s))


NEVER: Final = Deadline(0.0)
"""The deadline of a search without a limit."""


class Stopwatch:
    """The seconds since its start, by the clock of time limits or by another one."""

    def __init__(self, *, is_cpu: bool = False, is_wall: bool = False) -> None:
        """Start at 0.

        is_cpu   whether it counts CPU seconds in any case
        is_wall  whether it counts seconds on the wall in any case, for times that are reported
        """
        self._is_cpu, self._is_wall = is_cpu, is_wall
        self._start = self._read()

    def _read(self) -> float:
        return clock.wall_now() if self._is_wall else _now(self._is_cpu)

    @property
    def seconds(self) -> float:
        """Return the seconds since the start."""
        return self._read() - self._start
