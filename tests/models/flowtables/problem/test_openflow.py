"""Text of OpenFlow: rules of a dump, what is refused, and rules written and read again."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from planner.contract.notes import observe_notes
from planner.errors import InputError
from planner_models.flowtables import SYSTEM, FlowTables, check, measure
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
        [32768.0, "eth_type=0x0800 ip_src=1.0.0.0/255.0.0.255", "set:ip_dst=1.1.1.1 out:p2", 1.0],
        [
            2.0,
            "eth_type=0x86dd ip_proto=17 ipv6_dst=2001:db8::/32 tp_src=0x400/0xfc00 vlan_tci=0x1007/0x1fff",
            "controller",
            1.0,
        ],
    ]
    tries = dict(zip(fields["field"], fields["prefix"], strict=True))
    assert tries == {
        "in_port": 0, "eth_src": 0, "eth_dst": 0, "eth_type": 0, "vlan_tci": 0, "ip_src": 0, "ip_dst": 1,
        "ipv6_dst": 0, "ip_proto": 0, "nw_frag": 0, "ipv6_frag": 0, "tp_src": 1, "tp_dst": 1,
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
        ("ip actions=group:7", "action 'group:7' is not modelled: group needs groups, whose buckets are"),
        ("ip actions=ct(commit,table=4)", "action 'ct(commit,table=4)' is not modelled: ct needs connection"),
        (
            "ip actions=learn(table=1,NXM_OF_ETH_SRC[]),output:1",
            "is not modelled: learn needs rules that packets",
        ),
        (
            "ip actions=conjunction(3,1/2)",
            "action 'conjunction(3,1/2)' is not modelled: conjunction needs conj",
        ),
        (
            "conj_id=3,ip actions=drop",
            "field 'conj_id' is not modelled (conjunctions): leave these rules out",
        ),
        ("tun_metadata0=1 actions=drop", "field 'tun_metadata0' is not modelled (options of tunnels)"),
        ("ip actions=set_feild:1->reg0", "is not supported; these are: drop, output, goto_table, resubmit"),
        ("ip actions=load:9->NXM_NX_REG0[0..2]", "9 does not fit into the 3 bits"),
        (
            "ip actions=resubmit(,Forward)",
            "table 'Forward', must be a number from 0 to 254; dump with ovs-ofctl",
        ),
        (
            "table=Classify,ip actions=drop",
            "table is 'Classify', must be a number from 0 to 254; dump with ovs-of",
        ),
        (f"ip actions=resubmit({'9' * 300},1)", "has port 99999999"),
        ("ip actions=resubmit(p1,1)", "resubmit(p1,1) has port p1, must be a number; dump with ovs-ofctl"),
        (
            "in_port=p1 actions=drop",
            "in_port is p1, must be a number; dump with ovs-ofctl --no-names dump-flows",
        ),
        ("ip actions=pop:NXM_NX_REG0[]", "takes a value from the stack of another rule"),
        ("ip actions=push:NXM_NX_REG0[],output:1", "leaves values on the stack for other rules"),
        ("ct_state=+nwe actions=drop", "ct_state has no flag 'nwe'; did you mean 'new'?"),
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


def test_a_table_without_rules_drops_and_is_named(tmp_path: Path) -> None:
    problem, notes = read(tmp_path, "ip actions=resubmit(,3)\n", ["ip"])
    assert actions_of(problem) == ["drop"]
    assert any("tables 3 have no rules in flows.txt" in note for note in notes)


def read(folder: Path, rules: str, headers: list[str]) -> tuple[FlowTables, list[str]]:
    """Return the problem of rules and headers as text, and the notes on its data."""
    (folder / "flows.txt").write_text(rules)
    (folder / "flows.csv").write_text("header\n" + "".join(f'"{header}"\n' for header in headers))
    notes: list[str] = []
    with observe_notes(notes.append):
        problem = read_openflow(path=folder / "flows.txt", flows=folder / "flows.csv")
    return problem, notes


def actions_of(problem: FlowTables) -> list[str]:
    return [problem.actions[number] for number in classify_headers(problem, problem.headers)]


def entries_of(problem: FlowTables, design: str = "all") -> tuple[int, int]:
    """Return the entries and masks of a design."""
    plan = SYSTEM.design(design).run(problem).plan
    assert plan is not None
    assert not len(check(problem, plan))
    return len(plan.megaflows), len(plan.masks)


ALL = ("all", "least_specific", "merged")


@pytest.mark.parametrize("design", ALL)
def test_port_of_input_type_and_fragments_are_always_matched(tmp_path: Path, design: str) -> None:
    headers = [
        f"in_port={port} eth_type={kind}" for port in (1, 2) for kind in ("0x0800", "0x86dd", "0x0806")
    ]
    problem, _ = read(tmp_path, "in_port=1,actions=2\nin_port=2,actions=1\n", headers)
    entries, masks = entries_of(problem, design)
    assert entries == 6
    assert masks == 3 or design == "merged"  # one mask for packets of all types serves, too


@pytest.mark.parametrize("design", ALL)
def test_normal_matches_addresses_of_ethernet_and_tags(tmp_path: Path, design: str) -> None:
    headers = [
        f"in_port={port} dl_src=02:00:00:00:00:0{port} dl_dst=02:00:00:00:01:{host:02x} dl_vlan={vlan} ip"
        for port in (1, 2)
        for host in range(5)
        for vlan in (3, 4)
    ]
    problem, _ = read(tmp_path, "priority=0 actions=NORMAL\n", headers)
    assert entries_of(problem, design) == (20, 1)


def test_normal_without_addresses_in_headers_takes_another_for_each(tmp_path: Path) -> None:
    headers = ["in_port=1 eth_src=02:00:00:00:00:01 eth_type=0x0800"] * 7
    problem, notes = read(tmp_path, "actions=NORMAL\n", headers)
    assert entries_of(problem) == (7, 1)
    assert any("eth_dst, which NORMAL matches exactly" in note and "would be 1" in note for note in notes)


@pytest.mark.parametrize("design", ALL)
def test_fields_that_actions_change_are_matched(tmp_path: Path, design: str) -> None:
    """Open vSwitch 3.1, ofproto/trace: an entry for each time to live and each address that is replaced."""
    rules = "priority=10,ip,nw_dst=10.0.0.0/24 actions=dec_ttl,mod_dl_dst:00:00:00:00:00:02,output:2\n"
    headers = [f"ip ip_dst=10.0.0.{host} nw_ttl={ttl}" for host in (1, 2, 3) for ttl in (64, 63, 128)]
    problem, _ = read(tmp_path, rules, headers)
    assert entries_of(problem, design) == (3, 1)
    assert set(actions_of(problem)) == {"set:dec_ttl set:eth_dst=00:00:00:00:00:02 out:2"}
    problem, notes = read(tmp_path, rules, ["ip ip_dst=10.0.0.1", "ip nw_dst=10.0.0.2"])
    assert entries_of(problem, design) == (1, 1)
    assert any("nw_ttl, which dec_ttl reads; all have 64" in note for note in notes)
    problem, _ = read(tmp_path, rules, ["ip ip_dst=10.0.0.1 nw_ttl=1", "ip ip_dst=10.0.0.1 nw_ttl=0"])
    assert actions_of(problem) == ["controller", "controller"]


def test_a_port_of_input_that_is_in_no_header_is_said(tmp_path: Path) -> None:
    _, notes = read(tmp_path, "ip actions=output:2\n", ["ip", "arp"])
    assert notes == ["assumed: no header of flows.csv has in_port, which every entry matches; all have 0"]
    with observe_notes(notes.append):
        read_openflow(path=tmp_path / "flows.txt", connections=10)
    assert notes[1:] == [
        "assumed: connections come from one port, as rules name none; every entry matches it"
    ]


def test_packets_to_the_controller_are_upcalls_each(tmp_path: Path) -> None:
    rules = "dl_type=0x88cc actions=CONTROLLER:65535\npriority=1,arp actions=output:1\n"
    problem, _ = read(tmp_path, rules, ["eth_type=0x88cc"] * 30 + ["arp"] * 10)
    result = {}
    for design in ALL:
        decision = SYSTEM.design(design).run(problem)
        result[design] = measure(problem, decision.plan, None)
        bound = decision.proof.bound
        assert bound is None or bound <= result[design]["cpu_per_connection_us"] * (1 + 1e-9)
    # 30 upcalls to the controller, 2 misses, each with lookups in one mask, and a lookup for each connection
    expected = (30 * 11.5 + 2 * (11.5 + 0.147) + 40 * 0.147) / 40
    assert result["all"]["cpu_per_connection_us"] == pytest.approx(expected)
    assert result["all"]["hit_rate"] == pytest.approx(100 * 9 / 40)
    assert result["all"]["to_controller"] == 30


def test_names_of_arp_are_its_own(tmp_path: Path) -> None:
    rules = """table=0,in_port=11,priority=100,actions=resubmit(,20)
