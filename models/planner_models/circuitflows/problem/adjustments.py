"""Adjustments of a problem: demand, rates and reconfiguration times, in all or by name, and failures."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from planner_models.circuitflows.problem.problem import FlowsInTime
from planner_models.circuits.problem.racks import (
    CircuitFactors,
    DemandFactors,
    FailRacks,
    PacketFactors,
    require_fit,
)


def adjust(
    problem: FlowsInTime,
    *,
    scale: Annotated[float, Field(gt=0, description="every flow's bytes are multiplied by this")] = 1.0,
    night_us: Annotated[
        Annotated[float, Field(ge=0, allow_inf_nan=False)] | None,
        Field(description="reconfiguration time of circuits, us; none: as given"),
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
    demand_factors: DemandFactors = {},  # noqa: B006 - never changed
    circuit_factors: CircuitFactors = {},  # noqa: B006 - never changed
    packet_factors: PacketFactors = {},  # noqa: B006 - never changed
    fail_racks: FailRacks = (),
) -> FlowsInTime:
    """Return the problem with its flows scaled, over other switches, and with failed racks.

    Without a packet switch, replies need circuits back, unless they go around (`reply_bytes` 0).

    Flows from and to failed racks never begin.

    raises  InputError for a night that, with the shortest day, does not fit the week, for a name that is no
            rack, or no pair of racks, and where every flow is left out
    """
    if night_us is not None:
        require_fit(night_us, problem.of("shortest_day_us"), "week_us", problem.of("week_us"))
    return (
        problem.scale(scale, pairs=demand_factors)
        .with_rates(
            circuit=circuit_scale * problem.rack_factors("circuit_factors", circuit_factors),
            packet=packet_scale * problem.rack_factors("packet_factors", packet_factors),
        )
        .fail(fail_racks)
        .with_night(night_us)
    )
