"""Presets: made-up problems of system `topology`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Final

import numpy as np
import pandas as pd
from pydantic import Field

from planner.arrays import Floats, Ints
from planner.contract.parameters import spread
from planner_models.topology.problem.problem import Fabric

Blocks = Annotated[int, Field(ge=3, le=256, description="number of blocks")]
Ports = Annotated[int, Field(ge=2, le=10_000, description="ports of each block")]
PortMbps = Annotated[float, Field(gt=0, allow_inf_nan=False, description="rate of a port, Mbit/s")]
Load = Annotated[
    float, Field(gt=0, allow_inf_nan=False, description="busiest block's traffic over the rate of its ports")
]
Seed = Annotated[int, Field(ge=0, description="seed of the random numbers")]
BALANCING_ROUNDS: Final = 200


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """Differences of blocks, and of demands from the product of the blocks' sizes."""

    new_share: Annotated[
        float,
        Field(ge=0, le=1, description="share of blocks of a newer generation, with ports twice as fast"),
    ] = 0.5
    spread: Annotated[
        float,
        Field(ge=0, le=3, description="standard deviation of the logarithm of the blocks' sizes of demand"),
    ] = 0.5
    noise: Annotated[
        float, Field(ge=0, le=3, description="standard deviation of the logarithm of each demand beside it")
    ] = 0.3


@dataclass(frozen=True, kw_only=True)
class MoveLimits:
    """Limits of the links that move from the present ones."""

    move_limit: Annotated[
        int | None, Field(ge=0, le=10**9, description="most links made anew; default: as many as wanted")
    ] = None
    step_limit: Annotated[
        int | None, Field(ge=1, le=10**9, description="most links moved in a step; default: as many as fit")
    ] = None


@spread(sizes=Sizes(), limits=MoveLimits())
def gravity(
    *,
    blocks: Blocks = 16,
    ports: Ports = 64,
    port_mbps: PortMbps = 100_000.0,
    sizes: Sizes,
    load: Load = 0.8,
    limits: MoveLimits,
    seed: Seed = 0,
) -> Fabric:
    """Build blocks in a uniform mesh, and demands that follow the product of the blocks' sizes, with noise.

    Sizes and noise are lognormal. Blocks of the newer generation send and receive twice as much.
    """
    random = np.random.default_rng(seed)
    is_new = random.permutation(blocks) < round(sizes.new_share * blocks)
    rate = np.where(is_new, 2.0, 1.0) * port_mbps
    size = random.lognormal(0.0, sizes.spread, blocks) * rate
    demand = np.outer(size, size) * random.lognormal(0.0, sizes.noise, (blocks, blocks))
    return _build(demand, rate, ports, load, **vars(limits))


def balanced(
    *,
    blocks: Blocks = 16,
    ports: Ports = 64,
    port_mbps: PortMbps = 100_000.0,
    noise: Annotated[
        float, Field(ge=0, le=3, description="standard deviation of the logarithm of each demand")
    ] = 1.0,
    load: Load = 0.8,
    seed: Seed = 0,
) -> Fabric:
    """Build blocks that all send and receive the same, in lognormal parts: no block has ports to spare."""
    random = np.random.default_rng(seed)
    demand = random.lognormal(0.0, noise, (blocks, blocks))
    np.fill_diagonal(demand, 0.0)
    for _ in range(BALANCING_ROUNDS):
        demand /= demand.sum(axis=1, keepdims=True)
        demand /= demand.sum(axis=0, keepdims=True)
    return _build(demand, np.full(blocks, port_mbps), ports, load)


def ring(
    *,
    blocks: Blocks = 8,
    ports: Ports = 16,
    port_mbps: PortMbps = 100_000.0,
    neighbour_share: Annotated[
        float, Field(ge=0, le=1, description="share of a block's traffic that goes to the next block")
    ] = 0.7,
    load: Load = 0.8,
    seed: Seed = 0,
) -> Fabric:
    """Build a training job: blocks send most of their traffic around a ring, and the rest to all.

    source  Wang et al. 2023 (TopoOpt): a ring of all-reduce beside all-to-all traffic
    """
    order = np.random.default_rng(seed).permutation(blocks)
    demand = np.full((blocks, blocks), (1 - neighbour_share) / (blocks - 1))
    demand[order, np.roll(order, -1)] += neighbour_share
    return _build(demand, np.full(blocks, port_mbps), ports, load)


def small() -> Fabric:
    """Return a tiny problem with every table: four blocks of two generations, and limits on changes."""
    demand = np.array([[0.0, 6, 1, 1], [2, 0, 1, 3], [1, 1, 0, 1], [1, 2, 1, 0]])
    rate = np.array([100.0, 200.0, 100.0, 200.0])
    return _build(demand, rate, 6, 0.7, move_limit=4, step_limit=2)


def _build(
    demand: Floats,
    port_mbps: Floats,
    ports: int,
    load: float,
    *,
    move_limit: int | None = None,
    step_limit: int | None = None,
) -> Fabric:
    """Return the problem of (n, n) demands in any unit, scaled to the load, and a uniform mesh today."""
    count = len(demand)
    demand = demand.copy()
    np.fill_diagonal(demand, 0.0)
    busy = np.maximum(demand.sum(axis=0), demand.sum(axis=1)) / (ports * port_mbps)
    demand = np.round(demand * (load / busy.max()), 3)
    names = np.array([f"b{row + 1}" for row in range(count)], dtype=object)
    source, target = np.nonzero(demand)
    problem = Fabric(
        blocks=pd.DataFrame({"block": names, "ports": float(ports), "port_mbps": port_mbps}),
        demands=pd.DataFrame(
            {"source": names[source], "target": names[target], "rate_mbps": demand[source, target]}
        ),
    ).with_present(mesh(np.full(count, ports, dtype=np.int64)))
    limit_inputs = {"move_limit": move_limit, "step_limit": step_limit}
    limits = {name: float(value) for name, value in limit_inputs.items() if value is not None}
    return problem.with_limits(**limits) if limits else problem


def mesh(ports: Ints) -> Ints:
    """Return (n, n) links of a uniform mesh: each two blocks have equally many, as far as ports allow.

    Links that are left over after equal shares go round by distance on the circle of blocks.
    """
    count = len(ports)
    equal = int(ports.min()) // (count - 1)
    links: Ints = np.full((count, count), equal, dtype=np.int64)
    np.fill_diagonal(links, 0)
    free_ports = ports - links.sum(axis=1)
    while True:
        before = free_ports.sum()
        for distance in range(1, count // 2 + 1):
            for block in range(count):
                other = (block + distance) % count
                if (
                    block != other
                    and free_ports[block] > 0
                    and free_ports[other] > 0
                    and (2 * distance != count or block < other)
                ):
                    links[block, other] += 1
                    links[other, block] += 1
                    free_ports[block] -= 1
                    free_ports[other] -= 1
        if free_ports.sum() == before:
            return links


PRESETS: Final[dict[str, Callable[..., Fabric]]] = {
    "gravity": gravity,
    "balanced": balanced,
    "ring": ring,
    "small": small,
}
