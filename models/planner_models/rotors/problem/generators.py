"""Presets: made-up problems of system `rotors`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Final

import numpy as np
import pandas as pd
from pydantic import Field

from planner.arrays import Floats
from planner.contract.parameters import spread
from planner_models.circuits.problem.technologies import TECHNOLOGIES, TechnologyName
from planner_models.rotors.problem.problem import MOST_RACKS, MOST_SWITCHES, RotorNetwork

RackCount = Annotated[int, Field(ge=2, le=MOST_RACKS, description="number of racks")]
Switches = Annotated[
    int,
    Field(ge=1, le=MOST_SWITCHES, description="number of circuit switches; each rack has a link to each"),
]
CircuitMbps = Annotated[
    float, Field(gt=0, allow_inf_nan=False, description="rate of a rack's link to each switch, Mbit/s")
]
DayUs = Annotated[
    float, Field(gt=0, allow_inf_nan=False, description="time that a rotor switch keeps a matching, us")
]
NightUs = Annotated[
    float, Field(ge=0, allow_inf_nan=False, description="time that a rotor switch is dark between two, us")
]
ScheduleNightUs = Annotated[
    float | None,
    Field(ge=0, description="the same of a switch that takes any matching, us; default: as rotor switches"),
]
WeekUs = Annotated[
    float | None,
    Field(gt=0, description="time after which a schedule for the demand repeats, us; default: a cycle"),
]
Load = Annotated[
    float, Field(gt=0, allow_inf_nan=False, description="what a rack sends over the rate of its links")
]
UrgentShare = Annotated[
    float, Field(ge=0, le=1, description="part of each demand that should not wait for a circuit")
]
Seed = Annotated[int, Field(ge=0, description="seed of the random numbers")]
RandomOrder = Annotated[
    bool, Field(description="rotate through random matchings, whose unions are expanders, not through shifts")
]


Skew = Annotated[
    float, Field(ge=0, le=1, description="share of a rack's traffic that goes to its few partners")
]
Partners = Annotated[int, Field(ge=1, le=MOST_RACKS - 1, description="partners of a rack")]


@dataclass(frozen=True, kw_only=True)
class Rotors:
    """Rates and times of a network of rotor switches, and its urgent traffic."""

    circuit_mbps: CircuitMbps = 100_000.0
    day_us: DayUs = 180.0
    night_us: NightUs = 20.0
    schedule_night_us: ScheduleNightUs = None
    week_us: WeekUs = None
    urgent_share: UrgentShare = 0.0
    random_order: RandomOrder = False

    def problem(self, rate_mbps: Floats, switches: int, seed: int) -> RotorNetwork:
        """Return the problem of an (n, n) demand, Mbit/s; `seed` draws random matchings."""
        return build(
            rate_mbps,
            self.circuit_mbps,
            self.urgent_share,
            count=switches,
            day_us=self.day_us,
            night_us=self.night_us,
            order_seed=seed if self.random_order else None,
            schedule_night_us=self.schedule_night_us,
            week_us=self.week_us,
        )


@spread(rotors=Rotors())
def skewed(
    *,
    racks: RackCount = 16,
    switches: Switches = 3,
    skew: Skew = 0.5,
    partners: Partners = 1,
    load: Load = 0.8,
    rotors: Rotors,
    seed: Seed = 0,
) -> RotorNetwork:
    """Build racks that send a part of their traffic to a few partners, and the rest to all alike.

    The partners of a rack are those of some random matchings without a pair in common.
    """
    random = np.random.default_rng(seed)
    demand = np.full((racks, racks), (1 - skew) / max(racks - 1, 1))
    order = random.permutation(racks)
    steps = random.permutation(np.arange(1, racks))[:partners]
    for step in steps.tolist():
        demand[order, np.roll(order, -step)] += skew / len(steps)
    np.fill_diagonal(demand, 0.0)
    rate = demand * (load * switches * rotors.circuit_mbps)
    return rotors.problem(rate, switches, seed)


@spread(rotors=Rotors())
def hotspots(
    *,
    racks: RackCount = 16,
    switches: Switches = 3,
    spread: Annotated[
        float, Field(ge=0, le=5, description="standard deviation of the logarithm of each demand")
    ] = 1.5,
    load: Annotated[
        float,
        Field(gt=0, allow_inf_nan=False, description="busiest rack's traffic over the rate of its links"),
    ] = 0.8,
    rotors: Rotors,
    seed: Seed = 0,
) -> RotorNetwork:
    """Build racks with lognormal demands, each drawn on its own."""
    demand = np.random.default_rng(seed).lognormal(0.0, spread, (racks, racks))
    np.fill_diagonal(demand, 0.0)
    busy = max(float(demand.sum(axis=0).max()), float(demand.sum(axis=1).max()))
    rate = demand * (load * switches * rotors.circuit_mbps / busy)
    return rotors.problem(rate, switches, seed)


ROTOR_DUTY: Final = 9.0  # days over nights of rotors, so that circuits are up for nine tenths of the time
COMMON_MBPS: Final = 10_000.0  # rate of a link by which the load of all technologies is the same


def technologies(
    *,
    technology: Annotated[
        TechnologyName,
        Field(description="technology of the circuits"),
    ] = "optical_us",
    racks: RackCount = 16,
    switches: Switches = 3,
    skew: Skew = 0.5,
    partners: Partners = 3,
    load: Annotated[
        float,
        Field(gt=0, allow_inf_nan=False, description="what a rack sends over links of 10 Gbit/s"),
    ] = 0.8,
    steady_us: Annotated[
        float,
        Field(gt=0, allow_inf_nan=False, description="time for which a demand, and so a schedule, stays, us"),
    ] = 15_000.0,
    seed: Seed = 0,
) -> RotorNetwork:
    """Build the network of `skewed` with circuits of one technology; the demand is the same for all of them.

    Rotor switches have days of nine nights each. Schedules for the demand repeat after `steady_us`.

    source  Mukerjee 2018, 5.3 (no comparison of switch designs by technology, restrictions and timescale)
    """
    made = TECHNOLOGIES[technology]
    return skewed(
        racks=racks,
        switches=switches,
        skew=skew,
        partners=partners,
        load=load * COMMON_MBPS / made.circuit_mbps,
        circuit_mbps=made.circuit_mbps,
        day_us=ROTOR_DUTY * made.night_us,
        night_us=made.night_us,
        week_us=steady_us,
        seed=seed,
    )


def small() -> RotorNetwork:
    """Return a tiny problem with every column: five racks of two speeds, three switches, urgent traffic."""
    demand = np.array(
        [[0, 60, 5, 5, 0], [5, 0, 40, 0, 5], [10, 5, 0, 30, 5], [0, 5, 5, 0, 20], [30, 0, 5, 5, 0.0]]
    )
    rate = np.array([100.0, 100.0, 50.0, 100.0, 50.0])
    times: dict[str, float | None] = {"schedule_night_us": 20.0, "week_us": 300.0}
    return build(demand, rate, 0.2, count=3, day_us=90.0, night_us=10.0, order_seed=0, **times)


def build(
    demand_mbps: Floats,
    circuit_mbps: Floats | float,
    urgent_share: float = 0.0,
    **switches: float | None,
) -> RotorNetwork:
    """Return the problem of an (n, n) demand, Mbit/s, with racks r1, r2, ... and values of `switches`.

    urgent_share  part of each demand that should not wait
    switches      values that are None are left out
    """
    names = np.array([f"r{row + 1}" for row in range(len(demand_mbps))], dtype=object)
    rounded = np.round(demand_mbps, 3)
    source, target = np.nonzero(rounded)
    rate = rounded[source, target]
    urgent = {"urgent_mbps": np.round(urgent_share * rate, 3)} if urgent_share else {}
    return RotorNetwork(
        racks=pd.DataFrame({"rack": names, "circuit_mbps": circuit_mbps}),
        demands=pd.DataFrame(
            {"source_rack": names[source], "target_rack": names[target], "rate_mbps": rate, **urgent}
        ),
        switches=pd.DataFrame(
            [{name: float(value) for name, value in switches.items() if value is not None}]
        ),
    )


PRESETS: Final[dict[str, Callable[..., RotorNetwork]]] = {
    "skewed": skewed,
    "hotspots": hotspots,
    "technologies": technologies,
    "small": small,
}
