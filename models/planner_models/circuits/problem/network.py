"""Rates and times of a network, which generators and readers take as parameters of their own."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Annotated

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pydantic import Field

from planner_models.circuits.problem.problem import Circuits, switch_table

CircuitRate = Annotated[float, Field(gt=0, description="rate of circuits, Mbit/s")]
PacketRate = Annotated[
    float, Field(ge=0, description="rate of each rack's link to the packet switch, Mbit/s")
]
Night = Annotated[float, Field(ge=0, description="reconfiguration time of circuits, us")]
ShortestDay = Annotated[float, Field(ge=0, description="shortest time that circuits stay up, us")]


@dataclass(frozen=True, kw_only=True)
class Network:
    """The network of a demand that is read."""

    circuit_mbps: CircuitRate = 100_000.0
    packet_mbps: PacketRate = 10_000.0
    night_us: Night = 20.0
    window_us: Annotated[
        Annotated[float, Field(gt=0)] | None,
        Field(description="the week, us; none: all demand is served, in least time"),
    ] = 2_000.0
    shortest_day_us: ShortestDay = 0.0

    def problem(self, bits: NDArray[np.float64], where: str = "demand matrix") -> Circuits:
        """Return the problem of an (n, n) matrix of demand."""
        return Circuits.from_matrix(bits, **asdict(self), where=where)

    def with_rates(self, racks: pd.DataFrame) -> pd.DataFrame:
        """Return racks with the rates of this network."""
        return racks.assign(circuit_mbps=self.circuit_mbps, packet_mbps=self.packet_mbps)

    def switch(self) -> pd.DataFrame:
        """Return the table `switch`."""
        return switch_table(
            night_us=self.night_us, window_us=self.window_us, shortest_day_us=self.shortest_day_us
        )


@dataclass(frozen=True, kw_only=True)
class GeneratedNetwork:
    """The network of a demand that is generated, in proportion to a week."""

    circuit_mbps: CircuitRate = 80_000.0
    packet_mbps: PacketRate = 10_000.0
    night_us: Night = 20.0
    window_us: Annotated[float, Field(gt=0, description="the week, which demand is measured in, us")] = (
        2_000.0
    )
    bounded: Annotated[
        bool, Field(description="true: serve the most within the week; false: serve all in the least time")
    ] = True
    shortest_day_us: ShortestDay = 180.0

    @property
    def circuit_bits(self) -> float:
        """Return the bits that a circuit carries in the week."""
        return self.circuit_mbps * self.window_us

    def problem(self, bits: NDArray[np.float64]) -> Circuits:
        """Return the problem of an (n, n) matrix of demand."""
        parameters = asdict(self)
        return Circuits.from_matrix(
            bits, **(parameters if parameters.pop("bounded") else {**parameters, "window_us": None})
        )
