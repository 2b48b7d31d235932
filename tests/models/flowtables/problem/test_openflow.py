"""Text of OpenFlow: rules of a dump, what is refused, and rules written and read again."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from planner.errors import InputError
from planner_models.flowtables import FlowTables
from planner_models.flowtables.plan.check import classify_headers
from planner_models.flowtables.problem.generators import small, table_1
from planner_models.flowtables.problem.openflow import format_rules, read_megaflow, read_rules
from planner_models.flowtables.problem.readers import read_openflow

DUMP = """NXST_FLOW reply (xid=0x4):
 cookie=0x0, duration=0.017s, n_packets=3, priority=5,tcp,nw_dst=10.0.0.0/8,tp_dst=80 actions=output:1
 cookie=0x0, duration=0.012s, table=0, n_packets=0, n_bytes=0, idle_age=0, priority=5,arp actions=NORMAL
 priority=1,ip actions=resubmit(,1)
 cookie=0x0, table=1, ip,nw_src=1.0.0.0/255.0.0.255 actions=mod_nw_dst:1.1.1.1,output:"p2"
 table=1, priority=2,udp6,ipv6_dst=2001:db8::/32,dl_vlan=7,tp_src=0x400/0xfc00 actions=CONTROLLER:65535
"""
TRACE = """Flow: tcp,in_port=5
Megaflow: recirc_id=0,eth,tcp,in_port=5,nw_dst=9.1.1.1,nw_frag=no,tp_src=0x0/0xfff8
Datapath actions: 4
"""


def test_a_dump_has_rules_and_the_fields_that_they_match() -> None:
    rules, fields = read_rules(DUMP, "dump")
    assert rules.to_numpy().tolist() == [
        [5.0, "eth_type=0x0800 ip_proto=6 ip_dst=10.0.0.0/8 tp_dst=80", "out:1", 0.0],
        [5.0, "eth_type=0x0806", "out:NORMAL", 0.0],
        [1.0, "eth_type=0x0800", "goto:1", 0.0],
        [32768.0, "eth_type=0x0800 ip_src=1.0.0.0/255.0.0.255", "set:mod_nw_dst:1.1.1.1 out:p2", 1.0],
        [
            2.0,
            "eth_type=0x86dd ip_proto=17 ipv6_dst=2001:db8::/32 tp_src=0x400/0xfc00 vlan_tci=0x1007/0x1fff",
            "controller",
            1.0,
        ],
    ]
    tries = dict(zip(fields["field"], fields["prefix"], strict=True))
    assert tries == {
        "eth_type": 0, "vlan_tci": 0, "ip_src": 0, "ip_dst": 1, "ipv6_dst": 1, "ip_proto": 0, "tp_src": 1,
        "tp_dst": 1,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        (
            "priority=1,tcp,nw_dtt=1.1.1.1 actions=drop",
            "there is no field 'nw_dtt' that is read; did you mean",
        ),
        ("priority=1,tpc actions=drop", "'tpc' is no protocol that is read; did you mean 'tcp'?"),
        ("priority=70000,ip actions=drop", "priority is '70000', must be a number from 0 to 65535"),
        ("priority=1,ip", "has no 'actions=', must be a line of ovs-ofctl dump-flows"),
        ("ip,nw_dst=1.1.1.1/40 actions=drop", "prefix length 40 of ip_dst must be at most 32"),
        ("ip actions=group:7", "action 'group:7' is not supported; these are: drop, output"),
        ("ip actions=output:1,goto_table:2", "do more than go to a table, must only go to it"),
        ("in_port=p1 actions=drop", "in_port is p1, must be a number; dump with --no-names"),
        ("dl_vlan=5000 actions=drop", "dl_vlan is 5000, must be from 0 to 4095"),
    ],
)
def test_what_is_no_rule_is_refused_with_its_row(line: str, fault: str) -> None:
    with pytest.raises(InputError) as error:
        read_rules(f"# rules\n{line}\n", "flows.txt")
    assert str(error.value).startswith("flows.txt row 2: ")
    assert fault in str(error.value)
    with pytest.raises(InputError, match=r"flows\.txt: has no rules"):
        read_rules("NXST_FLOW reply (xid=0x4):\n", "flows.txt")


def test_faults_of_rules_name_the_line_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "flows.txt"
    path.write_text("priority=1,ip actions=drop\n\npriority=1,tcp actions=output:1\n")
    with pytest.raises(InputError, match=r"flows\.txt row 3: overlaps row 1 of the same priority 1"):
        read_openflow(path=path)
    path.write_text("ip actions=resubmit(,3)\n")
    with pytest.raises(InputError, match=r"flows\.txt row 1: action 'goto:3' goes to a table without rules"):
        read_openflow(path=path)


@pytest.mark.parametrize("make", [small, partial(table_1, connections=100)], ids=["small", "table_1"])
def test_written_rules_are_read_again(make: Callable[[], FlowTables]) -> None:
    problem = make()
    rules, fields = read_rules(format_rules(problem), "rules")
    kind = "" if "eth_type" in problem.layout.by_name else "eth_type=0x0800 "
    headers = [kind + text for text in problem.flows["header"]]
    fields = fields if problem.fields is None else problem.fields
    again = FlowTables(rules=rules, fields=fields, flows=problem.flows.assign(header=headers))
    first = [problem.actions[number] for number in classify_headers(problem, problem.headers)]
    assert first == [again.actions[number] for number in classify_headers(again, again.headers)]


def test_connections_are_drawn_with_the_fields_that_their_packets_have(tmp_path: Path) -> None:
    path = tmp_path / "flows.txt"
    path.write_text(DUMP.replace("255.0.0.255", "8"))
    problem = read_openflow(path=path, connections=50)
    layout = problem.layout
    for header in layout.to_numbers(problem.headers):
        assert layout.clear_absent(header) == header
    assert len(set(problem.flows["header"])) > 10


def test_an_entry_of_a_trace_is_read_on_the_fields_of_a_layout() -> None:
    layout = table_1(connections=10).layout
    found = read_megaflow(TRACE, layout)
    assert (
        layout.format_match(found.value, found.mask) == "eth_type=0x800 ip_dst=9.1.1.1 ip_proto=6 tp_src=0/13"
    )
    assert found.actions == "4"
    with pytest.raises(InputError, match="has no line 'Megaflow'"):
        read_megaflow("", layout)
