"""Rules of OpenFlow for a plan: group tables that copy packets downwards and fail over upwards.

A switch has a group of type `all` for each set of ports below it that some multicast group needs, and a group
of type `ff` (fast failover) for each list of switches above it: the first whose link works gets the packet.
Packets from below and from above differ by their metadata, set in table 0; table 1 has a rule for each
multicast group and direction. Members at the sender's edge switch get their copy there, not from above.

source  "Scaling IP Multicast on Datacenter Topologies", 3.3 (backup rules, as group tables of OpenFlow 1.1)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import pandas as pd

from planner.arrays import Ints
from planner.errors import InputError
from planner_models.multicast.plan.forwarding import ForwardingTables, compile_tables
from planner_models.multicast.plan.plan import Channels
from planner_models.multicast.plan.switch_groups import group_assignment
from planner_models.multicast.problem.problem import Multicast
from planner_models.multicast.problem.topology import Distribution

FROM_ABOVE: Final = 1
"""Metadata of packets that came from a switch above."""
MOST_PARTITIONS: Final = 256
MOST_OF_PARTITION: Final = 65_536


def write_rules(problem: Multicast, plan: Channels) -> dict[str, str]:
    """Return the groups and flows of each switch, by its name, as lines for `ovs-ofctl -O OpenFlow13`.

    Lines that begin with `group_id` are for `add-groups`, the others for `add-flows`. Ports are those of
    `list_ports`, addresses those of `list_addresses`.

    raises  InputError for a plan with shared entries, headers or groups without entries
    """
    _require_own_entries(plan)
    tables = compile_tables(problem, plan)
    listed = list_addresses(plan)
    address = dict(zip(listed["group"].astype(str), listed["address"].astype(str), strict=True))
    fabric = _Fabric.of(problem, plan, tables)
    return {
        name: "\n".join(_write_switch(fabric, switch, address)) + "\n"
        for switch, name in enumerate(problem.wiring.switches)
    }


def write_files(problem: Multicast, plan: Channels) -> dict[str, str]:
    """Return groups and flows of each switch, and the tables of addresses and ports, by the names of files.

    raises  InputError as `write_rules` does
    """
    files = {}
    for switch, text in write_rules(problem, plan).items():
        lines = text.splitlines(keepends=True)
        groups = [line for line in lines if line.startswith("group_id=")]
        files[f"{switch}.groups.txt"] = "".join(groups)
        files[f"{switch}.flows.txt"] = "".join(lines[len(groups) :])
    tables = {"addresses": list_addresses(plan), "ports": list_ports(problem)}
    return files | {f"{name}.csv": frame.to_csv(index=False) for name, frame in tables.items()}


def list_addresses(plan: Channels) -> pd.DataFrame:
    """Return the address of each group with entries: 239, its partition, and its number within this.

    raises  InputError for more partitions or groups of one than addresses have
    """
    frame = plan.partitions[["group", "partition"]]
    number = frame.groupby("partition").cumcount()
    for count, limit, what in (
        (frame["partition"].max(), MOST_PARTITIONS, "partitions"),
        (number.max(), MOST_OF_PARTITION, "groups in a partition"),
    ):
        if len(frame) and count >= limit:
            raise InputError(
                f"plan: has more than {limit:,} {what}, which addresses 239.x.x.x cannot tell apart"
            )
    text = [
        f"239.{int(partition)}.{row >> 8}.{row & 255}"
        for partition, row in zip(frame["partition"], number.tolist(), strict=True)
    ]
    return pd.DataFrame({"group": frame["group"].to_numpy(object), "address": text})


def list_ports(problem: Multicast) -> pd.DataFrame:
    """Return switch, port and neighbour of every link: first the ports below a switch, then those above."""
    wires, rows = problem.wiring, []
    hosts = _host_ports(problem)
    host_names = problem.hosts["host"].to_numpy(object)
    port = problem.hosts["port"].to_numpy(np.int64)
    rows += [
        (str(wires.edges[edge]), int(number) + 1, str(host))
        for edge, number, host in zip(problem.edge_of_host, port, host_names, strict=True)
    ]
    for a, name in enumerate(wires.aggregations):
        edges = np.flatnonzero(wires.edge_pod == wires.aggregation_pod[a])
        number = int(np.count_nonzero(wires.aggregation_pod[:a] == wires.aggregation_pod[a]))
        for i, edge in enumerate(edges.tolist()):
            rows.append((str(name), i + 1, str(wires.edges[edge])))
            rows.append((str(wires.edges[edge]), hosts + number + 1, str(name)))
        for i, core in enumerate(np.flatnonzero(wires.up[a]).tolist()):
            rows.append((str(name), len(edges) + i + 1, str(wires.cores[core])))
    for core, name in enumerate(wires.cores):
        for i, a in enumerate(np.flatnonzero(wires.up[:, core]).tolist()):
            rows.append((str(name), i + 1, str(wires.aggregations[a])))
    return pd.DataFrame(rows, columns=["switch", "port", "neighbour"])


def _host_ports(problem: Multicast) -> int:
    """Return the number of ports for hosts of every edge switch."""
    return int(problem.hosts["port"].max()) + 1


def _require_own_entries(plan: Channels) -> None:
    """Raise InputError for a plan whose packets are rewritten, or forwarded without an entry."""
    rule = (
        "rules can be written for plans in which each group has entries of its own, as of design partitioned"
    )
    if len(plan.meta_groups):
        switch = plan.meta_groups["switch"].iloc[0]
        raise InputError(f"plan: groups share an entry at {switch}; {rule}")
    if plan.headers is not None and len(plan.headers):
        raise InputError(f"plan: headers carry group {plan.headers['group'].iloc[0]}; {rule}")
    if plan.overflow is not None and len(plan.overflow):
        row = plan.overflow.iloc[0]
        raise InputError(f"plan: group {row['group']} has no entry at {row['switch']}; {rule}")


@dataclass(frozen=True, kw_only=True)
class _Fabric:
    """Entries of a plan, and who holds the partition of each group.

    entries  group and ports of each switch
    port     of each switch by neighbour, by their names
    """

    problem: Multicast
    partition: Ints
    copies: Ints
    entries: dict[int, list[tuple[int, int]]]
    has_entry: frozenset[tuple[int, int]]
    port: dict[str, dict[str, int]]

    @classmethod
    def of(cls, problem: Multicast, plan: Channels, tables: ForwardingTables) -> _Fabric:
        partition, copies = group_assignment(problem, plan.partitions)
        entries: dict[int, list[tuple[int, int]]] = {}
        for switch, group, ports in tables.rules[["switch", "address", "ports"]].itertuples(index=False):
            entries.setdefault(int(switch), []).append((int(group), int(ports)))
        port: dict[str, dict[str, int]] = {str(name): {} for name in problem.wiring.switches}
        for switch, number, neighbour in list_ports(problem).itertuples(index=False):
            port[switch][neighbour] = int(number)
        return cls(
            problem=problem,
            partition=partition,
            copies=copies,
            entries=entries,
            has_entry=frozenset(zip(tables.rules["switch"], tables.rules["address"], strict=True)),
            port=port,
        )

    def held(self, group: int) -> Distribution:
        return self.problem.distribution(int(self.copies[group]))

    def holders(self, group: int, pod: int) -> list[int]:
        """Return the aggregation switches of a pod that hold the group's partition."""
        is_holder = self.held(group).aggregation[:, self.partition[group]]
        return np.flatnonzero(is_holder & (self.problem.wiring.aggregation_pod == pod)).tolist()

    def roots(self, group: int, aggregation: int) -> list[int]:
        """Return the cores with the group that an aggregation switch reaches."""
        wires = self.problem.wiring
        linked = np.flatnonzero(wires.up[aggregation] & self.held(group).core[:, self.partition[group]])
        return [core for core in linked.tolist() if (core, group) in self.has_entry]

    def ports_below(self, switch: int, group: int, ports: int) -> list[int]:
        """Return the numbers of the ports of an entry, whose bits are pods, edge switches or hosts."""
        wires = self.problem.wiring
        bits = [bit for bit in range(64) if ports >> bit & 1]
        if switch >= len(wires.cores):
            return [bit + 1 for bit in bits]
        name = str(wires.cores[switch])
        return [
            self.port[name][str(wires.aggregations[a])]
            for pod in bits
            for a in [a for a in self.holders(group, pod) if wires.up[a, switch]][:1]
        ]

    def ports_above(self, switch: int, group: int) -> list[int]:
        """Return the ports to the switches above that take the group on, the first one in turn by group."""
        wires = self.problem.wiring
        first_aggregation, first_edge = wires.layer_starts
        name = str(wires.switches[switch])
        if switch >= first_edge:
            pod = int(wires.edge_pod[switch - first_edge])
            holders = self.holders(group, pod)
            stored = [a for a in holders if (first_aggregation + a, group) in self.has_entry]
            above = [str(wires.aggregations[a]) for a in stored if self.roots(group, a)]
            above = above or [str(wires.aggregations[a]) for a in stored]
        elif switch >= first_aggregation:
            above = [str(wires.cores[core]) for core in self.roots(group, switch - first_aggregation)]
        else:
            above = []
        turn = group % len(above) if above else 0
        return [self.port[name][other] for other in above[turn:] + above[:turn]]


