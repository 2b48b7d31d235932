"""Which groups a switch stores, and the ports that each wants there: what shared entries are made of."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from planner_models.multicast.addresses import Distribution
from planner_models.multicast.problem import Multicast

Ints = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, eq=False)
class Stored:
    """Groups at the switches of one layer, by switch, then group.

    start  (switches of the layer + 1,) where the groups of each begin
    group  the group's row
    ports  the ports it wants, as bits: hosts of an edge switch, edge switches of the pod of an
           aggregation switch
    layer  aggregation or edge
    """

    layer: str
    start: Ints
    group: Ints
    ports: NDArray[np.uint64]

    @property
    def switch(self) -> Ints:
        """The switch of each pair, counted within its layer."""
        return np.repeat(np.arange(len(self.start) - 1), np.diff(self.start))


def at_edges(problem: Multicast, kept: NDArray[np.bool_] | None = None) -> Stored:
    """Groups at edge switches; `kept` (G,) are those with table entries, by default all."""
    edge, group, ports = problem.at_edge
    if kept is not None and not kept.all():
        here = kept[group]
        edge, group, ports = edge[here], group[here], ports[here]
    start = np.searchsorted(edge, np.arange(problem.edge_count + 1))
    return Stored(layer="edge", start=start, group=group, ports=ports)


def at_aggregations(
    problem: Multicast, partition: Ints, held: Distribution, kept: NDArray[np.bool_] | None = None
) -> Stored:
    """Groups at aggregation switches that hold their partition; `partition` (G,) is that of each group."""
    wires = problem.wiring
    group, pod, ports = in_pods(problem)
    if kept is not None:
        here = kept[group]
        group, pod, ports = group[here], pod[here], ports[here]
    # the switches of each pod that hold each partition, one after the other
    holder, part = np.nonzero(held.aggregation)
    key = wires.aggregation_pod[holder] * held.partitions + part
    order = np.argsort(key, kind="stable")
    first = np.searchsorted(key[order], np.arange(wires.pods * held.partitions + 1))
    wanted = pod * held.partitions + partition[group]
    count = np.diff(first)[wanted]
    pair = np.repeat(np.arange(len(group)), count)
    nth = np.arange(len(pair)) - np.repeat(np.cumsum(count) - count, count)
    switch = holder[order][first[wanted[pair]] + nth]
    # groups come in their order, so a stable sort by switch leaves them so
    by_switch = np.argsort(switch, kind="stable")
    start = np.searchsorted(switch[by_switch], np.arange(len(wires.aggregations) + 1))
    return Stored(
        layer="aggregation", start=start, group=group[pair][by_switch], ports=ports[pair][by_switch]
    )


def in_pods(problem: Multicast) -> tuple[Ints, Ints, NDArray[np.uint64]]:
    """Group, pod and edge switches below, as bits, of each pod that stores a group at aggregation switches.

    These are pods with members below two edge switches, or of a group that is in other pods too.
    """
    below = problem.below
    pods_of = np.diff(below.start)
    group = np.repeat(np.arange(len(pods_of)), pods_of)
    here = (np.bitwise_count(below.ports) > 1) | (pods_of[group] > 1)
    return group[here], below.edge[here].astype(np.int64), below.ports[here]


def rows_of(known: pd.Index, names: pd.Series) -> Ints:
    """The row in `known` of each name, -1 for strangers; a category is looked up once."""
    if isinstance(names.dtype, pd.CategoricalDtype):
        if names.cat.categories.equals(known):
            return np.asarray(names.cat.codes.to_numpy(), dtype=np.int64)
        row = known.get_indexer(pd.Index(names.cat.categories)).astype(np.int64)
        return np.asarray(row[names.cat.codes.to_numpy()], dtype=np.int64)
    return np.asarray(known.get_indexer(pd.Index(names)), dtype=np.int64)
