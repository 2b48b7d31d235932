"""Forwarding tables compiled from a plan, and a packet sent through them.

A packet goes up from its source to an aggregation switch of its partition, which serves its own pod, and
on to a core of the partition, which serves the other pods; groups at one edge switch are turned there.
Switches never send a packet back where it came from, except aggregation switches, which serve all edge
switches below. Shared entries match a local address: the switch above writes it; the switch or host below
restores the group's own address and drops packets without local members.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

import numpy as np
import pandas as pd

from planner.arrays import Bools, Ints
from planner_models.multicast.plan.overflow import Domains, Overflow
from planner_models.multicast.plan.plan import Channels
from planner_models.multicast.plan.switch_groups import StoredPairs, group_assignment, stored_pairs
from planner_models.multicast.problem.failures import WorkingLinks, find_working_links
from planner_models.multicast.problem.problem import Multicast
from planner_models.multicast.problem.topology import Distribution, Wiring, find_rows

SHARED_MATCH: Final = -1  # the match of every shared entry: their numbers are arbitrary


@dataclass(frozen=True, kw_only=True, eq=False)
class ForwardingTables:
    """Forwarding tables of every switch.

    rules     switch (its place in `wiring.switches`), address, ports (a bit each: pods of a core, edge
              switches of the pod, hosts of an edge switch), one row an entry. Addresses are the group's
              row, or -1 - its number for a shared entry
    local     switch, group, address that switches above write for that switch, one row a group that
              shares an entry there
    software  ports by (switch, group) that the processor of the switch forwards
    flooded   ports by (switch, group) of packets that a switch floods where it has no entry
    """

    wiring: Wiring
    rules: pd.DataFrame
    local: pd.DataFrame
    software: Mapping[tuple[int, int], int] = field(default_factory=dict)
    flooded: Mapping[tuple[int, int], int] = field(default_factory=dict)

    def entries(self) -> Ints:
        """Return the rows of each switch's table, shape (switches,)."""
        count = np.bincount(self.rules["switch"].to_numpy(np.int64), minlength=len(self.wiring.switches))
        return np.asarray(count, dtype=np.int64)

    @cached_property
    def table(self) -> dict[tuple[int, int], int]:
        """Ports of each (switch, address)."""
        columns = (self.rules[name].tolist() for name in ("switch", "address", "ports"))
        return {(switch, address): ports for switch, address, ports in zip(*columns, strict=True)}

    @cached_property
    def rewritten(self) -> dict[tuple[int, int], int]:
        """Local address of each (switch, group) that shares an entry."""
        columns = (self.local[name].tolist() for name in ("switch", "group", "address"))
        return {(switch, group): address for switch, group, address in zip(*columns, strict=True)}


def compile_tables(problem: Multicast, plan: Channels) -> ForwardingTables:
    """Return the forwarding tables of the plan."""
    wires, names = problem.wiring, problem.group_names
    stored = stored_pairs(problem, *group_assignment(problem, plan.partitions))
    pairs = plan.overflow_pairs(problem)
    software: dict[tuple[int, int], int] = {}
    flooded: dict[tuple[int, int], int] = {}
    has_entry = np.ones(len(stored.switch), dtype=bool)
    if pairs is not None:
        software, flooded, has_entry = _forward_without_entries(problem, stored, pairs)
    parts = [(stored.switch[has_entry], stored.group[has_entry], stored.ports[has_entry])]
    trees = plan.header_trees(problem)
    if trees is not None:
        parts.append(trees.table_entries())
    switch, address, ports = (np.concatenate(column) for column in zip(*parts, strict=True))
    shared = plan.meta_groups
    local = pd.DataFrame(
        {
            "switch": find_rows(wires.switches, shared["switch"]),
            "group": find_rows(names, shared["group"]),
            "address": -1 - shared["meta_group"].to_numpy(np.int64),
        }
    )
    if len(local):
        # (switch, group) as one number each
        existing = local["switch"].to_numpy(np.int64) * len(names) + local["group"].to_numpy(np.int64)
        sorter = np.argsort(existing)
        keys_sought = switch * len(names) + address
        index = sorter[np.minimum(np.searchsorted(existing, keys_sought, sorter=sorter), len(existing) - 1)]
        address = np.where(existing[index] == keys_sought, local["address"].to_numpy()[index], address)
    # entries that groups share go to all ports of any
    order = np.lexsort((address, switch))
    switch, address, ports = switch[order], address[order], ports[order]
    new = np.concatenate([[True], (switch[1:] != switch[:-1]) | (address[1:] != address[:-1])])
    start = np.flatnonzero(new[: len(switch)])
    merged = np.bitwise_or.reduceat(ports, start) if len(start) else ports
    rules = pd.DataFrame({"switch": switch[start], "address": address[start], "ports": merged})
    return ForwardingTables(wiring=wires, rules=rules, local=local, software=software, flooded=flooded)