@dataclass(kw_only=True)
class _Groups:
    """Groups of one switch's table, numbered as they are asked for."""

    number: dict[tuple[str, tuple[int, ...]], int] = field(default_factory=dict)

    def action(self, kind: str, ports: list[int]) -> str:
        """Return the action that sends to all of some ports, or to the first that works."""
        if len(ports) == 1:
            return f"output:{ports[0]}"
        return f"group:{self.number.setdefault((kind, tuple(ports)), len(self.number) + 1)}"

    def lines(self) -> Iterator[str]:
        for (kind, ports), number in self.number.items():
            buckets = [
                f"bucket=watch_port:{port},output:{port}" if kind == "ff" else f"bucket=output:{port}"
                for port in ports
            ]
            yield f"group_id={number},type={kind},{','.join(buckets)}"


def _write_switch(fabric: _Fabric, switch: int, address: dict[str, str]) -> list[str]:
    """Return the lines of one switch: groups, then flows."""
    wires, names = fabric.problem.wiring, fabric.problem.group_names
    groups, flows = _Groups(), []
    above = set(wires.aggregations if switch >= wires.layer_starts[1] else wires.cores)
    name = str(wires.switches[switch])
    for neighbour, port in fabric.port[name].items():
        if neighbour in above:
            flows.append(
                f"table=0,priority=10,in_port={port},actions=write_metadata:{FROM_ABOVE},goto_table:1"
            )
    flows.append("table=0,priority=0,actions=goto_table:1")
    for group, ports in fabric.entries.get(switch, []):
        down = groups.action("all", fabric.ports_below(switch, group, ports))
        up = fabric.ports_above(switch, group)
        match = f"table=1,priority=10,ip,nw_dst={address[str(names[group])]}"
        flows.append(f"{match},metadata={FROM_ABOVE},actions={down}")
        both = f"{down},{groups.action('ff', up)}" if up else down
        flows.append(f"{match},metadata=0,actions={both}")
    return [*groups.lines(), *flows]
