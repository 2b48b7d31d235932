"""Groups that switches store, with the ports of members there: the input of shared entries.

Table updates of switches as hosts join and leave groups, event by event or in batches.

A join or leave changes the edge switch of the host; the aggregation switches of the pod that hold the
group's partition (ra) where the host is the group's first or last member at its edge switch; the cores
that hold it (rc) where it is the first or last in the pod. A batch changes each switch at most once.

Source: "Scaling IP Multicast on Datacenter Topologies", section 4.3.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from planner.arrays import Bools, Ints, distinct
from planner.contract.studies import Section
from planner.errors import InputError
from planner_models.multicast.problem.churn import draw_events
from planner_models.multicast.problem.equations import Updates
from planner_models.multicast.problem.problem import Multicast
from planner_models.multicast.problem.topology import Distribution, find_rows

LAYERS = ("edge", "aggregation", "core")


@dataclass(frozen=True, kw_only=True, eq=False)
class StoredGroups:
    """Groups at the switches of one layer, by switch, then group.

    layer  aggregation or edge
    start  (switches of the layer + 1,) first group of each switch
    group  row of the group
    ports  ports with members, as bits: hosts of an edge switch, edge switches of the pod of an aggregation
           switch
    """

    layer: str
    start: Ints
    group: Ints
    ports: NDArray[np.uint64]

    @property
    def switch(self) -> Ints:
        """The switch of each pair, counted within its layer."""
        return np.repeat(np.arange(len(self.start) - 1), np.diff(self.start))


def groups_at_edges(problem: Multicast, selected: Bools | None = None) -> StoredGroups:
    """Return the groups at edge switches; `selected` (G,) are those with table entries, by default all."""
    edge, group, ports = problem.at_edge
    if selected is not None and not selected.all():
        here = selected[group]
        edge, group, ports = edge[here], group[here], ports[here]
    start = np.searchsorted(edge, np.arange(problem.edge_count + 1))
    return StoredGroups(layer="edge", start=start, group=group, ports=ports)


def groups_at_aggregations(
    problem: Multicast, partition: Ints, held: Distribution, selected: Bools | None = None
) -> StoredGroups:
    """Return the groups at aggregation switches that hold their partition, `partition` (G,)."""
    wires = problem.wiring
    group, pod, ports = groups_in_pods(problem)
    if selected is not None:
        here = selected[group]
        group, pod, ports = group[here], pod[here], ports[here]
    # the switches of each pod that hold each partition, one after the other
    holder, held_partition = np.nonzero(held.aggregation)
    key = wires.aggregation_pod[holder] * held.partitions + held_partition
    order = np.argsort(key, kind="stable")
    first = np.searchsorted(key[order], np.arange(wires.pods * held.partitions + 1))
    keys_sought = pod * held.partitions + partition[group]
    count = np.diff(first)[keys_sought]
    pair = np.repeat(np.arange(len(group)), count)
    nth = np.arange(len(pair)) - np.repeat(np.cumsum(count) - count, count)
    switch = holder[order][first[keys_sought[pair]] + nth]
    # groups come in their order, so a stable sort by switch leaves them so
    by_switch = np.argsort(switch, kind="stable")
    start = np.searchsorted(switch[by_switch], np.arange(len(wires.aggregations) + 1))
    return StoredGroups(
        layer="aggregation", start=start, group=group[pair][by_switch], ports=ports[pair][by_switch]
    )


def groups_at(layer: str, problem: Multicast, selected: Bools, partition: Ints, copies: int) -> StoredGroups:
    """Return the groups of `selected` (G,) at the edge or aggregation switches."""
    if layer == "edge":
        return groups_at_edges(problem, selected)
    return groups_at_aggregations(problem, partition, problem.distribution(copies), selected)


def groups_in_pods(problem: Multicast) -> tuple[Ints, Ints, NDArray[np.uint64]]:
    """Return group, pod, and edge switches below as bits, for each pod that stores a group.

    A pod stores a group at aggregation switches where it has members below two edge switches, or where the
    group is in other pods too.
    """
    below = problem.below
    pods_of = np.diff(below.start)
    group = np.repeat(np.arange(len(pods_of)), pods_of)
    here = (np.bitwise_count(below.ports) > 1) | (pods_of[group] > 1)
    return group[here], below.edge[here].astype(np.int64), below.ports[here]


@dataclass(frozen=True, kw_only=True, eq=False)
class StoredPairs:
    """Switches and the groups that need an entry there, (n,) each, in all layers.

    switch  row of `wiring.switches`
    group   row of the group
    ports   ports below with members, as bits: pods of a core, edge switches of the pod, hosts
    """

    switch: Ints
    group: Ints
    ports: NDArray[np.uint64]


def stored_pairs(problem: Multicast, partition: Ints, copies: Ints) -> StoredPairs:
    """Return the pairs of switch and group that need an entry, where none is shared.

    partition, copies  (G,) of each group; 0 copies for groups without entries
    """
    wires, below = problem.wiring, problem.below
    pods_of = np.diff(below.start)
    bits = np.uint64(1) << below.edge.astype(np.uint64)
    of_pods = np.bitwise_or.reduceat(bits, below.start[:-1])
    at_edge = groups_at_edges(problem, copies > 0)
    parts = [(len(wires.cores) + len(wires.aggregations) + at_edge.switch, at_edge.group, at_edge.ports)]
    for ra in distinct(copies[copies > 0]).tolist():
        held = problem.distribution(ra)
        across = np.flatnonzero((copies == ra) & (pods_of > 1))
        which, core = np.nonzero(held.core.T[partition[across]])
        parts.append((core, across[which], of_pods[across[which]]))
        above = groups_at_aggregations(problem, partition, held, copies == ra)
        parts.append((len(wires.cores) + above.switch, above.group, above.ports))
    switch, group, ports = (np.concatenate(column) for column in zip(*parts, strict=True))
    return StoredPairs(switch=switch, group=group, ports=ports)


def group_assignment(problem: Multicast, partitions: pd.DataFrame) -> tuple[Ints, Ints]:
    """Return partition and copies of each group, shape (G,) both; 0 copies for groups without entries."""
    row = find_rows(problem.group_names, partitions["group"])
    partition, copies = np.zeros((2, len(problem.groups)), dtype=np.int64)
    partition[row] = partitions["partition"].to_numpy(np.int64)
    copies[row] = partitions["copies"].to_numpy(np.int64)
    return partition, copies


def previous_entries(
    problem: Multicast, stored: StoredGroups, meta_groups: pd.DataFrame | None
) -> Ints | None:
    """Return the shared entry of each stored pair in the previous table meta_groups, -1 for none."""
    if meta_groups is None or not len(meta_groups):
        return None
    names = problem.wiring.edges if stored.layer == "edge" else problem.wiring.aggregations
    switch = find_rows(names, meta_groups["switch"])
    group = find_rows(problem.group_names, meta_groups["group"])
    here = (switch >= 0) & (group >= 0)
    old = switch[here] * len(problem.groups) + group[here]
    now = stored.switch * len(problem.groups) + stored.group
    before = np.full(len(now), -1, dtype=np.int64)
    if len(now):
        index = np.minimum(np.searchsorted(now, old), len(now) - 1)
        same = now[index] == old
        before[index[same]] = meta_groups["meta_group"].to_numpy(np.int64)[here][same]
    return before


def build_meta_groups(problem: Multicast, stored: StoredGroups, here: Bools, meta: Ints) -> pd.DataFrame:
    """Return the table meta_groups of one layer: the pairs that are `here`, with the entries `meta`."""
    names = problem.wiring.edges if stored.layer == "edge" else problem.wiring.aggregations
    switch = pd.Categorical.from_codes(stored.switch[here], names)
    groups = pd.Categorical.from_codes(stored.group[here], problem.group_names)
    frame = pd.DataFrame({"switch": switch, "meta_group": meta[here].astype(float), "group": groups})
    # categories of all layers, so that two layers concatenate
    return frame.astype({"switch": pd.CategoricalDtype(problem.wiring.switches)})


def rank_keys(key: Ints, size: int) -> tuple[Ints, Ints]:
    """Return the distinct keys, ascending, and the place of each key among them; keys are from 0 to size - 1.

    As `np.unique` with the inverse, but several times faster where keys are dense.
    """
    if size > 8 * len(key) + 1_000_000:
        used, inverse = np.unique(key, return_inverse=True)
        return used.astype(np.int64), inverse.astype(np.int64)
    is_used = np.zeros(size, dtype=bool)
    is_used[key] = True
    rank = np.cumsum(is_used) - 1
    return np.flatnonzero(is_used), rank[key]


@dataclass(frozen=True, kw_only=True, eq=False)
class UpdateCounts:
    """Updates that joins and leaves of many groups cause.

    joins, leaves     updates an event, where switches change at once
    events            number of joins and of leaves
    batched           updates an event of either kind, where switches change once a batch
    switch_updates    (switches,) updates of each, batched, in the order of `wiring.switches`
    """

    joins: Updates
    leaves: Updates
    events: tuple[int, int]
    batched: Updates
    switch_updates: Ints

    def table(self) -> pd.DataFrame:
        """Return the rows of the paper's Table 2: one a layer, columns join and leave."""
        rows = ["events", *LAYERS, "total"]
        columns = {
            name: [float(count), *(getattr(each, layer) for layer in (*LAYERS, "total"))]
            for name, count, each in zip(
                ("join", "leave"), self.events, (self.joins, self.leaves), strict=True
            )
        }
        return pd.DataFrame(columns, index=pd.Index(rows, name="updates"))


