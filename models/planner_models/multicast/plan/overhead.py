"""Overhead of shared entries: traffic on links to hosts and edge switches without members of its group."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from planner_models.multicast.plan.meta_groups import Masks, Rates
from planner_models.multicast.plan.plan import Channels
from planner_models.multicast.plan.switch_groups import (
    StoredGroups,
    find_rows,
    group_assignment,
    groups_at_aggregations,
    groups_at_edges,
)
from planner_models.multicast.problem.problem import Multicast

Ints = NDArray[np.int64]


class SharedEntries(NamedTuple):
    """Shared entries of one layer.

    pair    row of `StoredGroups` of each group that shares an entry
    entry   (pairs,) its entry
    switch  (entries,) switch of each, counted within its layer
    ports   (entries,) ports of any group of the entry, as bits
    """

    pair: Ints
    entry: Ints
    switch: Ints
    ports: Masks


def find_shared_entries(problem: Multicast, plan: Channels, stored: StoredGroups) -> SharedEntries:
    """Return the plan's shared entries of the layer whose groups are `stored`."""
    wires, shared, groups = problem.wiring, plan.meta_groups, len(problem.groups)
    names = wires.edges if stored.layer == "edge" else wires.aggregations
    pairs = stored.switch * groups + stored.group
    wanted = find_rows(names, shared["switch"]) * groups + find_rows(problem.group_names, shared["group"])
    pair = np.minimum(np.searchsorted(pairs, wanted), max(len(pairs) - 1, 0))
    found = pairs[pair] == wanted if len(pairs) else np.zeros(len(wanted), dtype=bool)
    pair, meta = pair[found], shared["meta_group"].to_numpy(np.int64)[found]
    if not len(pair):
        nothing = np.zeros(0, dtype=np.int64)
        return SharedEntries(nothing, nothing, nothing, np.zeros(0, dtype=np.uint64))
    key, entry = np.unique(stored.switch[pair] * (int(meta.max()) + 1) + meta, return_inverse=True)
    rows = np.argsort(entry, kind="stable")
    ports = np.bitwise_or.reduceat(
        stored.ports[pair][rows], np.searchsorted(entry[rows], np.arange(len(key)))
    )
    return SharedEntries(pair, entry, key // (int(meta.max()) + 1), ports)


def host_links_mbps(problem: Multicast, plan: Channels) -> tuple[Rates, Rates]:
    """Return the traffic of groups with entries to each host, wanted and extra, (edge switches, ports)."""
    stored = groups_at_edges(problem, has_entries(problem, plan))
    shared = find_shared_entries(problem, plan, stored)
    extra = shared.ports[shared.entry] & ~stored.ports[shared.pair]
    rates, switch = problem.rate_mbps[stored.group], stored.switch

    def sum_by_port(switch: Ints, rates: Rates, masks: Masks) -> Rates:
        columns = [
            np.bincount(
                switch,
                weights=rates * ((masks >> np.uint64(port)) & np.uint64(1)),
                minlength=problem.edge_count,
            )
            for port in range(problem.ports)
        ]
        return np.column_stack(columns).astype(float)

    return (
        sum_by_port(switch, rates, stored.ports),
        sum_by_port(switch[shared.pair], rates[shared.pair], extra),
    )


def edge_links_mbps(problem: Multicast, plan: Channels) -> tuple[Rates, Rates]:
    """Return the traffic to edge switches below, wanted and extra, (aggregation switches,).

    A group takes one of the switches that hold its partition in a pod; each has its equal part.
    """
    wires = problem.wiring
    partition, copies = group_assignment(problem, plan.partitions)
    wanted, extra = np.zeros((2, len(wires.aggregations)))
    for ra in np.unique(copies[copies > 0]).tolist():
        held = problem.distribution(ra)
        stored = groups_at_aggregations(problem, partition, held, copies == ra)
        switch = stored.switch
        holders = np.zeros((wires.pods, held.partitions))
        np.add.at(holders, wires.aggregation_pod, held.aggregation)
        part = 1.0 / holders[wires.aggregation_pod[switch], partition[stored.group]]
        rates = problem.rate_mbps[stored.group] * part
        wanted += np.bincount(switch, rates * np.bitwise_count(stored.ports), minlength=len(wanted))
        pair, entry, _, ports = find_shared_entries(problem, plan, stored)
        more = np.bitwise_count(ports[entry] & ~stored.ports[pair])
        extra += np.bincount(switch[pair], rates[pair] * more, minlength=len(extra))
    return wanted, extra


def count_several_ports(problem: Multicast, plan: Channels) -> Ints:
    """Return the entries with several ports, (edge switches,); others could be unicast entries."""
    stored = groups_at_edges(problem, has_entries(problem, plan))
    shared = find_shared_entries(problem, plan, stored)
    shares = np.zeros(problem.edge_count, dtype=bool)
    shares[shared.switch] = True
    own = ~shares[stored.switch] & (np.bitwise_count(stored.ports) > 1)
    at = np.concatenate([stored.switch[own], shared.switch[np.bitwise_count(shared.ports) > 1]])
    return np.asarray(np.bincount(at, minlength=problem.edge_count), dtype=np.int64)


def has_entries(problem: Multicast, plan: Channels) -> NDArray[np.bool_]:
    """Return whether each group has table entries, (G,)."""
    return group_assignment(problem, plan.partitions)[1] > 0
