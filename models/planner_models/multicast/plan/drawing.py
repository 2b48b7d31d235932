"""Drawings of a plan: table fill of switches by pod, and table entries layer by layer.

Traffic of groups with entries at switches, and on the links between them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from planner.arrays import Floats, Ints, distinct
from planner.contract.drawing import Distribution, Drawing, NetworkMap
from planner.formatting import counted, counted_of, number
from planner_models.multicast.plan import metrics
from planner_models.multicast.plan.meta_groups import Masks
from planner_models.multicast.plan.metrics import find_shared_entries
from planner_models.multicast.plan.plan import Channels
from planner_models.multicast.plan.rerouting import find_missed_members
from planner_models.multicast.plan.switch_groups import (
    StoredGroups,
    group_assignment,
    groups_at_aggregations,
    groups_at_edges,
)
from planner_models.multicast.problem.drawing import fabric_map, has_links, list_nodes
from planner_models.multicast.problem.failures import working_links
from planner_models.multicast.problem.problem import Multicast


def draw(problem: Multicast, plan: Channels) -> Sequence[Drawing]:
    """Draw the table fill of switches by pod, then the distribution of entries by layer."""
    layers = plan.entries.groupby("layer", sort=False, observed=True)["entries"]
    return (
        draw_tables(problem, plan),
        Distribution(
            title="Table entries of switches by layer",
            values={str(layer): entries.reset_index(drop=True) for layer, entries in layers},
            what="entries",
        ),
    )


def draw_tables(problem: Multicast, plan: Channels) -> NetworkMap:
    """Return the map of the fabric, with table fill at switches and the load of groups on links."""
    wires = problem.wiring
    entries, (size, occupied) = plan_entries(problem, plan), problem.table_sizes
    used = entries + occupied
    fill = np.divide(100 * used, size, out=np.full(len(size), np.nan), where=size > 0)
    over = np.zeros(len(size))
    over[-problem.edge_count :] = metrics.host_links_mbps(problem, plan)[1].sum(axis=1)
    lost = lost_at_edges(problem, plan)
    words = [
        f"{number(count)} of {counted(limit, 'entries')}"
        + (f", overhead {number(extra)} Mbit/s to hosts that are no members" if extra > 0 else "")
        for count, limit, extra in zip(used, size, over, strict=True)
    ]
    lost_of = np.concatenate([np.zeros(len(size) - problem.edge_count), lost])
    nodes = list_nodes(problem)
    nodes = nodes.assign(value=fill[nodes.index], lost=lost_of[nodes.index])
    stored = counted_of(len(plan.partitions), len(problem.groups), "groups", "have")
    title = f"Table fill of switches: {stored} entries"
    if plan.headers is not None:  # which share entries where they are too short
        title += f" of their own, {len(plan.headers):,} have headers"
    drawn = has_links(wires)
    return fabric_map(
        problem,
        nodes,
        pd.Series(words)[nodes.index],
        title=title,
        up_mbps=core_link_loads(problem, plan) if drawn else None,
        down_mbps=edge_link_loads(problem, plan) if drawn else None,
    )


def plan_entries(problem: Multicast, plan: Channels) -> Floats:
    """Return the table entries that a plan uses at each switch, (switches,)."""
    entries = plan.entries.set_index("switch")["entries"].reindex(problem.wiring.switches)
    return entries.to_numpy(float)


def lost_at_edges(problem: Multicast, plan: Channels) -> Floats:
    """Return the traffic that members at each edge switch miss through failures, (edge switches,), Mbit/s."""
    lost = np.zeros(problem.edge_count)
    if problem.has_failures:
        missed = find_missed_members(problem, plan, working_links(problem))
        edge = problem.edge_of_host[problem.host_of[missed]]
        lost += np.bincount(edge, problem.rate_mbps[problem.group_of[missed]], minlength=len(lost))
    return lost


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
