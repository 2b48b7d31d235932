"""Groups that a full table has no entry for: a switch floods them, or its processor forwards them.

Flooding: a switch sends packets of a group that it has no entry for to all ports below with hosts of the
group's tenant (its VLAN; all hosts where no tenant is known). That holds for switches that such packets reach
and that store no entry, as they have no member below: a core floods to all pods, an aggregation switch to the
edge switches of its pod, an edge switch to its hosts. Switches with an entry use it.

Slow path: the processor of the switch forwards the packets to the right ports, up to its rate. What is more
than that is dropped, the same share of each of its groups.

Each of the switches that hold a group's partition carries an equal part of its packets, layer by layer. The
load of a processor counts all packets of its groups, also those that others have dropped before.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
import pandas as pd

from planner.arrays import Bools, Floats, Ints
from planner.contract.table import Table, choice, label
from planner.errors import PlanRejected
from planner_models.multicast.plan.meta_groups import Masks
from planner_models.multicast.plan.switch_groups import StoredPairs, group_assignment, stored_pairs
from planner_models.multicast.problem.problem import Multicast
from planner_models.multicast.problem.topology import find_rows

FLOOD, SLOW_PATH = "flood", "slow path"
HANDLINGS: Final = (FLOOD, SLOW_PATH)
OVERFLOW: Final = Table(
    name="overflow",
    about="a group that a switch with a full table has no entry for, which it forwards all the same",
    columns={
        "switch": label("the switch"),
        "group": label("the group"),
        "handling": choice(
            "flood: to all ports below with hosts of the tenant; slow path: by the switch's processor",
            HANDLINGS,
        ),
    },
    key=("switch", "group"),
    may_be_empty=True,
    compact=True,
)


@dataclass(frozen=True, kw_only=True, eq=False)
class Domains:
    """Hosts to which groups are flooded: those of each tenant, and last all of the fabric.

    masks     (D, edge switches) ports with hosts of each domain, as bits
    of_group  (G,) domain of each group
    """

    masks: Masks
    of_group: Ints

    def at(self, group: Ints, edge: Ints) -> Masks:
        """Return the ports of edge switches with hosts of the domains of groups, (n,), as bits."""
        return np.asarray(self.masks[self.of_group[group], edge])

    @classmethod
    def of(cls, problem: Multicast) -> Domains:
        """Return the domains of a problem: one for each tenant with known hosts, and all hosts."""
        edge = problem.edge_of_host
        bit = np.uint64(1) << problem.hosts["port"].to_numpy(np.int64).astype(np.uint64)
        tenants = problem.tenants
        if tenants is None or "tenant" not in problem.groups:
            masks = np.zeros((1, problem.edge_count), dtype=np.uint64)
            of_group = np.zeros(len(problem.groups), dtype=np.int64)
        else:
            code, names = pd.factorize(tenants["tenant"].astype(str))
            masks = np.zeros((len(names) + 1, problem.edge_count), dtype=np.uint64)
            host = find_rows(problem.host_names, tenants["host"])
            np.bitwise_or.at(masks, (code, edge[host]), bit[host])
            of_group = find_rows(pd.Index(names), problem.groups["tenant"].astype(str))
            of_group = np.where(of_group < 0, len(names), of_group)
        np.bitwise_or.at(masks[-1], edge, bit)
        return cls(masks=masks, of_group=of_group)


@dataclass(frozen=True, kw_only=True, eq=False)
class Overflow:
    """The pairs of switch and group without an entry, in the order of the plan's table.

    switch, group  (n,) rows
    floods         (n,) True where the switch floods the group, else its processor forwards it
    """

    problem: Multicast
    partition: Ints
    copies: Ints
    switch: Ints
    group: Ints
    floods: Bools

    @classmethod
    def of(cls, problem: Multicast, partitions: pd.DataFrame, overflow: pd.DataFrame) -> Overflow:
        """Return the pairs in the table `overflow` of a plan with the table `partitions`."""
        partition, copies = group_assignment(problem, partitions)
        return cls(
            problem=problem,
            partition=partition,
            copies=copies,
            switch=find_rows(problem.wiring.switches, overflow["switch"]),
            group=find_rows(problem.group_names, overflow["group"]),
            floods=(overflow["handling"].astype(str) == FLOOD).to_numpy(),
        )

    @cached_property
    def share(self) -> Floats:
        """(n,) part of the group's packets that passes the switch."""
        return passing_shares(self.problem, self.partition, self.copies, self.switch, self.group)

    @cached_property
    def processor_mbps(self) -> Floats:
        """(switches,) traffic of groups that the processor of each switch has to forward."""
        slow = ~self.floods
        load = self.problem.rate_mbps[self.group[slow]] * self.share[slow]
        return np.bincount(self.switch[slow], load, minlength=len(self.problem.wiring.switches)).astype(float)

    @cached_property
    def dropped(self) -> Floats:
        """(switches,) share of this that the processor drops."""
        load = self.processor_mbps
        kept = np.divide(
            self.problem.processor_mbps,
            load,
            out=np.ones_like(load),
            where=load > self.problem.processor_mbps,
        )
        return np.asarray(1.0 - kept)

    def member_losses(self) -> Floats:
        """Return the share of its group's packets that each member misses, (members,).

        A packet passes an aggregation switch of the source's pod, the first with a member, where members are
        at several edge switches; a core and an aggregation switch of the other pod; and the member's edge
        switch.
        """
        problem, wires = self.problem, self.problem.wiring
        cores, first = wires.layer_starts
        lost = np.where(self.floods, 0.0, self.dropped[self.switch] * self.share)
        groups = len(problem.groups)
        at_core = self.switch < cores
        at_edge = self.switch >= first
        above = ~at_core & ~at_edge
        by_core = np.bincount(self.group[at_core], lost[at_core], minlength=groups)
        by_pod = np.zeros((groups, wires.pods))
        pod = wires.aggregation_pod[self.switch[above] - cores]
        np.add.at(by_pod, (self.group[above], pod), lost[above])
        spread = problem.spread
        source = np.minimum.reduceat(spread.edge, spread.start[:-1]).astype(np.int64)
        home, several = wires.edge_pod[source], np.diff(spread.start) > 1
        group, edge = problem.group_of.astype(np.int64), problem.edge_of_host[problem.host_of]
        here, start = wires.edge_pod[edge], home[group]
        passes = np.where(several[group], 1.0 - by_pod[group, start], 1.0)
        passes *= np.where(here != start, (1.0 - by_core[group]) * (1.0 - by_pod[group, here]), 1.0)
        key = self.group[at_edge] * len(wires.edges) + (self.switch[at_edge] - first)
        if len(key):
            order = np.argsort(key)
            member = group * len(wires.edges) + edge
            index = np.minimum(np.searchsorted(key[order], member), len(key) - 1)
            passes *= np.where(key[order][index] == member, 1.0 - lost[at_edge][order][index], 1.0)
        return np.asarray(1.0 - passes)

    def flood(self) -> Flooding:
        """Return the traffic that goes to hosts, edge switches and pods without members of its group."""
        problem, wires = self.problem, self.problem.wiring
        cores, first = wires.layer_starts
        domains = Domains.of(problem)
        rate = problem.rate_mbps[self.group] * self.share
        at_core, at_edge = (self.floods & mask for mask in (self.switch < cores, self.switch >= first))
        above = self.floods & (self.switch >= cores) & (self.switch < first)
        edge, group = self.switch[at_edge] - first, self.group[at_edge]
        others = domains.at(group, edge) & ~member_ports(problem, group, edge)
        to_hosts = [(edge, rate[at_edge], others)]
        entering, to_pods = self._enter_pods(domains, self.group[at_core], rate[at_core])
        flooding = (self.switch[above] - cores, self.group[above], rate[above])
        switch, group, rate = (np.concatenate(column) for column in zip(flooding, entering, strict=True))
        to_edges = np.zeros((len(wires.aggregations), problem.edge_count))
        pod = wires.aggregation_pod[switch]
        start = np.searchsorted(wires.edge_pod, pod)
        size = np.bincount(wires.edge_pod, minlength=wires.pods)[pod]
        for number in range(int(wires.edge_in_pod.max()) + 1):
            edge = np.minimum(start + number, problem.edge_count - 1)
            hosts = domains.at(group, edge)
            here = (number < size) & (hosts > 0) & (member_ports(problem, group, edge) == 0)
            np.add.at(to_edges, (switch[here], edge[here]), rate[here])
            to_hosts.append((edge[here], rate[here], hosts[here]))
        edge, rate, ports = (np.concatenate(column) for column in zip(*to_hosts, strict=True))
        return Flooding(edge=edge, rate_mbps=rate, ports=ports, to_edges_mbps=to_edges, to_pods_mbps=to_pods)

    def _enter_pods(
        self, domains: Domains, group: Ints, rate: Floats
    ) -> tuple[tuple[Ints, Ints, Floats], float]:
        """Return packets of flooding cores at aggregation switches of pods without members, and their sum.

        Each has an aggregation switch, a group and its rate there, Mbit/s; the sum is of core links, Mbit/s.

        group, rate  of pairs at cores
        """
        problem, wires = self.problem, self.problem.wiring
        groups, position = np.unique(group, return_inverse=True)
        flooded = np.bincount(position.ravel(), rate, minlength=len(groups)).astype(float)
        starts = np.searchsorted(wires.edge_pod, np.arange(wires.pods))
        has_hosts = np.bitwise_or.reduceat(domains.masks, starts, axis=1) > 0
        row, pod = np.nonzero(has_hosts[domains.of_group[groups]] & (problem.edges_in_pod[groups] == 0))
        group, rate = groups[row], flooded[row]
        size = np.bincount(wires.aggregation_pod, minlength=wires.pods)[pod]
        first = np.searchsorted(wires.aggregation_pod, pod)
        parts = [(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64), np.zeros(0))]
        for number in range(int(size.max(initial=0))):
            switch = np.minimum(first + number, len(wires.aggregations) - 1)
            share = passing_shares(problem, self.partition, self.copies, switch + len(wires.cores), group)
            here = (number < size) & (share > 0)
            parts.append((switch[here], group[here], (rate * share)[here]))
        switch, of, mbps = (np.concatenate(column) for column in zip(*parts, strict=True))
        return (switch, of, mbps), float(rate.sum())


