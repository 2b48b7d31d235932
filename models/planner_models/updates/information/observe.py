"""Observation of the traffic of classes: as it was measured some time ago, with noise."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from planner.contract.degradation import AgeS, Noise, Seed, add_noise, drift
from planner_models.updates.problem.problem import Update

MEMORY_S: Final = 600.0
"""Time in which the autocorrelation of a class's traffic falls to 1/e."""
SPREAD: Final = 0.5
"""Standard deviation of the logarithm of a class's traffic over time."""


def observe_traffic(problem: Update, *, age_s: AgeS = 0.0, noise: Noise = 0.0, seed: Seed = 0) -> Update:
    """Return the problem with the traffic of classes as the controller measured it; rules are known."""
    if age_s == 0 and noise == 0:
        return problem
    rng = np.random.default_rng(seed)
    traffic = drift(problem.traffic_mbps, age=age_s, memory=MEMORY_S, spread=SPREAD, rng=rng)
    traffic = add_noise(traffic, noise, rng)
    return replace(problem, classes=problem.classes.assign(traffic_mbps=traffic))
