"""Observations of coflows: reports of applications that are late, noisy or coarse."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np
from pydantic import Field

from planner.contract.degradation import Noise, Seed, add_noise, round_up
from planner_models.circuits.problem.network import spread
from planner_models.coflows.problem.problem import CoflowsInTime

Age = Annotated[
    float,
    Field(ge=0, allow_inf_nan=False, description="time from the arrival of a coflow until it is known, ms"),
]
Granularity = Annotated[
    float,
    Field(
        ge=0, description="sizes of flows are reported in whole steps of this, rounded up, bytes; 0: exactly"
    ),
]


@dataclass(frozen=True, kw_only=True)
class Reports:
    """Age and accuracy of the reports of coflows."""

    age_ms: Age = 0.0
    noise: Noise = 0.0
    granularity_bytes: Granularity = 0.0
    seed: Seed = 0


def observe_arrivals(problem: CoflowsInTime, *, age_ms: Age = 0.0) -> CoflowsInTime:
    """Return the coflows as they become known, some time after they arrive."""
    if age_ms == 0:
        return problem
    return replace(problem, coflows=problem.coflows.assign(arrival_ms=problem.coflows["arrival_ms"] + age_ms))


@spread(reports=Reports())
def observe_coflows(problem: CoflowsInTime, *, reports: Reports) -> CoflowsInTime:
    """Return the coflows as applications report them: late, with noise in sizes, and in whole steps."""
    observed = observe_arrivals(problem, age_ms=reports.age_ms)
    if reports.noise == 0 and reports.granularity_bytes == 0:
        return observed
    rng = np.random.default_rng(reports.seed)
    sizes = add_noise(problem.flows["bytes"].to_numpy(float), reports.noise, rng)
    return replace(observed, flows=observed.flows.assign(bytes=round_up(sizes, reports.granularity_bytes)))
