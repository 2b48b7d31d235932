"""Observations of a controller of multicast groups: members of a while ago, and measured rates."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from pydantic import Field

from planner.arrays import Ints
from planner.contract.degradation import AgeS, Noise, Seed, add_noise, average_within
from planner.errors import InputError
from planner_models.multicast.problem import churn
from planner_models.multicast.problem.problem import Multicast


def observe_groups(
    problem: Multicast,
    *,
    age_s: AgeS = 0.0,
    noise: Noise = 0.0,
    granularity_groups: Annotated[
        float,
        Field(ge=0, multiple_of=1, description="rates are observed in sums over so many groups of a tenant"),
    ] = 0.0,
    turnover_per_s: Annotated[
        float, Field(ge=0, description="joins and leaves a second, divided by the number of members")
    ] = 0.01,
    seed: Seed = 0,
) -> Multicast:
    """Return the true network with its groups as hosts and counters reported them.

    Age: members leave at random, and for each another host of the tenant joins, drawn uniformly; this
    process is reversible, so the past is drawn as the future would be. A turnover of 0.01 is the 1,000
    events a second in each of 48 pods that the paper assumes, over 100,000 groups of 51 members. Noise:
    every rate times a lognormal factor of median 1. Granularity: counters cover blocks of addresses, one for
    so many consecutive groups of a tenant; each group is assumed to send an equal part.

    raises  InputError for an age without the table tenants, or with members that are not in it
    source  "Scaling IP Multicast on Datacenter Topologies", 2.4 (reports), 4.3.2 (turnover)
    """
    observed = problem
    if age_s > 0:
        stay = np.exp(-turnover_per_s / 2 * age_s)  # half of the events are leaves
        observed = _replace_members(problem, stay, np.random.default_rng([seed, 0]))
    rate = add_noise(observed.rate_mbps, noise, np.random.default_rng([seed, 1]))
    if granularity_groups > 1:
        rate = average_within(rate, _group_blocks(observed, int(granularity_groups)))
    return observed if rate is observed.rate_mbps else observed.with_rates(rate)


def _replace_members(problem: Multicast, stay: float, rng: np.random.Generator) -> Multicast:
    """Return the problem where each member stays with that probability, or another of the tenant replaces it.

    A replaced member may be drawn again: it left and joined again.
    """
    hosts, first, tenant = churn.tenant_hosts(problem)
    members = churn.list_members(problem)
    member, start = members.host, members.start.tolist()
    stays = rng.random(len(member)) < stay
    if stays.all():
        return problem
    new_members = member.astype(np.int64)
    for group, owner in enumerate(tenant.tolist()):
        here = slice(start[group], start[group + 1])
        staying = member[here][stays[here]]
        gone = start[group + 1] - start[group] - len(staying)
        if gone:
            others = np.setdiff1d(hosts[first[owner] : first[owner + 1]], staying)
            if len(others) < gone:
                name = problem.groups["group"].iloc[group]
                raise InputError(f"members: group '{name}' has a member that is no host of its tenant")
            new_members[here][~stays[here]] = rng.choice(others, size=gone, replace=False)
    group_of = np.repeat(np.arange(len(tenant)), problem.member_counts)
    return problem.with_members(group_of, new_members)


def _group_blocks(problem: Multicast, size: int) -> Ints:
    """Return the block of each group, (G,): so many consecutive groups of a tenant."""
    tenant = np.zeros(len(problem.groups), dtype=np.int64)
    if "tenant" in problem.groups:
        tenant = problem.groups["tenant"].factorize()[0].astype(np.int64)
    order = np.argsort(tenant, kind="stable")
    sorted_ = tenant[order]
    nth = np.arange(len(tenant)) - np.searchsorted(sorted_, sorted_)
    block = np.empty(len(tenant), dtype=np.int64)
    block[order] = np.unique(np.column_stack([sorted_, nth // size]), axis=0, return_inverse=True)[1].ravel()
    return block
