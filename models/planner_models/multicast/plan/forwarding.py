"""Forwarding tables compiled from a plan, and a packet sent through them.

A packet goes up from its source to an aggregation switch of its partition, which serves its own pod, and
on to a core of the partition, which serves the other pods; groups at one edge switch are turned there.
Switches never send a packet back where it came from, except aggregation switches, which serve all edge
switches below. Shared entries match a local address: the switch above writes it; the switch or host below
restores the group's own address and drops packets without local members.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from planner_models.multicast.plan.plan import Channels
from planner_models.multicast.problem.addresses import Distribution
from planner_models.multicast.problem.failures import WorkingLinks, find_working_links
from planner_models.multicast.problem.problem import Multicast
from planner_models.multicast.problem.topology import Wiring


@dataclass(frozen=True, kw_only=True, eq=False)
class ForwardingTables:
    """Forwarding tables of every switch.

    rules     switch (its place in `wiring.switches`), address, ports (a bit each: pods of a core, edge
              switches of the pod, hosts of an edge switch), one row an entry. Addresses are the group's
              row, or -1 - its number for a shared entry
    local     switch, group, address that switches above write for that switch, one row a group that
              shares an entry there
    """

    wiring: Wiring
    rules: pd.DataFrame
    local: pd.DataFrame

    def entries(self) -> NDArray[np.int64]:
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
    wires = problem.wiring
    group = pd.Index(problem.groups["group"]).get_indexer(pd.Index(plan.partitions["group"]))
    partition = plan.partitions["partition"].to_numpy(np.int64)
    copies = plan.partitions["copies"].to_numpy(np.int64)
    edge, at, masks = problem.at_edge
    kept = np.zeros(len(problem.groups), dtype=bool)
    kept[group] = True
    edge, at, masks = edge[kept[at]], at[kept[at]], masks[kept[at]]
    in_pod = np.zeros((len(problem.groups), wires.pods), dtype=np.uint64)
    bit = np.uint64(1) << wires.edge_in_pod[edge].astype(np.uint64)
    np.bitwise_or.at(in_pod, (at, wires.edge_pod[edge]), bit)
    pod_bits = np.uint64(1) << np.arange(wires.pods, dtype=np.uint64)
    of_pods = ((in_pod > 0) * pod_bits).sum(axis=1, dtype=np.uint64)
    many = np.bitwise_count(of_pods) > 1
    parts = []
    for ra in np.unique(copies).tolist():
        held, mine = problem.distribution(ra), copies == ra
        row = np.flatnonzero(mine & many[group])
        which, core = np.nonzero(held.core.T[partition[row]])
        parts.append((core, group[row][which], of_pods[group[row][which]]))
        row = np.flatnonzero(mine)
        ports = in_pod[group[row]]
        which, pod = np.nonzero((np.bitwise_count(ports) > 1) | ((ports > 0) & many[group[row], None]))
        place, switch = _holders(held, wires, pod, partition[row][which])
        which, pod = which[place], pod[place]
        parts.append((len(wires.cores) + switch, group[row][which], ports[which, pod]))
    above = len(wires.cores) + len(wires.aggregations)
    parts.append((edge + above, at, masks))
    switch, address, ports = (np.concatenate(column) for column in zip(*parts, strict=True))
    local = _list_local_addresses(problem, plan)
    if len(local):
        # (switch, group) as one number each
        count = len(problem.groups)
        known = local["switch"].to_numpy(np.int64) * count + local["group"].to_numpy(np.int64)
        sorter = np.argsort(known)
        wanted = switch * count + address
        place = sorter[np.minimum(np.searchsorted(known, wanted, sorter=sorter), len(known) - 1)]
        found = known[place] == wanted
        address = np.where(found, local["address"].to_numpy()[place], address)
    # entries that groups share go to all ports of any
    order = np.lexsort((address, switch))
    switch, address, ports = switch[order], address[order], ports[order]
    new = np.concatenate([[True], (switch[1:] != switch[:-1]) | (address[1:] != address[:-1])])
    start = np.flatnonzero(new[: len(switch)])
    merged = np.bitwise_or.reduceat(ports, start) if len(start) else ports
    rules = pd.DataFrame({"switch": switch[start], "address": address[start], "ports": merged})
    return ForwardingTables(wiring=wires, rules=rules, local=local)


def _holders(
    held: Distribution, wires: Wiring, pod: NDArray[np.int64], partition: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the aggregation switches that hold each (pod, partition): row of the pair, and switch."""
    switch, part = np.nonzero(held.aggregation)
    key = wires.aggregation_pod[switch] * held.partitions + part
    order = np.argsort(key, kind="stable")
    switch, key = switch[order], key[order]
    wanted = pod * held.partitions + partition
    first, last = (np.searchsorted(key, wanted, side=side) for side in ("left", "right"))
    count = last - first
    place = np.repeat(np.arange(len(wanted)), count)
    offset = np.arange(len(place)) - np.repeat(np.cumsum(count) - count, count)
    return place, switch[first[place] + offset]


