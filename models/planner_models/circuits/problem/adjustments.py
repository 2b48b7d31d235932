"""Adjustments of a problem: demand, rates and reconfiguration times, in all or by name, and failures.

Adjustments of racks, their links and the demand between them, which several systems have in common.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Annotated, TypeVar

from pydantic import Field

from planner.contract.parameters import spread
from planner_models.circuits.problem.problem import MOST_CIRCUIT_TARGETS, MOST_SWITCHES, Circuits, Dark
from planner_models.circuits.problem.racks import Racks, require_fit
from planner_models.circuits.problem.technologies import TECHNOLOGIES, TechnologyName

RacksT = TypeVar("RacksT", bound=Racks)
FlowScale = Annotated[
    float, Field(gt=0, allow_inf_nan=False, description="every flow's bytes are multiplied by this")
]
NightChange = Annotated[
    Annotated[float, Field(ge=0, allow_inf_nan=False)] | None,
    Field(description="reconfiguration time of circuits, us; none: as given"),
]
DemandFactors = Annotated[
    dict[str, Annotated[float, Field(ge=0, allow_inf_nan=False)]],
    Field(
        description="pairs of racks, as source->target, and what their demand is multiplied by; "
        "0: it is left out"
    ),
]
CircuitFactors = Annotated[
    dict[str, Annotated[float, Field(gt=0, allow_inf_nan=False)]],
    Field(description="racks, and what the rate of their links to the circuit switches is multiplied by"),
]
FailRacks = Annotated[
    tuple[str, ...],
    Field(description="racks that fail, by their exact names; the demand from and to them is not served"),
]


@dataclass(frozen=True, kw_only=True)
class RackAdjustments:
    """Links of other rates and racks that fail, in all or by name, and demand between pairs of racks."""

    circuit_scale: Annotated[
        float, Field(gt=0, allow_inf_nan=False, description="every circuit's rate is multiplied by this")
    ] = 1.0
    packet_scale: Annotated[
        float,
        Field(
            ge=0,
            allow_inf_nan=False,
            description="the packet switch's rates are multiplied by this; 0: it has failed",
        ),
    ] = 1.0
    demand_factors: DemandFactors = field(default_factory=dict)
    circuit_factors: CircuitFactors = field(default_factory=dict)
    packet_factors: Annotated[
        dict[str, Annotated[float, Field(ge=0, allow_inf_nan=False)]],
        Field(
            description="racks, and what the rate of their link to the packet switch is multiplied by; "
            "0: the link has failed"
        ),
    ] = field(default_factory=dict)
    fail_racks: FailRacks = ()

    def apply(self, problem: RacksT) -> RacksT:
        """Return the problem with these rates and failures; demand is scaled by the problem itself.

        raises  InputError for a name that is no rack
        """
        return problem.with_rates(
            circuit=self.circuit_scale * problem.rack_factors("circuit_factors", self.circuit_factors),
            packet=self.packet_scale * problem.rack_factors("packet_factors", self.packet_factors),
        ).fail(self.fail_racks)


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
    circuit_targets: Annotated[
        Annotated[int, Field(ge=1, le=MOST_CIRCUIT_TARGETS)] | None,
        Field(description="racks that the circuit of a sender reaches at once; none: as given"),
    ] = None,
    technology: Annotated[
        TechnologyName | None,
        Field(
            description="circuits of a technology, with the rate and reconfiguration time of a prototype; "
            "none: as given"
        ),
    ] = None,
    racks: RackAdjustments,
) -> Circuits:
    """Return the problem with its demands scaled, over other switches, and with failed racks.

    A technology sets the rate of all racks' circuits, and `night_us` unless that is set too; factors of
    rates come after it.

    raises  InputError for a night that, with the shortest day, does not fit the week, and for a name that
            is no rack, or no pair of racks
    """
    if technology is not None:
        made = TECHNOLOGIES[technology]
        night_us = made.night_us if night_us is None else night_us
        problem = replace(problem, racks=problem.racks.assign(circuit_mbps=made.circuit_mbps))
    if night_us is not None and problem.window_us is not None:
        require_fit(night_us, problem.shortest_day_us, "window_us", problem.window_us)
    return racks.apply(problem.scale(scale, pairs=racks.demand_factors)).with_switch(
        circuit_switches=circuit_switches, dark=dark, night_us=night_us, circuit_targets=circuit_targets
    )
