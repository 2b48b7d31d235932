"""Synthetic problems of system `circuits`, by preset."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Final, Literal

import numpy as np
import pandas as pd
from pydantic import Field

from planner.contract.parameters import spread
from planner.errors import InputError
from planner_models.circuits.problem.network import GeneratedNetwork
from planner_models.circuits.problem.problem import MOST_CIRCUIT_TARGETS, Circuits

Racks = Annotated[int, Field(ge=2, le=2048, description="number of racks")]
Load = Annotated[
    float, Field(ge=0, description="demand of each rack, in what its circuit link carries in the week")
]
Seed = Annotated[int, Field(ge=0, description="seed of the demand")]
MOST_BLOCKS: Final = 10_000_000
"""Blocks of all files of a file system."""


@dataclass(frozen=True, kw_only=True)
class RackFlows:
    """The flows of each rack."""

    large: Annotated[int, Field(ge=0, le=2_047, description="large flows of each rack")] = 4
    small: Annotated[int, Field(ge=0, le=2_047, description="small flows of each rack")] = 12
    large_share: Annotated[float, Field(ge=0, le=1, description="share of the load in large flows")] = 0.7


@spread(flows=RackFlows(), network=GeneratedNetwork(circuit_mbps=100_000.0, shortest_day_us=0.0))
def skewed(
    *,
    racks: Racks = 64,
    load: Load = 1.0,
    flows: RackFlows,
    noise: Annotated[float, Field(ge=0, lt=1, description="each demand is off by up to this share")] = 0.003,
    network: GeneratedNetwork,
    seed: Seed = 0,
) -> Circuits:
    """Generate skewed, sparse demand: each rack sends and receives a few large flows and some small ones.

    Flows are drawn as permutations of the racks without fixed points, which add up.

    source  Liu et al. 2015 (Solstice), evaluation; Venkatakrishnan et al. 2016 (Eclipse), evaluation
    """
    rng = np.random.default_rng(seed)
    total = load * network.circuit_bits
    bits = np.zeros((racks, racks))
    for count, share in ((flows.large, flows.large_share), (flows.small, 1 - flows.large_share)):
        for _ in range(count):
            order = rng.permutation(racks)
            # successive racks of a random cycle, so that none sends to itself
            bits[order, np.roll(order, -1)] += share * total / count
    bits *= 1 + noise * rng.uniform(-1, 1, size=bits.shape)
    return network.problem(bits)


@spread(network=GeneratedNetwork())
def rings(
    *,
    racks: Racks = 8,
    load: Load = 1.0,
    count: Annotated[
        int, Field(ge=1, le=2_047, description="rings: rack i sends to racks i + 1, ..., i + count")
    ] = 1,
    network: GeneratedNetwork,
) -> Circuits:
    """Generate rings of racks, each rack's load divided evenly over them.

    source  Mukerjee 2018, 2.5.3 and 2.5.4
    """
    bits = np.zeros((racks, racks))
    rows = np.arange(racks)
    for shift in range(1, min(count, racks - 1) + 1):
        bits[rows, (rows + shift) % racks] = load * network.circuit_bits / min(count, racks - 1)
    return network.problem(bits)


@spread(network=GeneratedNetwork())
def all_to_all(
    *,
    racks: Racks = 8,
    load: Load = 1.0,
    network: GeneratedNetwork,
) -> Circuits:
    """Generate a shuffle: every rack sends the same to every other.

    source  Mukerjee 2018, 2.4.1
    """
    bits = np.full((racks, racks), load * network.circuit_bits / (racks - 1))
    np.fill_diagonal(bits, 0.0)
    return network.problem(bits)


@spread(network=GeneratedNetwork(circuit_mbps=100_000.0, shortest_day_us=0.0))
def hotspot(
    *,
    racks: Racks = 64,
    load: Load = 0.5,
    hot: Annotated[int, Field(ge=1, le=100_000, description="pairs of racks that are hot")] = 8,
    hot_share: Annotated[float, Field(ge=0, le=1, description="share of all demand between them")] = 0.8,
    network: GeneratedNetwork,
    seed: Seed = 0,
) -> Circuits:
    """Generate hotspots: a few pairs of racks have most of the demand, all others the rest, evenly.

    No rack sends to, or receives from, two hot pairs, as long as there are no more of them than racks;
    the load is that of a rack that is in a hot pair.

    source  Wang et al. 2010 (c-Through) and Farrington et al. 2010 (Helios), for such demand
    """
    rng = np.random.default_rng(seed)
    bits = np.zeros((racks, racks))
    remaining = hot
    while remaining > 0:
        order = rng.permutation(racks)
        some = min(remaining, racks)
        bits[order[:some], np.roll(order, -1)[:some]] += 1.0
        remaining -= some
    even = np.ones((racks, racks)) - np.eye(racks)
    bits = hot_share * bits / bits.sum() + (1 - hot_share) * even / even.sum()
    busiest = max(bits.sum(axis=0).max(), bits.sum(axis=1).max())
    bits *= load * network.circuit_bits / busiest
    return network.problem(bits)


@dataclass(frozen=True, kw_only=True)
class Replicas:
    """The racks of a block's replicas."""

    placement: Annotated[
        Literal["random", "next"],
        Field(description="rack of a block's replicas: any other, drawn for each block, or the next one"),
    ] = "random"
    shift: Annotated[int, Field(ge=1, le=2_047, description="the next rack is i + shift")] = 1