table=0,priority=0,actions=normal
table=20,in_port=11,arp,nw_src=192.0.2.100,priority=50000,actions=normal
table=20,in_port=11,ip,nw_src=192.0.2.100,priority=45000,actions=normal
table=20,in_port=11,priority=40000,actions=drop
"""
    headers = [
        "in_port=11 arp arp_op=1 arp_spa=192.0.2.100",
        "in_port=11 arp nw_proto=1 nw_src=192.0.2.66",
        "in_port=11 tcp ip_src=192.0.2.100",
        "in_port=11 tcp nw_src=192.0.2.66",
    ]
    problem, _ = read(tmp_path, rules, headers)
    assert actions_of(problem) == ["out:NORMAL", "drop", "out:NORMAL", "drop"]


def test_fields_of_packets_that_no_rule_matches_are_named(tmp_path: Path) -> None:
    problem, notes = read(tmp_path, "in_port=7 actions=drop\n", ["in_port=1 ip ip_src=1.1.1.1 nw_ttl=3"])
    assert any("no rule of flows.txt matches ip_src, nw_ttl" in note for note in notes)
    assert entries_of(problem) == (1, 1)
    with pytest.raises(
        InputError, match=r"flows\.csv row 2.*: reg0 is a register, which packets do not have"
    ):
        read(tmp_path, "in_port=7 actions=drop\n", ["in_port=1 reg0=5"])
    with pytest.raises(InputError, match=r"no field 'ip_scr' that is read; did you mean 'ip_src'"):
        read(tmp_path, "in_port=7 actions=drop\n", ["in_port=1 ip_scr=1.1.1.1"])


@pytest.mark.parametrize(
    ("actions", "expected"),
    [
        ("load:0x2->NXM_NX_REG0[4..7],resubmit(,1)", "out:5"),
        ("set_field:0x20/0xf0->reg0,resubmit(,1)", "out:5"),
        ("load:0x2000000000->NXM_NX_XXREG0[96..127],resubmit(,1)", "error"),
        ("load:0x2000000000->OXM_OF_PKT_REG0[],resubmit(,1)", "out:5"),
        ("set_field:0x2000->xreg0,resubmit(,1)", "drop"),
        ("set_field:0x20->xxreg0,move:NXM_NX_REG3[]->NXM_NX_REG0[],resubmit(,1)", "out:5"),
        ("write_metadata:0x5,move:OXM_OF_METADATA[0..31]->NXM_NX_REG0[],resubmit(,1)", "drop"),
        ("load:2->NXM_NX_REG0[4..7],load:9->NXM_NX_REG5[],output:NXM_NX_REG5[],resubmit(,1)", "out:9 out:5"),
        ("load:2->NXM_NX_REG0[4..7],resubmit(,1),resubmit(,2),output:7", "out:5 out:6 out:7"),
        ("resubmit(,2),exit,output:7", "out:6"),
        (
            "load:2->NXM_NX_REG1[4..7],push:NXM_NX_REG1[],push:NXM_NX_REG2[],pop:reg3,pop:reg0,resubmit(,1)",
            "out:5",
        ),
    ],
)
def test_registers_have_the_values_that_actions_write(tmp_path: Path, actions: str, expected: str) -> None:
    rules = f"table=0,ip actions={actions}\ntable=1,reg0=0x20/0xf0 actions=5\ntable=2,actions=6\n"
    if expected == "error":
        with pytest.raises(InputError, match="does not fit into the 32 bits"):
            read(tmp_path, rules, ["ip"])
    else:
        assert actions_of(read(tmp_path, rules, ["ip"])[0]) == [expected]


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
    megaflow = read_megaflow(TRACE, layout)
    assert (
        layout.format_match(megaflow.value, megaflow.mask)
        == "eth_type=0x800 ip_dst=9.1.1.1 ip_proto=6 tp_src=0/13"
    )
    assert megaflow.actions == "4"
    with pytest.raises(InputError, match="has no line 'Megaflow'"):
        read_megaflow("", layout)


LONG = "9" * 5000


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        (f"priority={LONG} actions=drop", "digits"),
        (f"table={LONG} actions=drop", "digits"),
        (f"nw_src=1.2.3.4/{LONG},ip actions=drop", "digits"),
        (f"actions=goto_table:{LONG}", "digits"),
        (f"actions=load:{LONG}->reg0[0..15]", "digits"),
        (
            " ".join([",".join(f"reg{i}=1:4294967294" for i in range(6)), "actions=drop"]),
            "its ranges make [0-9,]+ entries",
        ),
    ],
)
def test_lines_made_to_stop_the_reader_are_refused(tmp_path: Path, line: str, fault: str) -> None:
    with pytest.raises(InputError, match=fault) as error:
        read(tmp_path, line, ["in_port=1"])
    assert "row 1" in str(error.value)