def _forward_without_entries(
    problem: Multicast, stored: StoredPairs, pairs: Overflow
) -> tuple[dict[tuple[int, int], int], dict[tuple[int, int], int], Bools]:
    """Return the ports of processors, those of flooding switches, and which stored pairs have an entry.

    Of a flooded group, the second has all switches that its packets may reach without an entry.
    """
    count, wires = len(problem.groups), problem.wiring
    has_entry = ~np.isin(stored.switch * count + stored.group, pairs.switch * count + pairs.group)
    floods = set(pairs.group[pairs.floods].tolist())
    slow = set(zip(pairs.switch[~pairs.floods].tolist(), pairs.group[~pairs.floods].tolist(), strict=True))
    columns = (stored.switch.tolist(), stored.group.tolist(), stored.ports.tolist())
    software = {(s, g): ports for s, g, ports in zip(*columns, strict=True) if (s, g) in slow}
    domains = Domains.of(problem)
    flooded: dict[tuple[int, int], int] = {}
    cores, first = wires.layer_starts
    edges_of, pods_of = np.diff(problem.spread.start), np.diff(problem.below.start)
    for group in floods:
        hosts = domains.masks[domains.of_group[group]]
        below = {first + e: int(mask) for e, mask in enumerate(hosts.tolist()) if mask}
        pods = dict.fromkeys(range(wires.pods), 0)
        for edge in np.flatnonzero(hosts).tolist():
            pods[int(wires.edge_pod[edge])] |= 1 << int(wires.edge_in_pod[edge])
        if edges_of[group] > 1:  # packets of others do not leave the edge switch, or the pod
            below |= {cores + a: pods[pod] for a, pod in enumerate(wires.aggregation_pod.tolist())}
        if pods_of[group] > 1:
            below |= dict.fromkeys(range(cores), sum(1 << pod for pod, mask in pods.items() if mask))
        flooded |= {(switch, group): ports for switch, ports in below.items()}
    return software, flooded, has_entry


# --- a packet -----------------------------------------------------------------------------


@dataclass(kw_only=True)
class Delivery:
    """Copies of a packet that each host received, and the links of the first copy.

    copies  by (edge switch, port)
    links   by (edge switch, port)
    root    the core that the packet went through, if any
    """

    copies: Counter[tuple[int, int]] = field(default_factory=Counter)
    links: dict[tuple[int, int], int] = field(default_factory=dict)
    root: int | None = None


