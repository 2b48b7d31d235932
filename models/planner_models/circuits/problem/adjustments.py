"""Adjustments of a problem: more or less demand, other rates and reconfiguration times."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from planner_models.circuits.problem.problem import MOST_SWITCHES, Circuits, Dark
from planner_models.circuits.problem.racks import require_fit


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
) -> Circuits:
    """Return the problem with its demands scaled, over other switches.

    raises  InputError for a night that, with the shortest day, does not fit the week
    """
    if night_us is not None and problem.window_us is not None:
        require_fit(night_us, problem.shortest_day_us, "window_us", problem.window_us)
    return (
        problem.scale(scale)
        .with_rates(circuit=circuit_scale, packet=packet_scale)
        .with_switch(circuit_switches=circuit_switches, dark=dark, night_us=night_us)
    )
