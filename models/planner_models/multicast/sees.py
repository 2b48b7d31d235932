"""What a controller of multicast groups believes: who is a member of what, and how much is sent."""

from __future__ import annotations

import copy
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from planner.errors import InputError
from planner_models.multicast import dynamics
from planner_models.multicast.problem import Multicast


def told(
    problem: Multicast,
    *,
    age_s: Annotated[
        float, Field(ge=0, description="how old the memberships are that the controller decides on")
    ] = 0.0,
    noise: Annotated[
        float, Field(ge=0, description="standard deviation of the logarithm of each group's measured rate")
    ] = 0.0,
    grain_groups: Annotated[
        float,
        Field(ge=0, multiple_of=1, description="rates are told in sums over so many groups of a tenant"),
    ] = 0.0,
    turnover_per_s: Annotated[
        float, Field(ge=0, description="joins and leaves a second, over members there are")
    ] = 0.01,
    seed: Annotated[int, Field(ge=0, description="seed of who came and went, and of noise")] = 0,
) -> Multicast:
    """The network as it is, and its groups as hosts and counters reported them.

    Age: members leave at random, and for each another host of the tenant joins, drawn uniformly; this
    runs alike both ways, so the past is drawn as the future would be. A turnover of 0.01 is the 1,000
    events a second in each of 48 pods that the paper reckons with, over 100,000 groups of 51 members.
    Noise: every rate times a lognormal factor of median 1. Grain: counters are of blocks of addresses,
    one for so many groups of a tenant, one after the other; each is taken to send its equal part.

    raises  InputError for an age without the table tenants, or with members that are not in it
    source  "Scaling IP Multicast on Datacenter Topologies", 2.4 (who is told), 4.3.2 (turnover)
    """
    believed = problem
    if age_s > 0:
        stay = np.exp(-turnover_per_s / 2 * age_s)  # half of the events are leaves
        believed = _replaced(problem, stay, np.random.default_rng([seed, 0]))
    rate = believed.rate_mbps
    if noise > 0:
        rate = rate * np.random.default_rng([seed, 1]).lognormal(0.0, noise, size=len(rate))
    if grain_groups > 1:
        rate = _in_blocks(believed, rate, int(grain_groups))
    return believed if rate is believed.rate_mbps else _with_rates(believed, rate)


def _replaced(problem: Multicast, stay: float, rng: np.random.Generator) -> Multicast:
    """Each member stays with that probability; in place of the others come hosts of the group's tenant.

    Who has gone may be among those who come: he left and joined again.
    """
    hosts, first, tenant = dynamics.tenant_hosts(problem)
    order = np.argsort(problem.group_of, kind="stable")
    member = problem.host_of[order]
    start = np.concatenate([[0], np.cumsum(problem.member_counts)]).tolist()
    stays = rng.random(len(member)) < stay
    if stays.all():
        return problem
    found = member.astype(np.int64)
    for group, whose in enumerate(tenant.tolist()):
        here = slice(start[group], start[group + 1])
        kept = member[here][stays[here]]
        gone = start[group + 1] - start[group] - len(kept)
        if gone:
            others = np.setdiff1d(hosts[first[whose] : first[whose + 1]], kept)
            if len(others) < gone:
                name = problem.groups["group"].iloc[group]
                raise InputError(f"members: group '{name}' has a member that is no host of its tenant")
            found[here][~stays[here]] = rng.choice(others, size=gone, replace=False)
    return problem.with_members(problem.group_of[order].astype(np.int64), found)


def _in_blocks(problem: Multicast, rate: NDArray[np.float64], size: int) -> NDArray[np.float64]:
    """(G,) the mean rate of each group's block of so many groups of its tenant, in their order."""
    tenant = np.zeros(len(rate), dtype=np.int64)
    if "tenant" in problem.groups:
        tenant = problem.groups["tenant"].factorize()[0].astype(np.int64)
    order = np.argsort(tenant, kind="stable")
    sorted_ = tenant[order]
    nth = np.arange(len(rate)) - np.searchsorted(sorted_, sorted_)
    block = np.empty(len(rate), dtype=np.int64)
    block[order] = np.unique(np.column_stack([sorted_, nth // size]), axis=0, return_inverse=True)[1].ravel()
    return np.asarray((np.bincount(block, weights=rate) / np.bincount(block))[block], dtype=np.float64)


def _with_rates(problem: Multicast, rate_mbps: NDArray[np.float64]) -> Multicast:
    other = copy.copy(problem)  # what was worked out of members holds on
    other.__dict__.pop("rate_mbps", None)
    object.__setattr__(other, "groups", problem.groups.assign(rate_mbps=rate_mbps))
    return other
