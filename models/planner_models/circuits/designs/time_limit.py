"""The time limit of a design, in shares for its phases."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Final

from planner import clock
from planner.options import Options

LEAST_TIME_S: Final = 0.001


class TimeLimit:
    """The time limit of options, which runs from when this was made."""

    def __init__(self, options: Options) -> None:
        self.options, self.start = options, clock.now()

    def deadline(self, share: float = 1.0) -> float:
        """Return when a share of the limit is over, by `clock.now()`; inf without a limit."""
        limit_s = self.options.time_limit_s
        return math.inf if limit_s is None else self.start + share * limit_s

    def rest(self, share: float = 1.0) -> Options:
        """Return the options with the time until a share of the limit is over, a millisecond at least."""
        if self.options.time_limit_s is None:
            return self.options
        left_s = self.deadline(share) - clock.now()
        return replace(self.options, time_limit_s=max(LEAST_TIME_S, left_s))
