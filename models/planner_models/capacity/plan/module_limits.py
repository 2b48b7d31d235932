"""The most that can be bought: limits of modules, or all that is ever needed."""

from __future__ import annotations

import numpy as np

from planner.arrays import Floats
from planner_models.capacity.problem.problem import CapacityPlanning


def largest_counts(problem: CapacityPlanning) -> Floats:
    """Return so many of each module that more are never needed, within the limits, (M,)."""
    options = problem.options
    most = float(problem.rate_mbps.sum(axis=1).max(initial=0.0))
    return np.minimum(options.limit, np.ceil(most / options.size))


def largest_capacity(problem: CapacityPlanning) -> Floats:
    """Return the most capacity that each link may get, or all that is ever needed, (L,), Mbit/s."""
    options, counts = problem.options, largest_counts(problem)
    capacity = problem.installed_mbps.copy()
    if problem.one_module:
        most = np.zeros(len(capacity))
        np.maximum.at(most, options.link, counts * options.size)
        return capacity + most
    np.add.at(capacity, options.link, counts * options.size)
    return capacity
