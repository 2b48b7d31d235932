"""Groups that switches store, with the ports of members there: the input of shared entries."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from planner.arrays import Bools, Ints
from planner_models.multicast.problem.addresses import Distribution
from planner_models.multicast.problem.problem import Multicast
from planner_models.multicast.problem.topology import find_rows


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
