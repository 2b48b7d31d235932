"""The most that can be bought: limits of modules, or all that is ever needed."""

from __future__ import annotations

from typing import Final

import numpy as np

from planner.arrays import Floats
from planner.search.tolerances import SOLVER
from planner_models.capacity.problem.problem import CapacityPlanning

MOST_UNITS: Final = 1e6
"""Unit of programs, in the smallest module that matters: solvers drop coefficients of 1e-9 and less."""
MATTERS: Final = SOLVER
"""Share of all traffic above which the modules of a kind matter that a link may have together."""


def largest_unit(size: Floats, limit: Floats, total: float) -> float:
    """Return the largest unit of capacity in which no module that matters is tiny; inf where none does.

    size, limit  (M,) capacity of each module, and most of them on a link
    total        all traffic, in the unit of sizes
    """
    matters = size * limit > MATTERS * total
    return MOST_UNITS * float(size[matters].min(initial=np.inf))


def largest_counts(problem: CapacityPlanning) -> Floats:
    """Return so many of each module that more are never needed, within the limits, (M,)."""
    options = problem.options
    total = float(problem.rate_mbps.sum(axis=1).max(initial=0.0))
    usable_size = options.size * problem.utilization_limit.min()
    needed: Floats = np.minimum(options.limit, np.ceil(total / usable_size))
    return needed


def largest_capacity(problem: CapacityPlanning) -> Floats:
    """Return the most capacity that each link may get, or all that is ever needed, (L,), Mbit/s."""
    options, counts = problem.options, largest_counts(problem)
    capacity = problem.installed_mbps.copy()
    if problem.one_module:
        added = np.zeros(len(capacity))
        np.maximum.at(added, options.link, counts * options.size)
        return capacity + added
    np.add.at(capacity, options.link, counts * options.size)
    return capacity