def send_packet(
    problem: Multicast,
    plan: Channels,
    tables: ForwardingTables,
    *,
    group: int,
    source: int,
    state: WorkingLinks | None = None,
) -> Delivery:
    """Send one packet of a group (its row, with entries) from a host (its row) through the tables.

    Where switches or links have failed, switches reroute as section 3.3.1 says; each uses its own
    table, the packet's identifier, and the state of its own links.
    """
    row = int(np.flatnonzero(plan.partitions["group"] == problem.groups["group"].iloc[group])[0])
    partition, copies = (int(plan.partitions[name].iloc[row]) for name in ("partition", "copies"))
    state = find_working_links(problem.wiring) if state is None else state
    packet = _Packet(
        wires=problem.wiring,
        held=problem.distribution(copies),
        part=partition,
        group=group,
        tables=tables,
        state=state,
    )
    edge = int(problem.edge_of_host[source])
    for edge_switch, links in packet.reach_edges(edge):
        for port in packet.ports(edge_switch):
            packet.delivery.copies[edge_switch, port] += 1
            packet.delivery.links.setdefault((edge_switch, port), links + 1)
    return packet.delivery


@dataclass(kw_only=True)
class _Packet:
    """A packet of one group on its way."""

    wires: Wiring
    held: Distribution
    part: int
    group: int
    tables: ForwardingTables
    state: WorkingLinks
    delivery: Delivery = field(default_factory=Delivery)

    def entry(self, switch: int) -> list[int]:
        """Return the ports of the entry that the packet matches, after rewriting above; none: dropped.

        Without an entry, those of the switch's processor, or all that it floods to.
        """
        address = self.tables.rewritten.get((switch, self.group), self.group)
        tables, key = self.tables, (switch, self.group)
        ports = tables.table.get((switch, address), tables.software.get(key, tables.flooded.get(key, 0)))
        return [bit for bit in range(64) if ports >> bit & 1]

    def ports(self, edge: int) -> list[int]:
        """Return the ports of the entry at an edge switch."""
        return self.entry(len(self.wires.cores) + len(self.wires.aggregations) + edge)

    def reach_edges(self, source: int) -> Iterator[tuple[int, int]]:
        """Yield the edge switches that get the packet, with the links that it took."""
        if not self.state.edge[source]:
            return
        pod = int(self.wires.edge_pod[source])
        above = [a for a in self.holders(pod) if self.state.down[a, source]]
        stored = [a for a in self.holders(pod) if self.entry(len(self.wires.cores) + a)]
        if not stored:  # all members are here
            yield source, 1
            return
        with_core = [(a, c) for a in above for c in self.roots(a)]
        if with_core:
            aggregation, core = with_core[self.group % len(with_core)]
            yield from self.below(aggregation, 2)
            if self.entry(core):
                self.delivery.root = core
                yield from self.reach_pods(core, pod)
        elif above:
            yield from self.below(above[0], 2)

    def holders(self, pod: int) -> list[int]:
        """Return the aggregation switches of the pod that hold the partition."""
        is_holder = self.held.aggregation[:, self.part] & (self.wires.aggregation_pod == pod)
        return np.flatnonzero(is_holder).tolist()

    def roots(self, aggregation: int) -> list[int]:
        """Return the cores of the partition that the aggregation switch reaches."""
        return np.flatnonzero(self.state.up[aggregation] & self.held.core[:, self.part]).tolist()

    def reach_pods(self, core: int, source_pod: int) -> Iterator[tuple[int, int]]:
        """Yield the edge switches of other pods that get the packet from a core, with links."""
        for pod in self.entry(core):
            if pod != source_pod:
                entrance = self.enter_pod(core, pod)
                if entrance is not None:
                    yield from self.below(entrance[0], 3 + entrance[1])

    def enter_pod(self, core: int, pod: int) -> tuple[int, int] | None:
        """Return an aggregation switch of the pod that holds the group, and the links to it from the core."""
        straight = [a for a in self.holders(pod) if self.state.up[a, core]]
        if straight:
            return straight[0], 1
        others = [a for other in range(self.wires.pods) if other != pod for a in self.holders(other)]
        elsewhere = [a for a in others if self.state.up[a, core]]
        for a in elsewhere:  # three hops: back down, up to another core, down
            if (b := self.find_detour(a, pod)) is not None:
                return b, 3
        for a in elsewhere:  # five: by way of an edge switch and its other switches above
            if (b := self._find_detour_below(a, pod)) is not None:
                return b, 5
        return None

    def _find_detour_below(self, aggregation: int, pod: int) -> int | None:
        """Return the end of a detour from another switch that shares an edge switch with this one."""
        for other in self.holders(int(self.wires.aggregation_pod[aggregation])):
            joined = bool((self.state.down[aggregation] & self.state.down[other]).any())
            if joined and (end := self.find_detour(other, pod)) is not None:
                return end
        return None

    def find_detour(self, aggregation: int, pod: int) -> int | None:
        """Return a switch of the pod that cores above this switch of another pod reach."""
        for core in self.roots(aggregation):
            for b in self.holders(pod):
                if self.state.up[b, core]:
                    return b
        return None

    def below(self, aggregation: int, links: int) -> Iterator[tuple[int, int]]:
        """Yield the edge switches that an aggregation switch serves, around failed links."""
        pod = int(self.wires.aggregation_pod[aggregation])
        first = int(np.searchsorted(self.wires.edge_pod, pod))
        down = self.state.down
        for number in self.entry(len(self.wires.cores) + aggregation):
            edge = first + number
            if down[aggregation, edge]:
                yield edge, links + 1
                continue
            others = down[:, edge] & (down[:, down[aggregation]]).any(axis=1)
            if others.any():
                yield edge, links + 3


