"""Patterns: contents of hosts of a type, which column generation chooses from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from planner.arrays import Ints
from planner_models.consolidation.problem.packing import Copy
from planner_models.consolidation.problem.problem import Consolidation

SMALLEST: Final = 1e-9
"""Dual prices below count as 0."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Pattern:
    """Content of a host of a type.

    copies  machines by the way in which they are in it
    units   (M,) machines of each shape
    """

    host_type: int
    copies: tuple[tuple[Copy, int], ...]
    units: Ints

    @property
    def key(self) -> tuple[int, bytes]:
        """Identity of patterns with the same type and number of machines."""
        return self.host_type, self.units.tobytes()


@dataclass(frozen=True, kw_only=True, eq=False)
class Priced:
    """The most valuable pattern that was found, and a value that no pattern of the type exceeds."""

    pattern: Pattern | None
    value: float
    bound: float


def make_pattern(problem: Consolidation, host_type: int, copies: dict[Copy, int]) -> Pattern:
    """Return the pattern of some machines."""
    units = np.zeros(len(problem.machines), dtype=np.int64)
    for (shape, _, _), times in copies.items():
        units[shape] += times
    return Pattern(host_type=host_type, copies=tuple(sorted(copies.items())), units=units)
