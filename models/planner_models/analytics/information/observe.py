"""Observations of bandwidth that are late, noisy or coarse."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from pydantic import Field

from planner.arrays import Floats
from planner.contract.degradation import AgeS, Noise, Seed, add_noise, average_within
from planner_models.analytics.problem.problem import Analytics

GranularityLinks = Annotated[
    float,
    Field(
        ge=0,
        multiple_of=1,
        description="uplinks of so many sites in turn are observed by their mean bandwidth; 0: each one",
    ),
]


def observe_bandwidth(
    problem: Analytics,
    *,
    age_s: AgeS = 0.0,
    noise: Noise = 0.0,
    granularity_links: GranularityLinks = 0.0,
    seed: Seed = 0,
) -> Analytics:
    """Return the problem with the bandwidth of uplinks as it is estimated; sites know their own volumes.

    Age: the bandwidth of the interval of a time before. Noise: each value times a lognormal factor of median
    1. Granularity: sites of consecutive rows are observed as one group; each is assumed to have the group's
    bandwidth in proportion to its mean in time.
    """
    if age_s == 0 and noise == 0 and granularity_links <= 1:
        return problem
    start = problem.start_s
    row = np.clip(np.searchsorted(start, start - age_s, side="right") - 1, 0, len(start) - 1)
    capacity = problem.capacity_mbps[row]
    if granularity_links > 1:
        capacity = _average_groups(problem, capacity, int(granularity_links))
    return problem.with_capacity(add_noise(capacity, noise, np.random.default_rng(seed)), is_valid=True)


def _average_groups(problem: Analytics, capacity: Floats, size: int) -> Floats:
    """Return the capacity of each uplink (K, S + G) by the state of its group: its part of the mean."""
    sites = len(problem.site_names)
    mean = capacity[:, :sites].mean(axis=0)
    state = np.divide(capacity[:, :sites], mean, out=np.ones_like(capacity[:, :sites]), where=mean > 0)
    block = np.arange(sites) // size
    averaged = capacity.copy()
    averaged[:, :sites] = average_within(state.T, block, mean).T * mean
    return averaged
