"""Adjustments of a problem: demand, rates and reconfiguration times, in all or by name, and failures."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from planner_models.circuits.problem.problem import MOST_SWITCHES, Circuits, Dark
from planner_models.circuits.problem.racks import (
    CircuitFactors,
    DemandFactors,
    FailRacks,
    PacketFactors,
    require_fit,
)


def adjust(
    problem: Circuits,
    *,
    scale: Annotated[float, Field(ge=0, description="every demand is multiplied by this")] = 1.0,
    circuit_switches: Annotated[
        Annotated[int, Field(ge=1, le=MOST_SWITCHES)] | None,
        Field(description="number of circuit switches; each rack has a link to each"),
    ] = None,
    dark: Annotated[
        Dark | None, Field(description="circuits that are dark at night: all, or only those that change")
    ] = None,
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
) -> Circuits:
    """Return the problem with its demands scaled, over other switches, and with failed racks.

    raises  InputError for a night that, with the shortest day, does not fit the week, and for a name that
            is no rack, or no pair of racks
    """
    if night_us is not None and problem.window_us is not None:
        require_fit(night_us, problem.shortest_day_us, "window_us", problem.window_us)
    return (
        problem.scale(scale, pairs=demand_factors)
        .with_rates(
            circuit=circuit_scale * problem.rack_factors("circuit_factors", circuit_factors),
            packet=packet_scale * problem.rack_factors("packet_factors", packet_factors),
        )
        .fail(fail_racks)
        .with_switch(circuit_switches=circuit_switches, dark=dark, night_us=night_us)
    )