def compare_plans(
    problem: Multicast, plan: Channels, previous: Channels, *, before: Multicast | None = None
) -> pd.DataFrame:
    """Return the entries to add and to remove by switch: columns switch, layer, add, remove.

    An entry is the same where it matches the same address and goes to the same ports; a changed one is
    removed and added. Shared entries of a switch that go to the same ports are the same, whatever their
    numbers. A group's address belongs to its partition, so in another partition all its entries are new.

    before  the problem of the previous plan, on the same network; default: the same problem
    """
    first = problem if before is None else before
    names = first.group_names.union(problem.group_names, sort=False)
    old, new = _list_entries(first, previous, names), _list_entries(problem, plan, names)
    # equal entries of a switch cancel out one by one
    each = pd.concat([old.assign(count=-1), new.assign(count=1)], ignore_index=True)
    net = each.groupby(["switch", "match", "ports"], sort=False)["count"].sum().reset_index()
    switches = len(problem.wiring.switches)
    add = np.bincount(net["switch"], weights=net["count"].clip(lower=0), minlength=switches)
    remove = np.bincount(net["switch"], weights=-net["count"].clip(upper=0), minlength=switches)
    where = np.flatnonzero((add > 0) | (remove > 0))
    return pd.DataFrame(
        {
            "switch": problem.wiring.switches[where],
            "layer": problem.wiring.layers[where],
            "add": add[where].astype(int),
            "remove": remove[where].astype(int),
        }
    )


def _list_entries(problem: Multicast, plan: Channels, names: pd.Index) -> pd.DataFrame:
    """Return switch, match and ports of every entry; a match numbers group, partition and copies."""
    rules = compile_tables(problem, plan).rules
    address = rules["address"].to_numpy()
    row = find_rows(names, plan.partitions["group"])
    partition, copies = (plan.partitions[name].to_numpy(np.int64) for name in ("partition", "copies"))
    match = np.full(len(names), SHARED_MATCH, dtype=np.int64)
    # a fat tree of 64 ports has 1,024 partitions and 32 copies at most
    match[row] = (row * (1 << 20) + partition) * (1 << 10) + copies
    if plan.headers is not None:
        row = find_rows(names, plan.headers["group"])
        match[row] = (row + 1) << 30
    group_codes = names.get_indexer(problem.group_names)
    return pd.DataFrame(
        {
            "switch": rules["switch"].to_numpy(),
            "match": np.where(address >= 0, match[group_codes[np.maximum(address, 0)]], SHARED_MATCH),
            "ports": rules["ports"].to_numpy(),
        }
    )
