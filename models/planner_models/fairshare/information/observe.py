"""Observations of demand: reports of nodes that are old, measured with noise, or of groups of partitions."""

from __future__ import annotations

from typing import Annotated, Final

import numpy as np
from pydantic import Field

from planner.contract.degradation import AgeS, Noise, Seed, add_noise, average_within, drift
from planner_models.fairshare.problem.problem import SharedStore
from planner_models.fairshare.problem.schema import LEAST_KOPS

MEMORY_S: Final = 600.0
"""Time in which the autocorrelation of a partition's demand falls to 1/e."""
SPREAD: Final = 0.5
"""Standard deviation of the logarithm of a partition's demand over time."""

Granularity = Annotated[
    int,
    Field(ge=0, description="partitions of a tenant that are reported together, as their mean; 0 or 1: each"),
]


def observe_demand(
    problem: SharedStore,
    *,
    age_s: AgeS = 0.0,
    noise: Noise = 0.0,
    granularity_partitions: Granularity = 0,
    seed: Seed = 0,
) -> SharedStore:
    """Return the problem with the demand of partitions as nodes report it."""
    if age_s == 0 and noise == 0 and granularity_partitions <= 1:
        return problem
    rng = np.random.default_rng(seed)
    demand = drift(problem.demand_kops, age=age_s, memory=MEMORY_S, spread=SPREAD, rng=rng)
    demand = add_noise(demand, noise, rng)
    if granularity_partitions > 1:
        first = np.full(len(problem.tenants), len(demand))
        np.minimum.at(first, problem.tenant, np.arange(len(demand)))
        order = np.argsort(problem.tenant, kind="stable")
        owner = problem.tenant[order]
        rank = np.arange(len(order)) - np.searchsorted(owner, owner)
        groups = np.zeros(len(demand), dtype=np.int64)
        groups[order] = rank // granularity_partitions
        keys = problem.tenant * (groups.max() + 1) + groups
        block = np.unique(keys, return_inverse=True)[1].astype(np.int64)
        demand = average_within(demand, block)
    return problem.with_demand(
        np.where(demand < LEAST_KOPS, 0.0, demand) if demand.max() >= LEAST_KOPS else problem.demand_kops
    )
