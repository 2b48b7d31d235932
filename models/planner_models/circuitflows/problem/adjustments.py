"""Adjustments of a problem: more or less demand, other rates and reconfiguration times."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from planner_models.circuitflows.problem.problem import FlowsInTime
from planner_models.circuits.problem.racks import require_fit


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
) -> FlowsInTime:
    """Return the problem with its flows scaled, over other switches.

    Without a packet switch, replies need circuits back, unless they go around (`reply_bytes` 0).

    raises  InputError for a night that, with the shortest day, does not fit the week
    """
    if night_us is not None:
        require_fit(night_us, problem.of("shortest_day_us"), "week_us", problem.of("week_us"))
    faster = problem.scale(scale).with_rates(circuit=circuit_scale, packet=packet_scale)
    return faster.with_night(night_us)
