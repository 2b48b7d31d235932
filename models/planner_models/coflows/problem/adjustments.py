"""Adjustments of a problem: amounts, arrivals, rates and set-up times, in all or by name, and failures."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from planner.contract.parameters import spread
from planner_models.circuits.problem.adjustments import FlowScale, RackAdjustments
from planner_models.coflows.problem.problem import MOST_SWITCHES, CoflowsInTime

CoflowFactors = Annotated[
    dict[str, Annotated[float, Field(ge=0, allow_inf_nan=False)]],
    Field(description="coflows, and what the bytes of their flows are multiplied by; 0: it is left out"),
]


@spread(racks=RackAdjustments())
def adjust(
    problem: CoflowsInTime,
    *,
    scale: FlowScale = 1.0,
    arrival_speed: Annotated[
        float, Field(gt=0, allow_inf_nan=False, description="coflows arrive so many times as fast")
    ] = 1.0,
    setup_ms: Annotated[
        Annotated[float, Field(ge=0, allow_inf_nan=False)] | None,
        Field(description="set-up time of circuits, ms; none: as given"),
    ] = None,
    circuit_switches: Annotated[
        Annotated[int, Field(ge=1, le=MOST_SWITCHES)] | None,
        Field(description="number of circuit switches; none: as given"),
    ] = None,
    coflow_factors: CoflowFactors = {},  # noqa: B006 - never changed
    racks: RackAdjustments,
) -> CoflowsInTime:
    """Return the problem with its coflows scaled, over other switches, and with failed racks.

    raises  InputError for a name that is no rack, no pair of racks or no coflow, and where no flow remains
    """
    scaled = problem.scale(scale, pairs=racks.demand_factors, coflows=coflow_factors)
    return racks.apply(scaled.speed_up(arrival_speed)).with_switch(
        setup_ms=setup_ms, circuit_switches=circuit_switches
    )
