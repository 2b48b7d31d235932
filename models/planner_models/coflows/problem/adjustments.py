"""Adjustments of a problem: amounts, arrivals, rates and set-up times, in all or by name, and failures."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from planner_models.circuits.problem.racks import CircuitFactors, DemandFactors, FailRacks, PacketFactors
from planner_models.coflows.problem.problem import MOST_SWITCHES, CoflowsInTime

CoflowFactors = Annotated[
    dict[str, Annotated[float, Field(ge=0, allow_inf_nan=False)]],
    Field(description="coflows, and what the bytes of their flows are multiplied by; 0: it is left out"),
]


def adjust(
    problem: CoflowsInTime,
    *,
    scale: Annotated[
        float, Field(gt=0, allow_inf_nan=False, description="every flow's bytes are multiplied by this")
    ] = 1.0,
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
    circuit_scale: Annotated[
        float, Field(gt=0, allow_inf_nan=False, description="every circuit's rate is multiplied by this")
    ] = 1.0,
    packet_scale: Annotated[
        float,
        Field(
            ge=0,
            allow_inf_nan=False,
            description="the packet switch's rates are multiplied by this; 0: it has failed",
        ),
    ] = 1.0,
    coflow_factors: CoflowFactors = {},  # noqa: B006 - never changed
    demand_factors: DemandFactors = {},  # noqa: B006 - never changed
    circuit_factors: CircuitFactors = {},  # noqa: B006 - never changed
    packet_factors: PacketFactors = {},  # noqa: B006 - never changed
    fail_racks: FailRacks = (),
) -> CoflowsInTime:
    """Return the problem with its coflows scaled, over other switches, and with failed racks.

    raises  InputError for a name that is no rack, no pair of racks or no coflow, and where no flow remains
    """
    return (
        problem.scale(scale, pairs=demand_factors, coflows=coflow_factors)
        .speed_up(arrival_speed)
        .with_rates(
            circuit=circuit_scale * problem.rack_factors("circuit_factors", circuit_factors),
            packet=packet_scale * problem.rack_factors("packet_factors", packet_factors),
        )
        .fail(fail_racks)
        .with_switch(setup_ms=setup_ms, circuit_switches=circuit_switches)
    )
