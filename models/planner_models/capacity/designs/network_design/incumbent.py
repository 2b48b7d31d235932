"""The best plan of a search, the one that it improves, the bound, and the time that is left."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from planner.search.deadline import Deadline
from planner_models.capacity.designs.network_design.network import Floats

NUMERICAL_GAP = 4e-6
"""Relative gap that rounding of the solvers leaves, at which a plan counts as optimal in any case."""

Report = Callable[[float | None, float], None]
"""Takes the objective value of the best plan so far, None without one, and the bound."""


@dataclass
class Plan:
    """A point of the master program that every state can route, and its value there."""

    point: Floats
    value: float


class Incumbent:
    """The best plan and the bound, as values of the master program.

    current the plan that is improved: the best one, or a later start of the search
    bound   no plan has a smaller value
    limit_s the time limit, inf without one
    step    a number that all values of plans are multiples of, 0 where there is none
    report  called with each better plan and bound
    """

    def __init__(
        self, *, bound: float, step: float, gap: float, time_limit_s: float | None, report: Report | None
    ) -> None:
        self.best: Plan | None = None
        self.current: Plan | None = None
        self.bound, self.step, self.gap = bound, step, gap
        self.limit_s = math.inf if time_limit_s is None else time_limit_s
        self.deadline = Deadline.after(time_limit_s)
        self._report = report

    @property
    def value(self) -> float:
        """Value of the current plan, inf without one."""
        return math.inf if self.current is None else self.current.value

    def left_s(self) -> float:
        """Return the seconds that are left."""
        return self.deadline.left_s

    def is_done(self) -> bool:
        """Return whether the time is up, or the best plan is within the gap."""
        if self.left_s() <= 0.0:
            return True
        return self.best is not None and self.best.value - self.bound <= self.tolerance(self.best.value)

    def tolerance(self, value: float) -> float:
        """Return the distance from the bound at which a plan with a value counts as optimal."""
        return max(self.gap, NUMERICAL_GAP) * abs(value) + 1e-9

    def raise_bound(self, value: float) -> None:
        """Take a bound of the master program, rounded up to a possible cost of plans."""
        if not math.isfinite(value):
            return
        if self.step:
            value = self.step * math.ceil(value / self.step - 1e-6)
        if self.best is not None:
            value = min(value, self.best.value)
        if value > self.bound:
            self.bound = value
            self.report()

    def cutoff(self) -> float | None:
        """Return the value below which plans are better than the current one; None without one."""
        if self.current is None:
            return None
        value = self.current.value
        return value - max(self.step * 0.5, max(self.gap * 0.5, 1e-7) * abs(value), 1e-9)

    def offer(self, point: Floats, value: float) -> bool:
        """Take a feasible point of the master program as the current plan if it is better; best or not."""
        if value >= self.value - 1e-9 * max(1.0, abs(value)):
            return False
        self.current = Plan(point, value)
        if self.best is None or value < self.best.value:
            self.best = self.current
            self.report()
        return True

    def report(self) -> None:
        """Report the best plan and the bound."""
        if self._report is not None:
            self._report(None if self.best is None else self.best.value, self.bound)
