"""Observations of a controller of multicast groups: members of a while ago, and measured rates.

The outcome of a plan as hosts join and leave: switches carry it on among the true members.

Signalling of system `multicast`: messages and bytes between switches, hosts and the controller.

A message is what one sender sends one receiver, of any length, as reports of hosts and messages of
controllers are batched. Addresses of sender and receiver are not counted.

source  "Scaling IP Multicast on Datacenter Topologies", 2.1 (IGMP and PIM), 2.4 and 3.1.2 (controller),
        3.2.1 (rewriting)
"""

from __future__ import annotations

from typing import Annotated, Final

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from planner.arrays import Bools, Ints, distinct
from planner.contract.degradation import AgeS, Noise, Seed, add_noise, average_within
from planner.contract.signalling import FIGURE, NAME, Signalling
from planner.errors import InputError
from planner_models.multicast.plan.adaptation import adapt_headers, adapt_plan
from planner_models.multicast.plan.plan import Channels
from planner_models.multicast.plan.switch_groups import group_assignment, groups_in_pods
from planner_models.multicast.problem import churn
from planner_models.multicast.problem.problem import Multicast
from planner_models.multicast.problem.topology import find_rows

RULE_BYTES: Final = NAME + FIGURE  # an address, and ports as a mask
MAX_TABLE_PAIRS: Final = 1 << 28
"""Pairs of edge switch and group, a bit each, up to which a table of all is faster than sorting."""


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


def realize(truth: Multicast, observed: Multicast, plan: Channels) -> Channels:
    """Return the plan as it plays out among the true members; true rates change nothing.

    All groups of the plan must have the same number of copies.
    """
    if observed.members is truth.members:
        return plan
    if plan.headers is not None and len(plan.headers):
        return adapt_headers(truth, plan)
    if not len(plan.partitions):
        return plan
    return adapt_plan(truth, plan, before=observed)


def count_joins(problem: Multicast, plan: Channels) -> Signalling:  # noqa: ARG001
    """Count joins: from hosts to their edge switch, and from switches to those above them.

    As any switch above may get the group's packets, all receive joins, with free entries or not.
    """
    wires, hosts = problem.wiring, len(distinct(problem.host_of))
    edge, group, _ = problem.at_edge
    above = np.bincount(wires.aggregation_pod, minlength=wires.pods)
    of_group, pod, _ = groups_in_pods(problem)
    stored = np.zeros((len(problem.groups), wires.pods), dtype=bool)
    stored[of_group, pod] = True
    up = stored[group, wires.edge_pod[edge]]  # others need no switch above
    to_aggregation = above[wires.edge_pod[edge[up]]]
    speaking = above[wires.edge_pod[distinct(edge[up])]]
    across = (np.diff(problem.below.start) > 1)[of_group]
    links = np.bincount(wires.aggregation_pod, weights=wires.up.sum(axis=1), minlength=wires.pods)
    to_core = links[pod[across]]
    between = links[distinct(pod[across])]
    rows = len(problem.members) + int(to_aggregation.sum()) + int(to_core.sum())
    return Signalling(messages=hosts + int(speaking.sum()) + int(between.sum()), bytes=rows * NAME)


def count_controller(problem: Multicast, plan: Channels) -> Signalling:
    """Count reports of members and rates to a controller, and its rules and addresses.

    Every group's rate is reported once. A tenant receives the addresses of its groups in one message
    (without tenants, each group is its own). Where entries are shared, the switches above and the
    switches or hosts below receive the addresses to rewrite, a local address for the group's.
    """
    wires, groups = problem.wiring, len(problem.groups)
    hosts = len(distinct(problem.host_of))
    reports = len(problem.members) * NAME + groups * (NAME + FIGURE)
    tenants = problem.groups["tenant"].nunique() if "tenant" in problem.groups else groups
    addresses = groups * 2 * NAME
    used = plan.entries["entries"].to_numpy()
    rewritten, receives = _count_rewrites(problem, plan)
    switch = find_rows(wires.switches, plan.entries["switch"][used > 0])
    receives[: len(wires.switches)][switch] = True
    return Signalling(
        messages=hosts + tenants + int(receives.sum()),
        bytes=reports + addresses + int(used.sum()) * RULE_BYTES + rewritten * 2 * NAME,
    )