def _list_local_addresses(problem: Multicast, plan: Channels) -> pd.DataFrame:
    """Return switch, group and local address of every group that shares an entry."""
    shared = plan.meta_groups.astype({"switch": str, "group": str})
    switch = problem.wiring.switches.get_indexer(pd.Index(shared["switch"]))
    group = pd.Index(problem.groups["group"]).get_indexer(pd.Index(shared["group"]))
    address = -1 - shared["meta_group"].to_numpy(np.int64)
    return pd.DataFrame({"switch": switch, "group": group, "address": address})


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
    part, copies = (int(plan.partitions[name].iloc[row]) for name in ("partition", "copies"))
    state = find_working_links(problem.wiring) if state is None else state
    packet = _Packet(
        wires=problem.wiring,
        held=problem.distribution(copies),
        part=part,
        group=group,
        tables=tables,
        state=state,
    )
    edge = int(problem.edge_of_host[source])
    for at, links in packet.reach_edges(edge):
        for port in packet.ports(at):
            packet.delivery.copies[at, port] += 1
            packet.delivery.links.setdefault((at, port), links + 1)
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

    def entry(self, place: int) -> list[int]:
        """Return the ports of the entry that the packet matches, after rewriting above; none: dropped."""
        address = self.tables.rewritten.get((place, self.group), self.group)
        ports = self.tables.table.get((place, address), 0)
        return [bit for bit in range(64) if ports >> bit & 1]

    def ports(self, edge: int) -> list[int]:
        """Return the ports of the entry at an edge switch."""
        return self.entry(len(self.wires.cores) + len(self.wires.aggregations) + edge)

    def reach_edges(self, source: int) -> Iterator[tuple[int, int]]:
        """Yield the edge switches that get the packet, with the links that it took."""
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
        mine = self.held.aggregation[:, self.part] & (self.wires.aggregation_pod == pod)
        return np.flatnonzero(mine).tolist()

    def roots(self, aggregation: int) -> list[int]:
        """Return the cores of the partition that the aggregation switch reaches."""
        return np.flatnonzero(self.state.up[aggregation] & self.held.core[:, self.part]).tolist()

    def reach_pods(self, core: int, source_pod: int) -> Iterator[tuple[int, int]]:
        """Yield the edge switches of other pods that get the packet from a core, with links."""
        for pod in self.entry(core):
            if pod != source_pod:
                found = self.enter_pod(core, pod)
                if found is not None:
                    yield from self.below(found[0], 3 + found[1])

    def enter_pod(self, core: int, pod: int) -> tuple[int, int] | None:
        """Return an aggregation switch of the pod that holds the group, and the links to it from the core."""
        straight = [a for a in self.holders(pod) if self.state.up[a, core]]
        if straight:
            return straight[0], 1
        elsewhere = [
            a
            for other in range(self.wires.pods)
            if other != pod
            for a in self.holders(other)
            if self.state.up[a, core]
        ]
        for a in elsewhere:  # three hops: back down, up to another core, down
            if (b := self.find_detour(a, pod)) is not None:
                return b, 3
        for a in elsewhere:  # five: by way of an edge switch and its other switches above
            for c in self.holders(int(self.wires.aggregation_pod[a])):
                joined = bool((self.state.down[a] & self.state.down[c]).any())
                if joined and (b := self.find_detour(c, pod)) is not None:
                    return b, 5
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
