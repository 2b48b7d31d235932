"""Evaluated entries against those of Open vSwitch itself, on tables for the purpose and random ones."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
import pytest

from planner_models.flowtables.problem.evaluation.bits import LAYOUT, field_mask, get_field
from planner_models.flowtables.problem.evaluation.datapath import read_dump
from planner_models.flowtables.problem.evaluation.groups import read_groups
from planner_models.flowtables.problem.evaluation.interpreter import Evaluation, Visit
from planner_models.flowtables.problem.evaluation.reading import read_header, read_switch, translate_own
from tests.models.flowtables.evaluated_tables import GROUPS, draw_header, draw_table
from tests.models.flowtables.open_vswitch import BRIDGE, IS_THERE, NEWER, Switch, start_switch

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not IS_THERE, reason="needs Debian's openvswitch-switch (PLANNER_OVS: where it is unpacked)"
    ),
]
PORTS = 4


@pytest.fixture(scope="module")
def switch(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Switch]:
    with start_switch(tmp_path_factory.mktemp("ovs"), PORTS) as running:
        yield running


TRACKING = """table=0,ip actions=load:1->NXM_NX_REG0[],ct(table=1,zone=NXM_NX_REG0[0..15])
table=0,priority=1 actions=NORMAL
table=1,ct_state=+new+trk,tcp,tp_dst=80 actions=ct(commit,zone=5,exec(load:1->NXM_NX_CT_MARK[])),resubmit(,2)
table=1,ct_state=+est+trk,ct_mark=0x1,tcp actions=output:2
table=1,ct_state=+trk,udp,ct_zone=1 actions=ct(commit,table=2,zone=9)
table=1,ct_state=+inv+trk actions=drop
table=2,tcp,nw_dst=10.0.0.0/8,reg0=1 actions=mod_dl_dst:00:00:00:00:00:07,output:3
table=2,ip,ct_zone=9 actions=output:4
table=2,ip,ct_state=-trk actions=output:1
"""
CONJUNCTIONS = """table=0,priority=50,ip,nw_src=10.0.0.1 actions=conjunction(7,1/2)
table=0,priority=50,ip,nw_src=10.0.1.0/24 actions=conjunction(7,1/2),conjunction(8,1/2)
table=0,priority=50,tcp,tp_dst=80 actions=conjunction(7,2/2)
table=0,priority=50,tcp,tp_dst=443 actions=conjunction(8,2/2)
table=0,priority=50,conj_id=7,ip actions=output:2
table=0,priority=50,conj_id=8,ip actions=output:3
table=0,priority=40,tcp,tp_dst=80 actions=output:4
table=0,priority=30,ip,nw_src=10.0.1.0/24 actions=drop
table=0,priority=1 actions=output:1
"""
LABELS = """table=0,mpls,in_port=1,mpls_label=5 actions=pop_mpls:0x0800,resubmit(,1)
table=0,mpls,in_port=1,mpls_label=6 actions=set_mpls_ttl:9,output:2
table=0,mpls,in_port=1,mpls_label=7 actions=pop_mpls:0x0800,output:2
table=0,ip,in_port=2 actions=push_mpls:0x8847,set_mpls_label:77,output:3
table=0,mpls,in_port=3,mpls_label=5 actions=dec_mpls_ttl,set_mpls_tc:3,output:2
table=1,ip,nw_dst=10.0.0.0/8 actions=output:2
"""
LEARN = "learn(table=9,eth_type=0x800,NXM_OF_IP_SRC[]=NXM_OF_IP_DST[],output:NXM_OF_IN_PORT[])"
CASES = {
    "tracking": (
        TRACKING,
        "",
        [
            f"in_port=1 {kind} ip_src=1.1.1.1 ip_dst={host} ct_state={state}"
            for kind in ("tcp tp_dst=80", "tcp tp_dst=22", "udp tp_dst=53")
            for host in ("10.0.0.1", "11.0.0.1")
            for state in ("+new+trk", "+est+trk")
        ]
        + ["in_port=1 arp arp_op=1"],
    ),
    "conjunctions": (
        CONJUNCTIONS,
        "",
        [
            f"in_port=2 {kind} ip_src={host} ip_dst=9.9.9.9"
            for kind in ("tcp tp_dst=80", "tcp tp_dst=443", "tcp tp_dst=22", "udp tp_dst=80", "icmp")
            for host in ("10.0.0.1", "10.0.0.2", "10.0.1.1", "11.0.0.1")
        ],
    ),
    "labels": (
        LABELS,
        "",
        [
            f"in_port={port} mpls mpls_label={label} mpls_bos=1 mpls_ttl={ttl} ip_dst=10.0.0.1"
            for port in (1, 3)
            for label in (5, 6, 7)
            for ttl in (1, 64)
        ]
        + [f"in_port=2 tcp ip_dst=10.1.1.1 nw_ttl={ttl} nw_tos=32 tp_dst=4" for ttl in (1, 64)],
    ),
    "groups": (
        """table=0,tcp actions=group:1,output:4
