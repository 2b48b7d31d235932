"""The progress of a subgradient method: its best bound, and step lengths that shrink where the bound stalls.

Steps are Polyak's: a factor times the distance to a target value, over the squared norm of the direction. The
factor shrinks, and the search goes back to its best point, after so many steps without a better bound.

source  Polyak 1969 (steps); Held, Wolfe and Crowder 1974 (halving)
"""

from __future__ import annotations

import math
from typing import Generic

from typing_extensions import TypeVar

from planner.arrays import Floats

PointT = TypeVar("PointT", default=Floats)


class Ascent(Generic[PointT]):
    """The best bound of a subgradient method, the point that has it, and the factor of the steps.

    best, best_point  largest bound so far, and its point: multipliers, or prices
    factor            of Polyak's step length
    """

    def __init__(
        self,
        point: PointT,
        *,
        factor: float,
        stall_limit: int,
        shrink: float = 0.5,
        growth: float = 1.0,
        best: float = -math.inf,
    ) -> None:
        """Start at a point.

        stall_limit  steps without a better bound until `tell` returns true
        shrink       factor on the step length in `go_back`
        growth       factor on the step length at each better bound
        best         bound that is known already
        """
        self.best, self.best_point, self.factor = best, point, factor
        self._stall_limit, self._shrink, self._growth, self._stalled = stall_limit, shrink, growth, 0

    def tell(self, bound: float, point: PointT, *, progress: float = 0.0) -> bool:
        """Take the bound at a point; return whether it has stalled, so that the search should go back.

        progress  by which a bound must be better to count
        """
        if bound > self.best + progress:
            self.best, self.best_point, self._stalled = bound, point, 0
            self.factor *= self._growth
            return False
        self._stalled += 1
        if self._stalled < self._stall_limit:
            return False
        self._stalled = 0
        return True

    def go_back(self) -> PointT:
        """Shorten the steps; return the point with the best bound, to go on from there."""
        self.factor *= self._shrink
        return self.best_point

    def length(self, rise: float, squared_norm: float) -> float:
        """Return the factor of a direction.

        rise          distance of the bound to the target value
        squared_norm  of the direction
        """
        return self.factor * rise / squared_norm
