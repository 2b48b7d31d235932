"""Rules of OpenFlow, read by a switch of their own: each member gets a packet once, also where links fail."""

from __future__ import annotations

import re
from collections import Counter, deque

import pandas as pd
import pytest

from planner.errors import InputError
from planner_models.multicast import Channels, Multicast
from planner_models.multicast.designs import partitioned, partitioned_aggregated
from planner_models.multicast.plan.openflow_groups import list_addresses, list_ports, write_rules
from tests.models.multicast.fabrics import fat_of_kind


class Switch:
    """A switch that knows nothing but its lines; ports in `dead` do not work."""

    def __init__(self, text: str) -> None:
        self.groups: dict[int, tuple[str, list[int]]] = {}
        self.flows: list[tuple[int, int, dict[str, str], list[str]]] = []
        self.dead: set[int] = set()
        for line in text.splitlines():
            if line.startswith("group_id="):
                kind = re.search(r"type=(\w+)", line)
                assert kind is not None
                ports = [int(port) for port in re.findall(r"output:(\d+)", line)]
                self.groups[int(line[9 : line.index(",")])] = kind.group(1), ports
                continue
            match, _, actions = line.partition(",actions=")
            fields = dict(part.split("=") for part in match.split(",") if "=" in part)
            table, priority = int(fields.pop("table")), int(fields.pop("priority"))
            self.flows.append((table, priority, fields, actions.split(",")))

    def receive(self, port: int, address: str) -> list[int]:
        """Return the ports to which a packet goes; never the one from which it came."""
        packet = {"in_port": str(port), "nw_dst": address, "metadata": "0"}
        sent: list[int] = []
        table: int | None = 0
        while table is not None:
            flows = [flow for flow in self.flows if flow[0] == table and flow[2].items() <= packet.items()]
            if not flows:
                break
            table = None
            for action in max(flows, key=lambda flow: flow[1])[3]:
                verb, _, value = action.partition(":")
                if verb == "write_metadata":
                    packet["metadata"] = value
                elif verb == "goto_table":
                    table = int(value)
                elif verb == "output":
                    sent.append(int(value))
                else:
                    kind, ports = self.groups[int(value)]
                    live = [each for each in ports if each not in self.dead]
                    sent += live[:1] if kind == "ff" else ports
        return [each for each in sent if each != port and each not in self.dead]


class Network:
    """Switches, and their links by port."""

    def __init__(self, problem: Multicast, plan: Channels) -> None:
        ports = list_ports(problem)
        self.switches = {name: Switch(text) for name, text in write_rules(problem, plan).items()}
        self.neighbour = {(s, p): n for s, p, n in ports.itertuples(index=False)}
        self.port = {(s, n): p for s, p, n in ports.itertuples(index=False)}
        assert len(self.neighbour) == len(self.port) == len(ports)

    def deliver(self, host: str, address: str) -> Counter[str]:
        """Return the copies that each host gets of a packet from one of them."""
        edge = next(switch for (switch, _), name in self.neighbour.items() if name == host)
        queue, received = deque([(edge, host)]), Counter[str]()
        for _ in range(10_000):
            if not queue:
                return received
            switch, source = queue.popleft()
            for port in self.switches[switch].receive(self.port[switch, source], address):
                target = self.neighbour[switch, port]
                if target in self.switches:
                    queue.append((target, switch))
                else:
                    received[target] += 1
        raise AssertionError("packets circle")


def members(problem: Multicast, group: str) -> list[str]:
    return problem.members.loc[problem.members["group"] == group, "host"].tolist()


@pytest.mark.parametrize(
    ("kind", "k", "copies"), [("ab", 4, 1), ("ab", 4, 2), ("standard", 4, 1), ("portland", 8, 2)]
)
def test_every_member_gets_each_packet_once(kind: str, k: int, copies: int) -> None:
    problem = fat_of_kind(kind, k, copies, 1)
    plan = partitioned.partition_addresses(problem).plan
    assert plan is not None
    network = Network(problem, plan)
    for group, address in list_addresses(plan).itertuples(index=False):
        hosts = members(problem, group)
        for sender in hosts[:3]:
            assert network.deliver(sender, address) == Counter(set(hosts) - {sender})


def test_a_failed_link_up_is_left_by_the_switch_alone_where_another_holds_the_group() -> None:
    problem = fat_of_kind("ab", 4, 2, 1)
    plan = partitioned.partition_addresses(problem).plan
    assert plan is not None
    network = Network(problem, plan)
    moved = 0
    for group, address in list_addresses(plan).itertuples(index=False):
        hosts = members(problem, group)
        edge = next(switch for (switch, _), name in network.neighbour.items() if name == hosts[0])
        up = [port for (switch, port), name in network.neighbour.items() if switch == edge and "agg" in name]
        used = [
            port
            for port in network.switches[edge].receive(network.port[edge, hosts[0]], address)
            if port in up
        ]
        for port in used:
            network.switches[edge].dead = {port}
            assert network.deliver(hosts[0], address) == Counter(set(hosts) - {hosts[0]})
            network.switches[edge].dead = set()
            moved += 1
    assert moved


def test_plans_with_shared_entries_are_refused() -> None:
    problem = fat_of_kind("ab", 4, 1, 1)
    plan = partitioned_aggregated.partition_and_share(problem).plan
    assert plan is not None
    assert len(plan.meta_groups)
    with pytest.raises(InputError, match=r"groups share an entry at .*own, as of design partitioned"):
        write_rules(problem, plan)


def test_addresses_have_no_more_partitions_than_a_byte_tells_apart() -> None:
    rows = pd.DataFrame({"group": ["a", "b"], "partition": [0, 256], "copies": [1, 1]})
    plan = Channels(partitions=rows, meta_groups=rows.iloc[:0], entries=rows.iloc[:0])
    with pytest.raises(InputError, match="has more than 256 partitions, which addresses"):
        list_addresses(plan)
    first = list_addresses(Channels(partitions=rows[:1], meta_groups=rows.iloc[:0], entries=rows.iloc[:0]))
    assert first["address"].tolist() == ["239.0.0.0"]
