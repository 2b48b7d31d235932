"""Phases of the approximation scheme of Garg, Könemann and Fleischer, whatever traffic is sent over.

Every link has a length that grows with the flow sent over it. Lengths start at
delta = (A / (1 - epsilon))^(-1 / epsilon) over capacity, which underflows where epsilon is small; only their
ratios matter, so their common scale is kept as a logarithm.

source  Garg and Könemann, "Faster and simpler algorithms for multicommodity flow" (FOCS 1998), section 5
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Final

import numpy as np

from planner.arrays import Floats
from planner.search.deadline import Deadline, Stopwatch
from planner_models.traffic.designs.column_generation.column_generation import Iteration

MAX_LENGTH: Final = 1e100  # lengths are scaled down when one grows beyond it


class Phases(ABC):
    """The lengths of links, and bounds of the utilization: that of the flow sent, and a lower one.

    capacity, length  (A,) of links; true lengths are length * exp(log_scale) * delta
    deadline          at which a phase ends early
    """

    def __init__(self, capacity: Floats, epsilon: float, deadline: Deadline, bound: float = 0.0) -> None:
        self.capacity, self.epsilon, self.deadline = capacity, epsilon, deadline
        self.watch = Stopwatch(is_wall=True)
        self.length = 1.0 / capacity
        self.log_scale = 0.0
        self.bound, self.utilization = bound, np.inf

    @abstractmethod
    def _first_load(self) -> Floats:
        """Return the load of each link, (A,), with all demands on their shortest routes; update `bound`."""

    @abstractmethod
    def _run_phase(self, scale: float) -> bool:
        """Send `scale` times the demands; return False where time ran out."""

    @abstractmethod
    def _columns(self) -> int:
        """Return the number of used trees or routes."""

    def iterate(self) -> Iterator[Iteration]:
        """Run phases until the ratio is guaranteed, or the time is up."""
        load = self._first_load()
        # demands are scaled so that the optimum is at least 1, and doubled while it proves to be above 2
        scale = 1.0 / float((load / self.capacity).max())
        log_volume = math.log(len(self.capacity) / (1 - self.epsilon))
        phases_per_doubling = 2 * math.ceil(log_volume / self.epsilon**2)
        phases = 0
        while math.log(self._volume()) + self.log_scale - log_volume / self.epsilon < 0:
            if not self._run_phase(scale):
                return
            phases += 1
            yield self._iteration()
            if phases % phases_per_doubling == 0:
                scale *= 2

    def _volume(self) -> float:
        return float(self.length @ self.capacity)

    def _is_late(self) -> bool:
        return self.deadline.is_over

    def _scale_lengths(self) -> float:
        """Scale lengths down where one is too large; return the factor that they were divided by."""
        if self.length.max() * self.capacity.max() <= MAX_LENGTH:
            return 1.0
        self.length /= MAX_LENGTH
        self.log_scale += math.log(MAX_LENGTH)
        return MAX_LENGTH

    def _iteration(self) -> Iteration:
        return Iteration(
            seconds=self.watch.seconds,
            phase="phase",
            utilization=self.utilization,
            bound=self.bound,
            columns=self._columns(),
            rows=len(self.length),
        )
