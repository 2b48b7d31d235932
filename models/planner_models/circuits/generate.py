"""Synthetic problems of system `circuits`, by preset."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from planner_models.circuits.problem import Circuits

Racks = Annotated[int, Field(ge=2, le=2048, description="how many racks")]
Load = Annotated[
    float, Field(ge=0, description="demand of each rack, in what its circuit link carries in the week")
]
CircuitRate = Annotated[float, Field(gt=0, description="rate of circuits, Mbit/s")]
PacketRate = Annotated[
    float, Field(ge=0, description="rate of each rack's link to the packet switch, Mbit/s")
]
Night = Annotated[float, Field(ge=0, description="time to change circuits, us")]
Week = Annotated[float, Field(gt=0, description="the week, which demand is measured in, us")]
Bounded = Annotated[
    bool, Field(description="true: serve the most within the week; false: serve all in the least time")
]
ShortestDay = Annotated[float, Field(ge=0, description="least time that circuits stay up, us")]
Seed = Annotated[int, Field(ge=0, description="where the demand is drawn")]


def skewed(
    *,
    racks: Racks = 64,
    load: Load = 1.0,
    large: Annotated[int, Field(ge=0, description="large flows of each rack")] = 4,
    small: Annotated[int, Field(ge=0, description="small flows of each rack")] = 12,
    large_share: Annotated[float, Field(ge=0, le=1, description="share of the load in large flows")] = 0.7,
    noise: Annotated[float, Field(ge=0, lt=1, description="each demand is off by up to this share")] = 0.003,
    circuit_mbps: CircuitRate = 100_000.0,
    packet_mbps: PacketRate = 10_000.0,
    night_us: Night = 20.0,
    window_us: Week = 2_000.0,
    bounded: Bounded = True,
    shortest_day_us: ShortestDay = 0.0,
    seed: Seed = 0,
) -> Circuits:
    """Skewed, sparse demand: each rack sends and receives a few large flows and some small ones.

    Flows are drawn as permutations of the racks without fixed points, which add up.

    source  Liu et al. 2015 (Solstice), evaluation; Venkatakrishnan et al. 2016 (Eclipse), evaluation
    """
    rng = np.random.default_rng(seed)
    whole = load * circuit_mbps * window_us
    bits = np.zeros((racks, racks))
    for count, share in ((large, large_share), (small, 1 - large_share)):
        for _ in range(count):
            order = rng.permutation(racks)
            # successive racks of a random cycle, so that none sends to itself
            bits[order, np.roll(order, -1)] += share * whole / count
    bits *= 1 + noise * rng.uniform(-1, 1, size=bits.shape)
    return _problem(bits, circuit_mbps, packet_mbps, night_us, window_us, bounded, shortest_day_us)


def rings(
    *,
    racks: Racks = 8,
    load: Load = 1.0,
    count: Annotated[int, Field(ge=1, description="rings: rack i sends to racks i + 1, ..., i + count")] = 1,
    circuit_mbps: CircuitRate = 80_000.0,
    packet_mbps: PacketRate = 10_000.0,
    night_us: Night = 20.0,
    window_us: Week = 2_000.0,
    bounded: Bounded = True,
    shortest_day_us: ShortestDay = 180.0,
) -> Circuits:
    """Rings of racks, each rack's load shared out evenly over them.

    source  Mukerjee 2018, 2.5.3 and 2.5.4
    """
    bits = np.zeros((racks, racks))
    rows = np.arange(racks)
    for shift in range(1, min(count, racks - 1) + 1):
        bits[rows, (rows + shift) % racks] = load * circuit_mbps * window_us / min(count, racks - 1)
    return _problem(bits, circuit_mbps, packet_mbps, night_us, window_us, bounded, shortest_day_us)


def all_to_all(
    *,
    racks: Racks = 8,
    load: Load = 1.0,
    circuit_mbps: CircuitRate = 80_000.0,
    packet_mbps: PacketRate = 10_000.0,
    night_us: Night = 20.0,
    window_us: Week = 2_000.0,
    bounded: Bounded = True,
    shortest_day_us: ShortestDay = 180.0,
) -> Circuits:
    """A shuffle: every rack sends the same to every other.

    source  Mukerjee 2018, 2.4.1
    """
    bits = np.full((racks, racks), load * circuit_mbps * window_us / (racks - 1))
    np.fill_diagonal(bits, 0.0)
    return _problem(bits, circuit_mbps, packet_mbps, night_us, window_us, bounded, shortest_day_us)


def _problem(
    bits: NDArray[np.float64],
    circuit_mbps: float,
    packet_mbps: float,
    night_us: float,
    window_us: float,
    bounded: bool,
    shortest_day_us: float,
) -> Circuits:
    return Circuits.from_matrix(
        bits,
        circuit_mbps=circuit_mbps,
        packet_mbps=packet_mbps,
        night_us=night_us,
        window_us=window_us if bounded else None,
        shortest_day_us=shortest_day_us,
    )
