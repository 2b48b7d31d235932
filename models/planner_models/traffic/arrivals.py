"""When flows come, between whom, and how large they are."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from planner.errors import InputError
from planner_models.traffic.flow_sizes import Sizes
from planner_models.traffic.problem import Traffic

MBIT: Final = 8e-6  # of a byte
BLOCK: Final = 256  # random numbers drawn at a time


@dataclass(frozen=True, kw_only=True)
class ClosedLoop:
    """Each source of demands always has so many flows: when one ends, the next starts.

    A new flow goes to one of the source's targets, drawn in proportion to the demands' rates. The
    n-th flow of a source has the same size and target whatever happens to the others, so designs
    are compared on the same flows.
    """

    flows_per_source: int = 1

    def __post_init__(self) -> None:
        if self.flows_per_source < 1:
            raise InputError(f"flows_per_source is {self.flows_per_source}, must be at least 1")


@dataclass(frozen=True, kw_only=True)
class Poisson:
    """Flows of each demand come at random times, and bring `load` times its rate on average."""

    load: float = 1.0

    def __post_init__(self) -> None:
        if not (0 < self.load < math.inf):
            raise InputError(f"load is {self.load}, must be greater than 0")


Arrivals = ClosedLoop | Poisson

ONE_EACH: Final = ClosedLoop()


def poisson(problem: Traffic, sizes: Sizes, load: float, seed: int) -> Iterator[tuple[float, int, float]]:
    """Time, demand and size in bytes of each flow that comes, without end."""
    random = np.random.default_rng([seed, 1])
    rate = problem.rate_mbps * load / (sizes.mean_bytes() * MBIT)  # flows a second
    chance = rate / rate.sum()
    now = 0.0
    while True:
        times = now + np.cumsum(random.exponential(1.0 / rate.sum(), BLOCK))
        demands = random.choice(len(rate), size=BLOCK, p=chance)
        yield from zip(times.tolist(), demands.tolist(), sizes.sample(random, BLOCK).tolist(), strict=True)
        now = float(times[-1])


def following(problem: Traffic, sizes: Sizes, source: int, seed: int) -> Iterator[tuple[int, float]]:
    """Demand and size in bytes of each flow of one source, without end."""
    random = np.random.default_rng([seed, 2, source])
    mine = np.flatnonzero((problem.source == source) & (problem.rate_mbps > 0))
    chance = problem.rate_mbps[mine] / problem.rate_mbps[mine].sum()
    while True:
        demands = random.choice(mine, size=BLOCK, p=chance)
        yield from zip(demands.tolist(), sizes.sample(random, BLOCK).tolist(), strict=True)