@dataclass(frozen=True, kw_only=True, eq=False)
class Flooding:
    """Traffic of flooded groups beyond the trees of their members.

    edge, rate_mbps, ports  (n,) what an edge switch sends to ports, as bits, of hosts that are no members
    to_edges_mbps           (aggregation switches, edge switches) to edge switches without members
    to_pods_mbps            from cores to pods without members, sum
    """

    edge: Ints
    rate_mbps: Floats
    ports: Masks
    to_edges_mbps: Floats
    to_pods_mbps: float


def member_ports(problem: Multicast, group: Ints, edge: Ints) -> Masks:
    """Return the ports of edge switches with members of groups, (n,), as bits; 0 for none."""
    count = len(problem.groups)
    at, of, ports = problem.at_edge
    key, sought = at * count + of, edge * count + group  # sorted by edge switch, then group
    index = np.minimum(np.searchsorted(key, sought), len(key) - 1)
    return np.where(key[index] == sought, ports[index], np.uint64(0))


def passing_shares(problem: Multicast, partition: Ints, copies: Ints, switch: Ints, group: Ints) -> Floats:
    """Return the part of each group's packets that passes each switch above its tree's edges, (n,).

    It is 1 at edge switches, equal at the switches of a pod, or the cores, that hold the group's partition,
    and 0 at others there.

    partition, copies  (G,) of each group
    """
    wires = problem.wiring
    cores, first = wires.layer_starts
    share = np.ones(len(switch))
    for ra in np.unique(copies[group]).tolist():
        if not ra:
            continue
        held = problem.distribution(ra)
        holders = np.zeros((wires.pods, held.partitions))
        np.add.at(holders, wires.aggregation_pod, held.aggregation)
        of = partition[group]
        at_core = np.flatnonzero((copies[group] == ra) & (switch < cores))
        share[at_core] = held.core[switch[at_core], of[at_core]] / held.core.sum(axis=0)[of[at_core]]
        above = np.flatnonzero((copies[group] == ra) & (switch >= cores) & (switch < first))
        aggregation = switch[above] - cores
        count = holders[wires.aggregation_pod[aggregation], of[above]]
        share[above] = held.aggregation[aggregation, of[above]] / count
    return share