table=0,udp actions=group:2
table=0,icmp actions=group:3
table=0,arp actions=group:4
table=1,ip,nw_src=10.0.0.0/8 actions=output:3
""",
        """group_id=1,type=all,bucket=actions=mod_dl_dst:00:00:00:00:00:07,output:2,bucket=actions=resubmit(,1)
group_id=2,type=select,bucket=weight:1,actions=output:2,bucket=weight:2,actions=output:3
group_id=3,type=ff,bucket=watch_port:2,actions=output:2,bucket=watch_port:3,actions=output:3
group_id=4,type=indirect,bucket=actions=set_field:2->arp_op,output:3
""",
        [
            f"in_port=1 {kind} ip_src={net}.0.0.1 eth_dst=00:00:00:00:00:0{host}"
            for kind in ("tcp tp_dst=80", "udp tp_dst=80", "icmp")
            for net in (10, 11)
            for host in (7, 8)
        ]
        + ["in_port=1 arp arp_op=1", "in_port=1 arp arp_op=2"],
    ),
    "clones, a stack and learning": (
        """table=0,ip actions=clone(mod_nw_dst:9.9.9.9,resubmit(,1)),resubmit(,1)
table=0,arp actions=push:NXM_OF_ARP_SPA[],resubmit(,2)
table=1,ip,nw_dst=9.0.0.0/8 actions=output:2
table=1,tcp actions=output:2
table=1,priority=9,ip actions=LEARN,output:3
table=2,arp actions=pop:NXM_OF_ARP_TPA[],output:4
""".replace("LEARN", LEARN),
        "",
        [
            "in_port=1 udp ip_src=1.1.1.1 ip_dst=10.0.0.1",
            "in_port=1 udp ip_src=1.1.1.1 ip_dst=9.0.0.1",
            "in_port=1 arp arp_spa=1.1.1.1",
        ],
    ),
}


def set_switch(switch: Switch, text: str, groups: str) -> None:
    """Replace the rules and groups of the bridge."""
    switch.run("ovs-ofctl", "del-flows", BRIDGE)
    switch.run("ovs-ofctl", "-O", NEWER, "del-groups", BRIDGE)
    path = switch.folder / "groups.txt"
    path.write_text(groups)
    if groups:
        switch.run("ovs-ofctl", "-O", NEWER, "add-groups", BRIDGE, str(path))
    path = switch.folder / "rules.txt"
    path.write_text(text)
    switch.run("ovs-ofctl", "-O", NEWER, "add-flows", BRIDGE, str(path))


def trace(switch: Switch, header: str) -> list[tuple[int, str]]:
    """Return mask and actions of each entry in the trace of a packet."""
    state = re.search(r"ct_state=(\S+)", header)
    packet = re.sub(r"\bct_state=\S+", "", header)
    if "udp" in packet:
        packet = packet.replace("tp_dst", "udp_dst").replace("tp_src", "udp_src")
    if "mpls" in packet:
        packet = re.sub(r"ip_dst=\S+", "", packet)
    flags = [word for _, word in re.findall(r"([+-])(\w+)", state[1])] if state else []
    following = ["--ct-next", ",".join(flags)] * 3 if flags else []
    text = switch.run("ovs-appctl", "ofproto/trace", BRIDGE, ",".join(packet.split()), *following)
    entries = []
    for cube, actions in re.findall(r"^Megaflow: (.*)\nDatapath actions: (.*)$", text, re.MULTILINE):
        tokens = re.sub(r"recirc_id=\w+,|\beth,|eth$", "", cube)
        translated, _ = translate_own(tokens)
        [(_, mask)] = LAYOUT.parse(translated)
        entries.append((mask | field_mask("recirc_id"), actions.strip()))
    assert entries, text
    return entries


def require_same(switch: Switch, text: str, groups: str, headers: list[str]) -> int:
    """Require the same masks in each pass of each packet; return the number of entries compared."""
    set_switch(switch, text, groups)
    evaluation = Evaluation(read_switch(text, "rules", read_groups(groups, "groups"), "groups"))
    compared = 0
    for header in headers:
        visits = evaluation.follow(read_header(header))
        traced = trace(switch, header)
        assert len(traced) <= len(visits), header
        for visit, (mask, actions) in zip(visits, traced, strict=False):
            seen = ~unseen(visit)
            ours, theirs = (LAYOUT.format_mask(bits & seen) for bits in (visit.entry.mask, mask))
            assert ours == theirs, f"{header}\n{visit}\n{text}"
            compare_actions(visit.entry.action, actions, f"{header}\n{text}")
            compared += 1
    return compared


def compare_actions(ours: str, theirs: str, message: str) -> None:
    """Compare drops, outputs in their order, and how often the packet comes back."""
    outputs = [word.removeprefix("out:") for word in ours.split() if re.fullmatch(r"out:\d+", word)]
    plain = re.sub(r"\([^()]*(\([^()]*\)[^()]*)*\)", "", theirs)
    assert (ours == "drop") == (theirs == "drop"), f"{ours} | {theirs}\n{message}"
    if "NORMAL" not in ours:
        assert outputs == re.findall(r"(?<![\w:])\d+(?![\w:])", plain), f"{ours} | {theirs}\n{message}"
    assert ours.count("recirc:") == theirs.count("recirc("), f"{ours} | {theirs}\n{message}"


def unseen(visit: Visit) -> int:
    """Return the bits of a tag of VLAN where a packet has none: a trace does not show them."""
    return 0 if get_field(visit.header, "vlan_tci") & 0x1000 else field_mask("vlan_tci")


@pytest.mark.parametrize("case", CASES)
def test_evaluated_entries_are_those_of_open_vswitch(switch: Switch, case: str) -> None:
    text, groups, headers = CASES[case]
    assert require_same(switch, text, groups, headers) >= len(headers)


@pytest.mark.parametrize(
    "seed", [*range(20), *(pytest.param(seed, marks=pytest.mark.exhaustive) for seed in range(20, 40))]
)
def test_random_tables_have_the_entries_of_open_vswitch(switch: Switch, seed: int) -> None:
    """Random matches, conjunctions, tracking, groups and copies, in three tables."""
    random = np.random.default_rng(seed)
    text = draw_table(random)
    require_same(switch, text, GROUPS, [draw_header(random) for _ in range(12)])


def test_a_hash_selects_the_bucket_of_open_vswitch(switch: Switch) -> None:
    """Packets of many connections: in each entry the value of the hash has our bucket."""
    text, weights = "tcp actions=group:2\n", "weight:1,actions=output:2,bucket=weight:3,actions=output:3"
    groups = f"group_id=2,type=select,bucket={weights},bucket=weight:2,actions=output:4\n"
    set_switch(switch, text, groups)
    for port in range(40):
        switch.run(
            "ovs-appctl", "netdev-dummy/receive", "p1",
            "in_port(1),eth(src=50:54:00:00:00:09,dst=50:54:00:00:00:0a),eth_type(0x0800),"
            f"ipv4(src=10.0.0.2,dst=10.0.0.1,proto=6,tos=0,ttl=64,frag=no),tcp(src={port},dst=53)",
        )  # fmt: skip
    dump = read_dump(switch.run("ovs-appctl", "dpctl/dump-flows"), "dump")
    own_switch = read_switch(text, "rules", read_groups(groups, "groups"), "groups")
    compared = 0
    for match, action in zip(dump.rules["match"], dump.rules["action"], strict=True):
        number = re.search(r"dp_hash=(\w+)/0x([0-9a-f]+)", match)
        if number is None:
            continue
        header = read_header(f"in_port=1 tcp dp_hash={int(number[1], 16) or 16}")
        visit = Evaluation(own_switch).follow(header)[1]
        assert visit.entry.action == action, match
        assert get_field(visit.entry.mask, "dp_hash") == int(number[2], 16)
        compared += 1
    assert compared >= 8
