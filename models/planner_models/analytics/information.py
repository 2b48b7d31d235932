"""Information of control planes: observations of bandwidth that are late, noisy or coarse; and signalling.

Messages between sites, uplinks and the controller are counted for all intervals of a plan.
"""

from __future__ import annotations

from typing import Annotated, Final

import numpy as np
from pydantic import Field

from planner.arrays import Floats
from planner.contract.degradation import AgeS, Noise, Seed, add_noise, average_within
from planner.contract.signalling import FIGURE, NAME, Signalling
from planner_models.analytics.plan.plan import Levels
from planner_models.analytics.problem.problem import Analytics

GranularityLinks = Annotated[
    float,
    Field(
        ge=0,
        multiple_of=1,
        description="uplinks of so many sites in turn are observed by their mean bandwidth; 0: each one",
    ),
]
PRICE_ROUNDS: Final = 160
"""Rounds of an interval in which uplinks send prices and get their loads."""
PROPOSALS: Final = 150
"""Answers that sites are asked to fill their uplinks beside, in an interval."""


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


def count_reports(problem: Analytics, plan: Levels) -> Signalling:  # noqa: ARG001 - the signature of `signalling`
    """Return the signalling of a controller that knows all and decides all.

    In each interval, an uplink reports its bandwidth and a site the volume of each cube; the controller
    sends a site its level of each query.
    """
    intervals, sites, links = _sizes(problem)
    volumes = len(problem.volume) * (NAME + 2 * FIGURE)
    levels = _count_levels(problem) * 2 * NAME
    return Signalling(
        messages=intervals * (links + 2 * sites), bytes=intervals * links * (NAME + FIGURE) + volumes + levels
    )


def count_prices(problem: Analytics, plan: Levels) -> Signalling:  # noqa: ARG001 - the signature of `signalling`
    """Return the signalling of prices and proposals, as many as there may be.

    In each interval, a site reports the volume of each cube. In each round, an uplink sends its price and
    gets its load. Then answers are proposed: a site gets those of a proposal, and sends the value that its
    other queries add beside them. At last, it gets its level of each query.
    """
    intervals, sites, links = _sizes(problem)
    rounds, proposals = intervals * links * PRICE_ROUNDS, intervals * sites * PROPOSALS
    volumes = len(problem.volume) * (NAME + 2 * FIGURE)
    levels = _count_levels(problem) * 2 * NAME
    return Signalling(
        messages=2 * (rounds + proposals + intervals * sites),
        bytes=2 * (rounds + proposals) * (NAME + FIGURE) + volumes + levels,
    )


def count_coarsest(problem: Analytics, plan: Levels) -> Signalling:  # noqa: ARG001 - the signature of `signalling`
    """Return the signalling of sites that report the level that they would send for each query.

    In each interval, a site sends a message with them and gets one with the coarsest level of others.
    """
    intervals, sites, _ = _sizes(problem)
    shared = int(problem.has_data[:, ~problem.is_sum].sum())
    return Signalling(messages=2 * intervals * sites, bytes=2 * intervals * shared * 2 * NAME)


def _sizes(problem: Analytics) -> tuple[int, int, int]:
    return len(problem.interval_numbers), len(problem.site_names), len(problem.link_names)


def _count_levels(problem: Analytics) -> int:
    """Return the number of levels of sites, in all intervals."""
    stored = problem.has_data.sum(axis=0) * (problem.source_of < 0)
    return int((problem.is_asked @ stored).sum())
