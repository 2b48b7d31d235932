"""Adjustments of a problem: demand, rates and reconfiguration times, in all or by name, and failures."""

from __future__ import annotations

from planner.contract.parameters import spread
from planner_models.circuitflows.problem.problem import FlowsInTime
from planner_models.circuits.problem.adjustments import FlowScale, NightChange, RackAdjustments
from planner_models.circuits.problem.racks import require_fit


@spread(racks=RackAdjustments())
def adjust(
    problem: FlowsInTime,
    *,
    scale: FlowScale = 1.0,
    night_us: NightChange = None,
    racks: RackAdjustments,
) -> FlowsInTime:
    """Return the problem with its flows scaled, over other switches, and with failed racks.

    Without a packet switch, replies need circuits back, unless they go around (`reply_bytes` 0).

    Flows from and to failed racks never begin.

    raises  InputError for a night that, with the shortest day, does not fit the week, for a name that is no
            rack, or no pair of racks, and where every flow is left out
    """
    if night_us is not None:
        require_fit(night_us, problem.of("shortest_day_us"), "week_us", problem.of("week_us"))
    return racks.apply(problem.scale(scale, pairs=racks.demand_factors)).with_night(night_us)
