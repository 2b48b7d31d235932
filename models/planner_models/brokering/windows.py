"""A market over a day: the same clients, fewer at night, window by window."""

from __future__ import annotations

import numpy as np

from planner_models.brokering.problem import Brokering


def day(problem: Brokering, *, windows: int = 24, swing: float = 0.5) -> list[Brokering]:
    """The problem at `windows` times of a day, with the clients that are awake where they live.

    Clients follow a cosine of local solar time that is largest at 20 h: 1 then, 1 - swing at 8 h.
    Numbers are rounded to whole clients.

    swing  from 0 (always the same) to 1
    """
    longitude = problem.locations["longitude"].to_numpy(float)[problem.location]
    problems = []
    for window in range(windows):
        local_h = 24 * window / windows + longitude / 15
        awake = 1 - swing / 2 + swing / 2 * np.cos(2 * np.pi * (local_h - 20) / 24)
        problems.append(problem.serving(np.rint(problem.count * awake)))
    return problems
