"""Synthetic problems of system `circuits`, by preset."""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from planner_models.circuits.problem.problem import Circuits

Racks = Annotated[int, Field(ge=2, le=2048, description="number of racks")]
Load = Annotated[
    float, Field(ge=0, description="demand of each rack, in what its circuit link carries in the week")
]
CircuitRate = Annotated[float, Field(gt=0, description="rate of circuits, Mbit/s")]
PacketRate = Annotated[
    float, Field(ge=0, description="rate of each rack's link to the packet switch, Mbit/s")
]
Night = Annotated[float, Field(ge=0, description="reconfiguration time of circuits, us")]
Week = Annotated[float, Field(gt=0, description="the week, which demand is measured in, us")]
Bounded = Annotated[
    bool, Field(description="true: serve the most within the week; false: serve all in the least time")
]
ShortestDay = Annotated[float, Field(ge=0, description="shortest time that circuits stay up, us")]
Seed = Annotated[int, Field(ge=0, description="seed of the demand")]


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
    """Generate skewed, sparse demand: each rack sends and receives a few large flows and some small ones.

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
    """Generate rings of racks, each rack's load divided evenly over them.

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
    """Generate a shuffle: every rack sends the same to every other.

    source  Mukerjee 2018, 2.4.1
    """
    bits = np.full((racks, racks), load * circuit_mbps * window_us / (racks - 1))
    np.fill_diagonal(bits, 0.0)
    return _problem(bits, circuit_mbps, packet_mbps, night_us, window_us, bounded, shortest_day_us)


def hotspot(
    *,
    racks: Racks = 64,
    load: Load = 0.5,
    hot: Annotated[int, Field(ge=1, description="pairs of racks that are hot")] = 8,
    hot_share: Annotated[float, Field(ge=0, le=1, description="share of all demand between them")] = 0.8,
    circuit_mbps: CircuitRate = 100_000.0,
    packet_mbps: PacketRate = 10_000.0,
    night_us: Night = 20.0,
    window_us: Week = 2_000.0,
    bounded: Bounded = True,
    shortest_day_us: ShortestDay = 0.0,
    seed: Seed = 0,
) -> Circuits:
    """Generate hotspots: a few pairs of racks have most of the demand, all others the rest, evenly.

    No rack sends to, or receives from, two hot pairs, as long as there are no more of them than racks;
    the load is that of a rack that is in a hot pair.

    source  Wang et al. 2010 (c-Through) and Farrington et al. 2010 (Helios), for such demand
    """
    rng = np.random.default_rng(seed)
    bits = np.zeros((racks, racks))
    left = hot
    while left > 0:
        order = rng.permutation(racks)
        some = min(left, racks)
        bits[order[:some], np.roll(order, -1)[:some]] += 1.0
        left -= some
    even = np.ones((racks, racks)) - np.eye(racks)
    bits = hot_share * bits / bits.sum() + (1 - hot_share) * even / even.sum()
    busiest = max(bits.sum(axis=0).max(), bits.sum(axis=1).max())
    bits *= load * circuit_mbps * window_us / busiest
    return _problem(bits, circuit_mbps, packet_mbps, night_us, window_us, bounded, shortest_day_us)


def hdfs(
    *,
    racks: Racks = 8,
    writers: Annotated[
        int, Field(ge=1, description="mappers that write a file each, evenly over racks")
    ] = 64,
    file_mb: Annotated[float, Field(gt=0, description="size of a file, MB of 10^6 bytes")] = 400.0,
    block_mb: Annotated[float, Field(gt=0, description="a file is cut into blocks of this, MB")] = 128.0,
    placement: Annotated[
        Literal["random", "next"],
        Field(description="rack of a block's replicas: any other, drawn for each block, or the next one"),
    ] = "random",
    shift: Annotated[int, Field(ge=1, description="the next rack is i + shift")] = 1,
    circuit_mbps: CircuitRate = 80_000.0,
    packet_mbps: PacketRate = 10_000.0,
    night_us: Night = 20.0,
    window_us: Week = 2_000.0,
    bounded: Annotated[
        bool, Field(description="true: serve the most within the week; false: serve all in the least time")
    ] = False,
    shortest_day_us: ShortestDay = 180.0,
    seed: Seed = 0,
) -> Circuits:
    """Generate writes to a distributed file system (DFSIO): every block goes once to another rack.

    The second replica goes to another rack, the third stays in it. HDFS draws that rack for each
    block, so that all send to all; reHDFS takes a function of the source rack, so that racks form a
    ring.

    source  Mukerjee 2018, 2.6.1 and 2.6.2
    """
    rng = np.random.default_rng(seed)
    bits = np.zeros((racks, racks))
    blocks = int(np.ceil(file_mb / block_mb - 1e-9))
    sizes = np.full(blocks, block_mb)
    sizes[-1] = file_mb - block_mb * (blocks - 1)
    for writer in range(writers):
        source = writer % racks
        others = (source + rng.integers(1, racks, blocks)) % racks
        target = others if placement == "random" else np.full(blocks, (source + shift) % racks)
        np.add.at(bits, (np.full(blocks, source), target), sizes * 8e6)
    np.fill_diagonal(bits, 0.0)
    return _problem(bits, circuit_mbps, packet_mbps, night_us, window_us, bounded, shortest_day_us)


def mixed(
    *,
    racks: Racks = 8,
    count: Annotated[int, Field(ge=1, description="rings that big flows run in")] = 1,
    big_share: Annotated[
        float, Field(ge=0, description="big flows of a rack, in what its circuit link carries in the week")
    ] = 1 / 3,
    small_share: Annotated[
        float, Field(ge=0, description="small flows of a rack, in what its packet link carries in the week")
    ] = 1 / 3,
    circuit_mbps: CircuitRate = 80_000.0,
    packet_mbps: PacketRate = 10_000.0,
    night_us: Night = 20.0,
    window_us: Week = 2_000.0,
    bounded: Bounded = True,
    shortest_day_us: ShortestDay = 180.0,
) -> Circuits:
    """Generate big flows in rings of racks and small flows between all other pairs, as in a mean week.

    The flows themselves, with their starts and sizes, are what system `circuitflows` generates.

    source  Mukerjee 2018, 2.5.3 and 2.5.4
    """
    bits = np.zeros((racks, racks))
    rows = np.arange(racks)
    rings_of = min(count, racks - 1)
    for shift in range(1, racks):
        if shift <= rings_of:
            amount = big_share * circuit_mbps * window_us / rings_of
        else:
            amount = small_share * packet_mbps * window_us / (racks - 1 - rings_of)
        bits[rows, (rows + shift) % racks] = amount
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
    """Return the problem of a matrix."""
    return Circuits.from_matrix(
        bits,
        circuit_mbps=circuit_mbps,
        packet_mbps=packet_mbps,
        night_us=night_us,
        window_us=window_us if bounded else None,
        shortest_day_us=shortest_day_us,
    )
