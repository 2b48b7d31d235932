"""Adjustments that apply to every problem of system `rotors`, whatever its source."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated

from pydantic import Field

from planner.contract.parameters import spread
from planner_models.circuits.problem.adjustments import CircuitFactors, DemandFactors, FailRacks
from planner_models.rotors.problem.problem import MOST_SWITCHES, RotorNetwork


@dataclass(frozen=True, kw_only=True)
class SwitchChanges:
    """The number of switches and their times; None: as in the tables."""

    switches: Annotated[
        int | None, Field(ge=1, le=MOST_SWITCHES, description="number of switches; default: as in the tables")
    ] = None
    day_us: Annotated[
        float | None,
        Field(gt=0, allow_inf_nan=False, description="time that a rotor switch keeps a matching, us"),
    ] = None
    night_us: Annotated[
        float | None,
        Field(ge=0, allow_inf_nan=False, description="time that a rotor switch is dark between two, us"),
    ] = None
    schedule_night_us: Annotated[
        float | None,
        Field(ge=0, allow_inf_nan=False, description="the same of a switch that takes any matching, us"),
    ] = None
    week_us: Annotated[
        float | None,
        Field(
            gt=0, allow_inf_nan=False, description="time after which a schedule for the demand repeats, us"
        ),
    ] = None

    def values(self) -> dict[str, float]:
        """Return the columns of the table `switches` that change."""
        changes = {"count": self.switches, **vars(self)}
        del changes["switches"]
        return {name: float(value) for name, value in changes.items() if value is not None}


@spread(switch=SwitchChanges())
def adjust(
    problem: RotorNetwork,
    *,
    scale: Annotated[
        float, Field(gt=0, allow_inf_nan=False, description="every demand's rate is multiplied by this")
    ] = 1.0,
    fail_racks: FailRacks = (),
    demand_factors: DemandFactors = {},  # noqa: B006 - never changed
    circuit_factors: CircuitFactors = {},  # noqa: B006 - never changed
    switch: SwitchChanges,
) -> RotorNetwork:
    """Return the problem with other demands, racks or switches.

    raises  InputError for racks and pairs that are none, and for values that do not fit each other
    """
    factor = scale * problem.pair_factors(demand_factors, problem.demands)
    changed = problem
    if (factor != 1).any():
        columns = [name for name in ("rate_mbps", "urgent_mbps") if name in problem.demands]
        demands = problem.demands.assign(**{name: problem.demands[name] * factor for name in columns})
        changed = replace(changed, demands=demands)
    if circuit_factors:
        changed = changed.with_rates(circuit=changed.rack_factors("circuit_factors", circuit_factors))
    return changed.with_switches(**switch.values()).fail(fail_racks)
