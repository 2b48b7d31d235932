"""Solstice: few, long days from demand that is skewed and sparse."""

from __future__ import annotations

import numpy as np

from planner.options import Options
from planner.system import Decision
from planner_models.circuits import matchings
from planner_models.circuits import schedule as schedules
from planner_models.circuits.clock import Clock
from planner_models.circuits.problem import Circuits
from planner_models.circuits.schedule import Schedule


def schedule(
    problem: Circuits,
    *,
    options: Options = Options(),  # noqa: ARG001
    previous: Decision[Schedule] | None = None,  # noqa: ARG001
) -> Decision[Schedule]:
    """Solstice: demand stuffed to equal sums (QuickStuff), then sliced by perfect matchings (BigSlice).

    A threshold halves whenever no perfect matching of entries above it is left; each matching found
    is a day as long as its smallest entry. It ends when the packet switch can carry what remains: in
    the time used so far without a window, as Solstice is published, or in the week with one, as
    Etalon changed it (Mukerjee 2018, 2.3.2), where it ends with the week too.

    source  Liu et al. 2015 (Solstice)
    """
    clock = Clock(problem)
    full = matchings.stuffed(problem.bits / problem.circuit_mbps)
    most = float(full.sum(axis=1).max(initial=0.0))
    rows = np.arange(len(full))
    threshold = 2.0 ** np.floor(np.log2(full.max(initial=0.0))) if most > 0 else 0.0
    while threshold > matchings.SMALLEST * most and not clock.over:
        target = matchings.perfect(full >= threshold)
        if target is None:
            threshold /= 2
            continue
        slice_us = float(full[rows, target].min())
        clock.add(target, slice_us)
        full[rows, target] -= slice_us
    return schedules.decided(problem, clock.days)
