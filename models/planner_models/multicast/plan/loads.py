"""Traffic of groups with entries at switches, and on the links between them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd

from planner.arrays import Floats, Ints, distinct
from planner_models.multicast.plan.meta_groups import Masks
from planner_models.multicast.plan.metrics import find_shared_entries
from planner_models.multicast.plan.plan import Channels
from planner_models.multicast.plan.switch_groups import (
    StoredGroups,
    group_assignment,
    groups_at_aggregations,
    groups_at_edges,
)
from planner_models.multicast.problem.problem import Multicast


@dataclass(frozen=True, kw_only=True, eq=False)
class GroupsAtSwitches:
    """Groups at the switches of one layer, one row for each pair that the plan stores.

    switch  counted within the layer
    group   row of the group
    ports   (rows,) links downwards that its packets take, also where only other groups of its entry are
    share   (rows,) part of its packets that pass this switch: several hold its partition
    sharing (rows,) groups of its entry, itself included
    """

    switch: Ints
    group: Ints
    ports: Ints
    share: Floats
    sharing: Ints

    def traffic_mbps(self, problem: Multicast) -> Floats:
        """Return the traffic that the switch sends down for each pair, (rows,)."""
        sent: Floats = problem.rate_mbps[self.group] * self.share * self.ports
        return sent

    def of_switch(self, switch: int) -> pd.DataFrame:
        """Return the rows of one switch."""
        is_here = self.switch == switch
        return pd.DataFrame({name: values[is_here] for name, values in vars(self).items()})


def list_groups(problem: Multicast, plan: Channels, layer: str) -> GroupsAtSwitches:
    """Return the groups at the switches of a layer.

    Packets take each switch that holds the group's partition equally often; a core reaches every pod with
    members over a link, up from the sender's pod and down to the others.
    """
    partition, copies = group_assignment(problem, plan.partitions)
    if layer == "core":
        return _list_at_cores(problem, partition, copies)
    parts = []
    for stored, share, masks, sharing in _stored_parts(problem, plan, layer, partition, copies):
        ports = np.bitwise_count(masks).astype(np.int64)
        parts.append((stored.switch, stored.group, ports, share, sharing))
    nothing = np.zeros(0, dtype=np.int64)
    parts.append((nothing, nothing, nothing, np.zeros(0), nothing))
    switch, group, ports, share, sharing = (np.concatenate(column) for column in zip(*parts, strict=True))
    return GroupsAtSwitches(switch=switch, group=group, ports=ports, share=share, sharing=sharing)


def _stored_parts(
    problem: Multicast, plan: Channels, layer: str, partition: Ints, copies: Ints
) -> Iterator[tuple[StoredGroups, Floats, Masks, Ints]]:
    """Yield stored groups of edge or aggregation switches with share, ports as bits, and groups of entry."""
    wires = problem.wiring
    for ra in distinct(copies[copies > 0]).tolist():
        if layer == "edge":
            stored = groups_at_edges(problem, copies == ra)
            share = np.ones(len(stored.group))
        else:
            held = problem.distribution(ra)
            stored = groups_at_aggregations(problem, partition, held, copies == ra)
            holders = np.zeros((wires.pods, held.partitions))
            np.add.at(holders, wires.aggregation_pod, held.aggregation)
            share = 1.0 / holders[wires.aggregation_pod[stored.switch], partition[stored.group]]
        masks: Masks = stored.ports.copy()
        sharing = np.ones(len(masks), dtype=np.int64)
        shared = find_shared_entries(problem, plan, stored)
        masks[shared.pair] = shared.ports[shared.entry]
        sharing[shared.pair] = np.bincount(shared.entry, minlength=1)[shared.entry]
        yield stored, share, masks, sharing


def _list_at_cores(problem: Multicast, partition: Ints, copies: Ints) -> GroupsAtSwitches:
    """Return the groups at cores: those of their partitions with members in several pods."""
    pods = np.diff(problem.below.start)
    parts = []
    for ra in distinct(copies[copies > 0]).tolist():
        held = problem.distribution(ra)
        across = np.flatnonzero((copies == ra) & (pods > 1))
        which, core = np.nonzero(held.core.T[partition[across]])
        holders = held.core.sum(axis=0)
        group = across[which]
        parts.append((core, group, 1.0 / holders[partition[group]]))
    nothing = np.zeros(0, dtype=np.int64)
    parts.append((nothing, nothing, np.zeros(0)))
    switch, group, share = (np.concatenate(column) for column in zip(*parts, strict=True))
    ones = np.ones(len(group), dtype=np.int64)
    return GroupsAtSwitches(switch=switch, group=group, ports=pods[group], share=share, sharing=ones)


def edge_link_loads(problem: Multicast, plan: Channels) -> Floats:
    """Return the traffic from aggregation to edge switches, (aggregation switches, edge switches), Mbit/s."""
    wires = problem.wiring
    partition, copies = group_assignment(problem, plan.partitions)
    first = np.searchsorted(wires.edge_pod, wires.aggregation_pod)
    load = np.zeros((len(wires.aggregations), problem.edge_count))
    for stored, share, masks, _ in _stored_parts(problem, plan, "aggregation", partition, copies):
        rate, switch = problem.rate_mbps[stored.group] * share, stored.switch
        for port in range(int(wires.edge_in_pod.max()) + 1):
            uses = np.flatnonzero(masks & np.uint64(1 << port))
            sums = np.bincount(switch[uses], rate[uses], minlength=len(load))
            sends = np.flatnonzero(sums)
            load[sends, first[sends] + port] += sums[sends]
    return load


def core_link_loads(problem: Multicast, plan: Channels) -> Floats:
    """Return the traffic between cores and aggregation switches, either way, Mbit/s.

    Shape (aggregation switches, cores). A core takes the switches of a pod that hold the partition equally.
    """
    wires = problem.wiring
    partition, copies = group_assignment(problem, plan.partitions)
    below = problem.below
    pods_of = np.diff(below.start)
    group = np.repeat(np.arange(len(pods_of)), pods_of)
    load = np.zeros(wires.up.shape)
    starts = np.searchsorted(wires.aggregation_pod, np.arange(wires.pods))
    for ra in distinct(copies[copies > 0]).tolist():
        held = problem.distribution(ra)
        here = (copies == ra)[group] & (pods_of > 1)[group]
        cell = partition[group[here]] * wires.pods + below.edge[here].astype(np.int64)
        rates = np.bincount(cell, problem.rate_mbps[group[here]], minlength=held.partitions * wires.pods)
        rates = rates.reshape(held.partitions, wires.pods)
        for partition_row in np.flatnonzero(rates.any(axis=1)).tolist():
            cores = np.flatnonzero(held.core[:, partition_row])
            links = (wires.up[:, cores] & held.aggregation[:, partition_row][:, None]).astype(float)
            count = np.add.reduceat(links, starts)[wires.aggregation_pod]
            load[:, cores] += np.divide(
                links * rates[partition_row][wires.aggregation_pod][:, None] / len(cores),
                count,
                out=np.zeros_like(links),
                where=count > 0,
            )
    return load