def count_headers(problem: Multicast, plan: Channels) -> Signalling:
    """Count reports of members and rates to a controller, its entries, and headers to sources.

    A source, one for each group, receives the header of its packets; BIER's source is an edge switch.
    """
    hosts, groups = len(distinct(problem.host_of)), len(problem.groups)
    reports = len(problem.members) * NAME + groups * (NAME + FIGURE)
    used = plan.entries["entries"].to_numpy()
    headers = plan.headers
    count = 0 if headers is None else len(headers)
    size = 0.0 if headers is None else float(headers["header_bytes"].sum())
    return Signalling(
        messages=hosts + count + int((used > 0).sum()),
        bytes=reports + count * NAME + int(size) + int(used.sum()) * RULE_BYTES,
    )


def _count_rewrites(problem: Multicast, plan: Channels) -> tuple[int, Bools]:
    """Return the number of addresses to rewrite, and whether each switch, then host, rewrites."""
    wires, count = problem.wiring, len(problem.groups)
    cores, first = wires.layer_starts
    receives = np.zeros(len(wires.switches) + len(problem.hosts), dtype=bool)
    if not len(plan.meta_groups):
        return 0, receives
    switch = find_rows(wires.switches, plan.meta_groups["switch"])
    group = find_rows(problem.group_names, plan.meta_groups["group"])
    partition, copies = group_assignment(problem, plan.partitions)
    of_group, pod, _ = groups_in_pods(problem)
    in_pod = pod * count + of_group
    total = 0
    for ra in distinct(copies[group]).tolist():
        held = problem.distribution(ra)
        is_here = copies[group] == ra
        # above edge switches: the aggregation switches of the pod that have the group
        here = is_here & (switch >= first)
        here[here] = np.isin(wires.edge_pod[switch[here] - first] * count + group[here], in_pod)
        edge, who = switch[here] - first, group[here]
        used = np.zeros((wires.pods, held.partitions), dtype=np.int64)
        np.add.at(used, (wires.edge_pod[edge], partition[who]), 1)
        rewrites = held.aggregation * used[wires.aggregation_pod]
        receives[cores:first] |= rewrites.any(axis=1)
        total += int(rewrites.sum())
        # above aggregation switches: the cores that hold it and have a link
        above, who = switch[is_here & (switch < first)] - cores, group[is_here & (switch < first)]
        used = np.zeros((len(wires.aggregations), held.partitions), dtype=np.int64)
        np.add.at(used, (above, partition[who]), 1)
        rewrites = held.core * (wires.up.T.astype(np.int64) @ used)
        receives[:cores] |= rewrites.any(axis=1)
        total += int(rewrites.sum())
    # below edge switches: member hosts; below aggregation switches: edge switches with members
    pairs = ((switch - first) * count + group)[switch >= first]
    member_pairs = problem.edge_of_host[problem.host_of] * count + problem.group_of
    if len(wires.edges) * count <= MAX_TABLE_PAIRS:
        rewrites_at = np.zeros(len(wires.edges) * count // 8 + 1, dtype=np.uint8)  # a bit of each pair
        np.bitwise_or.at(rewrites_at, pairs >> 3, _bit_of(pairs))
        member = (rewrites_at[member_pairs >> 3] & _bit_of(member_pairs)) > 0
    else:
        member = np.isin(member_pairs, pairs)
    receives[len(wires.switches) :][problem.host_of[member]] = True
    edge, who, _ = problem.at_edge
    at_above = switch[switch < first] - cores
    times = np.zeros((wires.pods, count), dtype=np.int64)
    np.add.at(times, (wires.aggregation_pod[at_above], group[switch < first]), 1)
    reached = times[wires.edge_pod[edge], who]
    receives[first : len(wires.switches)][edge[reached > 0]] = True
    return total + int(member.sum()) + int(reached.sum()), receives


def _bit_of(pairs: Ints) -> NDArray[np.uint8]:
    """Return the bit of each pair in its byte of a table of bits."""
    return np.asarray(np.uint8(1) << (pairs & 7).astype(np.uint8), dtype=np.uint8)
