"""What schedulers are told of demand: reports that are late, badly measured or coarse.

The network runs as it does; what is believed differs in the reports that schedulers get of it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

from pydantic import Field

from planner_models.circuitflows.problem import FlowsInTime, Reports


def reported(
    problem: FlowsInTime,
    *,
    age_us: Annotated[
        float, Field(ge=0, description="how long reports take to get to the scheduler, us")
    ] = 0.0,
    noise: Annotated[
        float, Field(ge=0, description="standard deviation of the logarithm of each amount reported")
    ] = 0.0,
    grain_bytes: Annotated[
        float,
        Field(ge=0, description="amounts are reported in whole steps of this, rounded up, bytes; 0: exactly"),
    ] = 0.0,
    seed: Annotated[int, Field(ge=0, description="seed of the noise")] = 0,
) -> FlowsInTime:
    """The network with reports of that kind; the problem itself where they are at once and exact."""
    reports = Reports(age_us=age_us, noise=noise, grain_bytes=grain_bytes, seed=seed)
    return problem if reports.exact else replace(problem, reports=reports)
