"""Adjustments of a problem: demand, rates and reconfiguration times, in all or by name, and failures."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from planner_models.circuits.problem.network import spread
from planner_models.circuits.problem.problem import MOST_SWITCHES, Circuits, Dark
from planner_models.circuits.problem.rack_adjustments import NightChange, RackAdjustments
from planner_models.circuits.problem.racks import require_fit


@spread(racks=RackAdjustments())
def adjust(
    problem: Circuits,
    *,
    scale: Annotated[
        float, Field(ge=0, allow_inf_nan=False, description="every demand is multiplied by this")
    ] = 1.0,
    circuit_switches: Annotated[
        Annotated[int, Field(ge=1, le=MOST_SWITCHES)] | None,
        Field(description="number of circuit switches; each rack has a link to each"),
    ] = None,
    dark: Annotated[
        Dark | None, Field(description="circuits that are dark at night: all, or only those that change")
    ] = None,
    night_us: NightChange = None,
    racks: RackAdjustments,
) -> Circuits:
    """Return the problem with its demands scaled, over other switches, and with failed racks.

    raises  InputError for a night that, with the shortest day, does not fit the week, and for a name that
            is no rack, or no pair of racks
    """
    if night_us is not None and problem.window_us is not None:
        require_fit(night_us, problem.shortest_day_us, "window_us", problem.window_us)
    return racks.apply(problem.scale(scale, pairs=racks.demand_factors)).with_switch(
        circuit_switches=circuit_switches, dark=dark, night_us=night_us
    )