def flooded_mbps(problem: Multicast, partition: Ints, copies: Ints, switch: Ints, group: Ints) -> Floats:
    """Return the traffic to hosts that are no members if a switch floods a group, (n,) pairs, Mbit/s.

    An edge switch floods its other hosts of the tenant; an aggregation switch those of the edge switches of
    its pod without members; a core those of the pods without members.

    partition, copies  (G,) of each group
    """
    wires = problem.wiring
    cores, first = wires.layer_starts
    domains = Domains.of(problem)
    hosts = np.bitwise_count(domains.masks).astype(np.int64)
    starts = np.searchsorted(wires.edge_pod, np.arange(wires.pods))
    in_pods = np.add.reduceat(hosts, starts, axis=1)  # (D, pods)
    edge, of, _ = problem.at_edge
    covered = np.zeros((len(problem.groups), wires.pods), dtype=np.int64)  # at edge switches with members
    np.add.at(covered, (of, wires.edge_pod[edge]), hosts[domains.of_group[of], edge])
    of_group = np.where(problem.edges_in_pod == 0, in_pods[domains.of_group], 0).sum(axis=1)
    count = of_group[group]
    at_edge, above = switch >= first, (switch >= cores) & (switch < first)
    of, edge = group[at_edge], switch[at_edge] - first
    count[at_edge] = np.bitwise_count(domains.at(of, edge) & ~member_ports(problem, of, edge))
    pod, of = wires.aggregation_pod[switch[above] - cores], group[above]
    count[above] = in_pods[domains.of_group[of], pod] - covered[of, pod]
    share = passing_shares(problem, partition, copies, switch, group)
    return np.asarray(problem.rate_mbps[group] * share * count)