@spread(replicas=Replicas(), network=GeneratedNetwork(bounded=False))
def hdfs(
    *,
    racks: Racks = 8,
    writers: Annotated[
        int, Field(ge=1, le=100_000, description="mappers that write a file each, evenly over racks")
    ] = 64,
    file_mb: Annotated[float, Field(gt=0, description="size of a file, MB of 10^6 bytes")] = 400.0,
    block_mb: Annotated[float, Field(gt=0, description="a file is cut into blocks of this, MB")] = 128.0,
    replicas: Replicas,
    network: GeneratedNetwork,
    seed: Seed = 0,
) -> Circuits:
    """Generate writes to a distributed file system (DFSIO): every block goes once to another rack.

    The second replica goes to another rack, the third stays in it. HDFS draws that rack for each
    block, so that all send to all; reHDFS takes a function of the source rack, so that racks form a
    ring.

    source  Mukerjee 2018, 2.6.1 and 2.6.2
    raises  InputError  more than 10 million blocks
    """
    blocks = int(np.ceil(min(file_mb / block_mb, 2.0**62) - 1e-9))
    if writers * blocks > MOST_BLOCKS:
        raise InputError(
            f"writers {writers:,} of files with {blocks:,} blocks of {block_mb:g} MB write more than "
            f"{MOST_BLOCKS:,} blocks"
        )
    sizes = np.full(blocks, block_mb)
    sizes[-1] = file_mb - block_mb * (blocks - 1)
    source = np.arange(writers) % racks
    step = np.full((writers, blocks), replicas.shift)
    if replicas.placement == "random":
        step = np.random.default_rng(seed).integers(1, racks, (writers, blocks))
    source, target = np.broadcast_arrays(source[:, None], (source[:, None] + step) % racks)
    bits = np.zeros((racks, racks))
    np.add.at(bits, (source, target), sizes * 8e6)
    np.fill_diagonal(bits, 0.0)
    return network.problem(bits)


@spread(network=GeneratedNetwork())
def mixed(
    *,
    racks: Racks = 8,
    count: Annotated[int, Field(ge=1, le=2_047, description="rings that big flows run in")] = 1,
    big_share: Annotated[
        float, Field(ge=0, description="big flows of a rack, in what its circuit link carries in the week")
    ] = 1 / 3,
    small_share: Annotated[
        float, Field(ge=0, description="small flows of a rack, in what its packet link carries in the week")
    ] = 1 / 3,
    network: GeneratedNetwork,
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
            amount = big_share * network.circuit_bits / rings_of
        else:
            amount = small_share * network.packet_mbps * network.window_us / (racks - 1 - rings_of)
        bits[rows, (rows + shift) % racks] = amount
    return network.problem(bits)


@spread(network=GeneratedNetwork(bounded=False))
def replicas(
    *,
    racks: Racks = 8,
    writers: Annotated[int, Field(ge=1, le=2_048, description="racks that write, the first ones")] = 2,
    blocks: Annotated[
        int, Field(ge=1, le=100_000, description="blocks that are written, evenly over the racks that write")
    ] = 16,
    block_mb: Annotated[float, Field(gt=0, description="size of a block, MB of 10^6 bytes")] = 128.0,
    copies: Annotated[
        int, Field(ge=1, le=2_047, description="other racks that each block is written to, drawn for each")
    ] = 2,
    circuit_targets: Annotated[
        int, Field(ge=1, le=MOST_CIRCUIT_TARGETS, description="racks that a sender's circuit reaches at once")
    ] = 2,
    network: GeneratedNetwork,
    seed: Seed = 0,
) -> Circuits:
    """Generate writes to a distributed file system that keeps each replica of a block in a rack of its own.

    The first replica stays in the rack that writes; the others are a multicast, one for all blocks of a rack
    that go to the same racks.

    source  Mukerjee 2018, 2.6.1 (writes of HDFS) and chapter 5 (HDFS over multicast circuits); Apache Hadoop,
            BlockPlacementPolicyRackFaultTolerant (each replica in another rack)
    raises  InputError  more racks that write than racks, or more copies than other racks
    """
    if writers > racks:
        raise InputError(f"writers is {writers:,}, must be at most racks, {racks:,}")
    if copies > racks - 1:
        raise InputError(f"copies is {copies:,}, must be at most the number of other racks, {racks - 1:,}")
    rng = np.random.default_rng(seed)
    bits: dict[tuple[int, ...], float] = {}
    for block in range(blocks):
        source = block % writers
        others = rng.choice(racks - 1, copies, replace=False)
        key = source, *sorted((source + 1 + others) % racks)
        bits[key] = bits.get(key, 0.0) + block_mb * 8e6
    rows = [
        (f"r{source}-" + "-".join(f"r{rack}" for rack in targets), f"r{source}", f"r{target}", amount)
        for (source, *targets), amount in sorted(bits.items())
        for target in targets
    ]
    problem = network.problem(np.zeros((racks, racks)))
    multicasts = pd.DataFrame(rows, columns=["multicast", "source_rack", "target_rack", "bits"])
    return replace(problem, multicasts=multicasts).with_switch(circuit_targets=circuit_targets)


def sample() -> Circuits:
    """Return a tiny problem on which each design reaches all its compiled functions."""
    return skewed(racks=4, large=2, small=1, window_us=200.0, seed=1)


PRESETS: Final = (skewed, rings, all_to_all, hotspot, hdfs, mixed, replicas)
