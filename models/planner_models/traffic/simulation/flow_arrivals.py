"""Arrival processes of flows: start times, demands and sizes."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from planner.errors import InputError
from planner_models.traffic.problem.problem import Traffic
from planner_models.traffic.simulation.flow_sizes import SizeDistribution

MBIT_PER_BYTE: Final = 8e-6  # Mbit of a byte
DRAW_BLOCK: Final = 256  # random numbers drawn at once


@dataclass(frozen=True, kw_only=True)
class ClosedLoop:
    """Each source of demands always has the same number of flows: when one ends, the next starts.

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
    """Flows of each demand arrive as a Poisson process, with `load` times its rate on average."""

    load: float = 1.0

    def __post_init__(self) -> None:
        if not (0 < self.load < math.inf):
            raise InputError(f"load is {self.load}, must be greater than 0")


Arrivals = ClosedLoop | Poisson

ONE_FLOW_PER_SOURCE: Final = ClosedLoop()


def poisson_flows(
    problem: Traffic, sizes: SizeDistribution, load: float, seed: int
) -> Iterator[tuple[float, int, float]]:
    """Yield time, demand and size in bytes of each arriving flow, without end."""
    random = np.random.default_rng([seed, 1])
    rate = problem.rate_mbps * load / (sizes.mean_bytes() * MBIT_PER_BYTE)  # flows a second
    chance = rate / rate.sum()
    now = 0.0
    while True:
        times = now + np.cumsum(random.exponential(1.0 / rate.sum(), DRAW_BLOCK))
        demands = random.choice(len(rate), size=DRAW_BLOCK, p=chance)
        yield from zip(
            times.tolist(), demands.tolist(), sizes.sample(random, DRAW_BLOCK).tolist(), strict=True
        )
        now = float(times[-1])


def closed_loop_flows(
    problem: Traffic, sizes: SizeDistribution, source: int, seed: int
) -> Iterator[tuple[int, float]]:
    """Yield demand and size in bytes of each flow of one source, without end."""
    random = np.random.default_rng([seed, 2, source])
    demands_of = np.flatnonzero((problem.source == source) & (problem.rate_mbps > 0))
    chance = problem.rate_mbps[demands_of] / problem.rate_mbps[demands_of].sum()
    while True:
        demands = random.choice(demands_of, size=DRAW_BLOCK, p=chance)
        yield from zip(demands.tolist(), sizes.sample(random, DRAW_BLOCK).tolist(), strict=True)
