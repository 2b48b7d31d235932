"""What switches, hosts and the controller of system `multicast` tell each other for all groups at once.

A message is what one tells another, however much it says, as reports of hosts and messages of
controllers are batched. What a message says of its sender and receiver is not counted.

source  "Scaling IP Multicast on Datacenter Topologies", 2.1 (IGMP and PIM), 2.4 and 3.1.2 (controller),
        3.2.1 (rewriting)
"""

from __future__ import annotations

from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from planner.exchange import FIGURE, NAME, Exchange
from planner_models.multicast.plan import Channels
from planner_models.multicast.problem import Multicast
from planner_models.multicast.stored import in_pods, rows_of

RULE: Final = NAME + FIGURE  # an address, and ports as a mask

TABLE: Final = 1 << 28
"""Pairs of edge switch and group up to which a table of all of them, a byte each, is quicker than sorting."""


def joins(problem: Multicast, plan: Channels) -> Exchange:  # noqa: ARG001
    """Hosts tell their edge switch the groups they join, and switches those above them.

    As any switch above may get the group's packets, all are told, whether they have room or not.
    """
    wires, hosts = problem.wiring, len(np.unique(problem.host_of))
    edge, group, _ = problem.at_edge
    above = np.bincount(wires.aggregation_pod, minlength=wires.pods)
    of_group, pod, _ = in_pods(problem)
    stored = np.zeros((len(problem.groups), wires.pods), dtype=bool)
    stored[of_group, pod] = True
    up = stored[group, wires.edge_pod[edge]]  # others need no switch above
    to_aggregation = above[wires.edge_pod[edge[up]]]
    speaking = above[wires.edge_pod[np.unique(edge[up])]]
    across = (np.diff(problem.below.start) > 1)[of_group]
    links = np.bincount(wires.aggregation_pod, weights=wires.up.sum(axis=1), minlength=wires.pods)
    to_core = links[pod[across]]
    between = links[np.unique(pod[across])]
    rows = len(problem.members) + int(to_aggregation.sum()) + int(to_core.sum())
    return Exchange(messages=hosts + int(speaking.sum()) + int(between.sum()), bytes=rows * NAME)


def central(problem: Multicast, plan: Channels) -> Exchange:
    """Hosts tell a controller the groups they join and what they send; it answers with rules and addresses.

    Every group's rate is reported once. A tenant is told the addresses of its groups, by one message
    (without tenants, each group is one). Where entries are shared, the switches above and the
    switches or hosts below are told what to rewrite, a new address for the group's.
    """
    wires, groups = problem.wiring, len(problem.groups)
    hosts = len(np.unique(problem.host_of))
    reports = len(problem.members) * NAME + groups * (NAME + FIGURE)
    tenants = problem.groups["tenant"].nunique() if "tenant" in problem.groups else groups
    addresses = groups * 2 * NAME
    used = plan.entries["entries"].to_numpy()
    rewritten, told = _rewritten(problem, plan)
    switch = rows_of(wires.switches, plan.entries["switch"][used > 0])
    told[: len(wires.switches)][switch] = True
    return Exchange(
        messages=hosts + tenants + int(told.sum()),
        bytes=reports + addresses + int(used.sum()) * RULE + rewritten * 2 * NAME,
    )


def _rewritten(problem: Multicast, plan: Channels) -> tuple[int, NDArray[np.bool_]]:
    """Addresses to rewrite, over all who do, and (switches, then hosts) who does."""
    wires, count = problem.wiring, len(problem.groups)
    cores, first = len(wires.cores), len(wires.switches) - len(wires.edges)
    told = np.zeros(len(wires.switches) + len(problem.hosts), dtype=bool)
    if not len(plan.meta_groups):
        return 0, told
    switch = rows_of(wires.switches, plan.meta_groups["switch"])
    group = rows_of(problem.group_names, plan.meta_groups["group"])
    row = rows_of(problem.group_names, plan.partitions["group"])
    partition, copies = np.zeros((2, count), dtype=np.int64)
    partition[row] = plan.partitions["partition"].to_numpy(np.int64)
    copies[row] = plan.partitions["copies"].to_numpy(np.int64)
    of_group, pod, _ = in_pods(problem)
    in_pod = pod * count + of_group
    total = 0
    for ra in np.unique(copies[group]).tolist():
        held = problem.distribution(ra)
        mine = copies[group] == ra
        # above edge switches: the aggregation switches of the pod that have the group
        here = mine & (switch >= first)
        here[here] = np.isin(wires.edge_pod[switch[here] - first] * count + group[here], in_pod)
        edge, who = switch[here] - first, group[here]
        used = np.zeros((wires.pods, held.partitions), dtype=np.int64)
        np.add.at(used, (wires.edge_pod[edge], partition[who]), 1)
        asked = held.aggregation * used[wires.aggregation_pod]
        told[cores:first] |= asked.any(axis=1)
        total += int(asked.sum())
        # above aggregation switches: the cores that hold it and have a link
        above, who = switch[mine & (switch < first)] - cores, group[mine & (switch < first)]
        used = np.zeros((len(wires.aggregations), held.partitions), dtype=np.int64)
        np.add.at(used, (above, partition[who]), 1)
        asked = held.core * (wires.up.T.astype(np.int64) @ used)
        told[:cores] |= asked.any(axis=1)
        total += int(asked.sum())
    # below edge switches: member hosts; below aggregation switches: edge switches with members
    pairs = ((switch - first) * count + group)[switch >= first]
    asked_at = problem.edge_of_host[problem.host_of] * count + problem.group_of
    look_up: Literal["table"] | None = "table" if len(wires.edges) * count <= TABLE else None
    member = np.isin(asked_at, pairs, kind=look_up)
    told[len(wires.switches) :][problem.host_of[member]] = True
    edge, who, _ = problem.at_edge
    at_above = switch[switch < first] - cores
    times = np.zeros((wires.pods, count), dtype=np.int64)
    np.add.at(times, (wires.aggregation_pod[at_above], group[switch < first]), 1)
    reached = times[wires.edge_pod[edge], who]
    told[first : len(wires.switches)][edge[reached > 0]] = True
    return total + int(member.sum()) + int(reached.sum()), told