def require_overflow(problem: Multicast, partitions: pd.DataFrame, overflow: pd.DataFrame) -> None:
    """Raise PlanRejected for an unknown switch or group, one twice, or a group that is not at the switch."""
    pairs = Overflow.of(problem, partitions, overflow)
    names = overflow[["switch", "group"]].astype(str)
    for column, rows in (("switch", pairs.switch), ("group", pairs.group)):
        if (rows < 0).any():
            row = int(np.argmax(rows < 0))
            raise PlanRejected(
                f"overflow row {row + 1}: '{names[column].iloc[row]}' is no {column} of the problem"
            )
    count = len(problem.groups)
    stored = stored_pairs(problem, pairs.partition, pairs.copies)
    key = pairs.switch * count + pairs.group
    strange = ~np.isin(key, stored.switch * count + stored.group)
    if strange.any():
        row = int(np.argmax(strange))
        switch, group = names.iloc[row]
        raise PlanRejected(f"overflow row {row + 1}: {group} needs no entry at {switch}")
    if len(np.unique(key)) < len(key):
        raise PlanRejected("overflow: a group is there twice at a switch")


def select_entries(problem: Multicast, stored: StoredPairs, value: Floats) -> Bools:
    """Return the pairs that have an entry, (n,): at each switch those of the largest values, or the first."""
    order = np.lexsort((stored.group, -value, stored.switch))
    switch = stored.switch[order]
    nth = np.arange(len(switch)) - np.searchsorted(switch, switch)
    selected = np.zeros(len(switch), dtype=bool)
    selected[order] = nth < problem.free_entries[switch]
    return selected