def count_updates(
    problem: Multicast,
    *,
    events: int,
    rng: np.random.Generator,
    copies: int | None = None,
    batch: int = 1,
) -> UpdateCounts:
    """Draw joins and leaves in all groups of a problem (see `churn`), and count the updates they cause.

    copies   ra; default: that of the fabric
    batch    consecutive events, of all groups, announced to switches together: a change that is undone
             within a batch updates nothing, and a switch changes each group's entry once at most
    raises   InputError for a problem without the hosts of each group's tenant
    source   section 4.3.2, Table 2; groups take partitions in turn, our choice, which changes no average
    """
    if batch < 1:
        raise InputError(f"batch is {batch}, must be at least 1")
    held = problem.distribution(problem.aggregation_copies if copies is None else copies)
    drawn = draw_events(problem, events, rng)
    partition = drawn.group % held.partitions
    edge = problem.edge_of_host[drawn.host]
    pod = problem.wiring.edge_pod[edge]
    holders = np.zeros((problem.pods, held.partitions), dtype=np.int64)
    np.add.at(holders, problem.wiring.aggregation_pod, held.aggregation)
    each = np.column_stack(
        [
            np.ones(events),
            drawn.edge_flips * holders[pod, partition],
            drawn.pod_flips * held.core.sum(axis=0)[partition],
        ]
    )
    means = [
        each[rows].mean(axis=0).tolist() if rows.any() else [0.0, 0.0, 0.0]
        for rows in (drawn.is_join, ~drawn.is_join)
    ]
    joins, leaves = (Updates(edge=e, aggregation=a, core=c) for e, a, c in means)
    # within a batch, an even number of changes is no change
    when = drawn.group * (events // batch + 1) + drawn.time // batch
    changes = (
        _net_changes(when, drawn.host, np.ones(events, dtype=bool), edge),
        _net_changes(when, edge, drawn.edge_flips, pod),
        _net_changes(when, pod, drawn.pod_flips, np.zeros(events, dtype=np.int64)),
    )
    switches = _switch_updates(problem, held, (partition, edge, pod), changes)
    layers = [float(switches[problem.wiring.layers == layer].sum()) / events for layer in LAYERS]
    return UpdateCounts(
        joins=joins,
        leaves=leaves,
        events=(int(drawn.is_join.sum()), int((~drawn.is_join).sum())),
        batched=Updates(edge=layers[0], aggregation=layers[1], core=layers[2]),
        switch_updates=switches,
    )


def describe_updates(problem: Multicast, *, events: int, batch: int, seed: int) -> tuple[Section, str]:
    """Return updates by joins and leaves as a section of an explanation, one row a layer, and a sentence."""
    counts = count_updates(problem, events=events, rng=np.random.default_rng(seed), batch=batch)
    rows = []
    for layer in LAYERS:
        of_layer = problem.wiring.layers == layer
        updates = counts.switch_updates[of_layer]
        busiest = int(updates.argmax())
        rows.append(
            {
                "layer": layer,
                "join": getattr(counts.joins, layer),
                "leave": getattr(counts.leaves, layer),
                "batched": getattr(counts.batched, layer),
                "mean": float(updates.mean()),
                "most": int(updates[busiest]),
                "busiest": problem.wiring.switches[of_layer][busiest],
            }
        )
    sentence = (
        f"A join changes {counts.joins.total:.2f} switches and a leave {counts.leaves.total:.2f} on average"
        + (f", or {counts.batched.total:.2f} in batches of {batch:,} events." if batch > 1 else ".")
    )
    units = dict.fromkeys(("join", "leave", "batched"), "updates an event")
    return (
        Section(
            title=f"updates of {events:,} joins and leaves",
            frame=pd.DataFrame(rows),
            units=units | dict.fromkeys(("mean", "most"), "updates of a switch"),
            note="join, leave: where switches change at once; batched, mean, most: once a batch",
        ),
        sentence,
    )


def _net_changes(when: Ints, thing: Ints, changes: Bools, item: Ints) -> Ints:
    """Return events, one for each batch and place, where some `thing` changed an odd number of times.

    when     a number for each group and batch
    changes  events that count
    """
    rows = np.flatnonzero(changes)
    key = when[rows] * (int(thing.max()) + 1) + thing[rows]
    _, first, times = np.unique(key, return_index=True, return_counts=True)
    rows = rows[first[times % 2 == 1]]
    batch_and_place = when[rows] * (int(item.max()) + 1) + item[rows]
    return np.asarray(rows[np.unique(batch_and_place, return_index=True)[1]], dtype=np.int64)


def _switch_updates(
    problem: Multicast, held: Distribution, where: tuple[Ints, Ints, Ints], changes: tuple[Ints, Ints, Ints]
) -> Ints:
    """Return the updates of each switch, shape (switches,).

    where    partition, edge switch and pod of each event
    changes  events that change the edge switch; the pod's aggregation switches that hold the partition;
             the cores that hold it
    """
    (partition, edge, pod), (at_edge, in_pod, at_core), wires = where, changes, problem.wiring
    in_pods = np.zeros((wires.pods, held.partitions), dtype=np.int64)
    np.add.at(in_pods, (pod[in_pod], partition[in_pod]), 1)
    updates = [
        held.core @ np.bincount(partition[at_core], minlength=held.partitions),
        (held.aggregation * in_pods[wires.aggregation_pod]).sum(axis=1),
        np.bincount(edge[at_edge], minlength=problem.edge_count),
    ]
    return np.concatenate(updates).astype(np.int64)
