"""Design `all` against Open vSwitch itself, megaflow by megaflow, and rules through its own tools."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
import pandas as pd
import pytest

from planner_models.flowtables import SYSTEM, FlowTables
from planner_models.flowtables.designs.reactive import MASKS_OF_MISSES
from planner_models.flowtables.plan.check import classify_headers, follow
from planner_models.flowtables.problem import generators
from planner_models.flowtables.problem.fields import WITH_PORTS, Layout
from planner_models.flowtables.problem.openflow import (
    format_cube,
    format_rules,
    read_megaflow,
    read_rules,
    translate_header,
)
from planner_models.flowtables.problem.values import ARP
from tests.models.flowtables.open_vswitch import BRIDGE, INPUT, IS_THERE, Switch, start_switch

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not IS_THERE, reason="needs Debian's openvswitch-switch (PLANNER_OVS: where it is unpacked)"
    ),
]
PORTS = 4
PACKETS = 60


@pytest.fixture(scope="module")
def switch(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Switch]:
    with start_switch(tmp_path_factory.mktemp("ovs"), PORTS) as running:
        yield running


def describe(problem: FlowTables, header: int) -> str | None:
    """Return a header for ofproto/trace; None for a packet that has ports in the problem and not there."""
    layout = problem.layout
    if "eth_type" in layout.by_name and (header >> layout.shift["eth_type"]) & 0xFFFF == ARP:
        return "arp"
    if (header >> layout.shift["ip_proto"]) & 0xFF not in WITH_PORTS:
        return None
    return ",".join(format_cube(layout, header, layout.full_mask(layout.by_name)))


@pytest.mark.parametrize(
    "make",
    [
        partial(generators.table_1, connections=PACKETS),
        partial(generators.acl, rules=100, connections=PACKETS),
        partial(generators.firewall, rules=100, connections=PACKETS),
        generators.small,
    ],
    ids=["table_1", "acl", "firewall", "two tables"],
)
def test_megaflows_of_open_vswitch(switch: Switch, make: Callable[[], FlowTables]) -> None:
    """Its actions are ours, its megaflows pass our check, and match the bits of `all`."""
    problem = make()
    switch.set_rules(format_rules(problem))
    layout = problem.layout
    masks = layout.to_numbers(MASKS_OF_MISSES["all"](problem)(problem.headers))
    actions = classify_headers(problem, problem.headers)
    rows = range(0, len(masks), max(1, len(masks) // PACKETS))
    traced = 0
    for row in rows:
        text = describe(problem, layout.to_numbers(problem.headers[row : row + 1])[0])
        if text is None:
            continue
        megaflow = read_megaflow(switch.trace(text), layout)
        action = megaflow.actions if megaflow.actions == "drop" else f"out:{megaflow.actions}"
        assert action == problem.actions[actions[row]], text
        assert follow(problem, *layout.to_words([megaflow.value, megaflow.mask])) == actions[row], text
        assert layout.format_mask(megaflow.mask) == layout.format_mask(masks[row]), text
        traced += 1
    assert traced > PACKETS / 2


def test_rules_that_the_switch_dumps_are_those_that_were_added(switch: Switch) -> None:
    problem = generators.small()
    switch.set_rules(format_rules(problem))
    dump = switch.run("ovs-ofctl", "--no-names", "dump-flows", BRIDGE)
    rules, fields = read_rules(dump, "dump")
    assert len(rules) == len(problem.entries.action)
    text = [f"eth_type=0x0800 {header}" for header in problem.flows["header"]]
    again = FlowTables(rules=rules, fields=fields, flows=problem.flows.assign(header=text))
    names, before = np.array(again.actions), np.array(problem.actions)
    assert (
        names[classify_headers(again, again.headers)].tolist()
        == before[classify_headers(problem, problem.headers)].tolist()
    )


SOURCES = ("ip ip_src=1.1.1.1", "ip ip_src=9.1.1.1")
MOVED = "move:NXM_OF_IP_SRC[]->NXM_OF_IP_DST[]"
TAGGED = "push_vlan:0x8100,set_field:4196->vlan_vid"
MULTICAST = "01:00:00:00:00:00/01:00:00:00:00:00"
HOST = "0a:00:00:00:00"
ANSWER = (
    "move:NXM_OF_ETH_SRC[]->NXM_OF_ETH_DST[],mod_dl_src:0a:00:00:00:00:02,load:0x2->NXM_OF_ARP_OP[],"
    "push:NXM_OF_ARP_SPA[],push:NXM_OF_ARP_TPA[],pop:NXM_OF_ARP_SPA[],pop:NXM_OF_ARP_TPA[]"
)
CASES = {
    "normal": (
        """priority=100,in_port=1,dl_src=02:00:00:00:00:07 actions=NORMAL
priority=90,in_port=1 actions=drop
priority=0 actions=NORMAL
""",
        [
            f"in_port={port} eth_src=02:00:00:00:00:{host:02x} eth_dst=02:00:00:00:00:{other:02x} {kind}"
            for port in (1, 2)
            for host in (1, 7)
            for other in (1, 2)
            for kind in ("ip", "arp", "ipv6", "ip dl_vlan=5")
        ],
    ),
    "always matched": (
        "in_port=1,actions=2\nin_port=2,actions=1\n",
        [f"in_port={port} {kind}" for port in (1, 2) for kind in ("ip", "arp", "ipv6")],
    ),
    "rewrites": (
        """priority=10,ip,nw_dst=10.0.0.0/24 actions=dec_ttl,mod_dl_dst:00:00:00:00:00:02,output:2
priority=9,tcp,nw_dst=10.0.1.0/24 actions=mod_nw_src:1.2.3.4,mod_tp_dst:80,output:3
priority=8,udp,nw_dst=10.0.1.0/24 actions=set_field:10.0.9.0/255.255.255.0->ip_dst,mod_nw_tos:16,output:3
priority=7,ip,nw_dst=10.0.3.0/24 actions=load:1->NXM_OF_ETH_DST[0..7],output:1
priority=0 actions=drop
""",
        [
            f"in_port={INPUT} {kind} ip_dst=10.0.{net}.1 nw_ttl={ttl}"
            for kind in ("tcp tp_dst=8080", "udp tp_dst=53")
            for net in (0, 1, 2, 3)
            for ttl in (64, 63, 1, 0)
        ],
    ),
    "vlan": (
        """dl_vlan=5,in_port=1 actions=pop_vlan,output:2
in_port=1,dl_vlan=6 actions=mod_vlan_vid:7,output:3
priority=9,in_port=1 actions=mod_vlan_vid:9,output:4
""",
        [f"in_port={port} ip dl_vlan={vlan}" for port in (1, 2) for vlan in (5, 6, 8)],
    ),
    "registers": (
        """table=0,in_port=1 actions=load:1->NXM_NX_REG0[0..3],resubmit(,1)
table=0,in_port=2 actions=load:2->NXM_NX_REG0[0..3],set_field:0x5->metadata,resubmit(,1)
table=0,priority=1 actions=resubmit(,1),resubmit(,2)
table=1,priority=20,ip,reg0=0x1/0xf,nw_dst=10.1.0.0/16 actions=load:3->NXM_NX_REG7[],resubmit(,3)
table=1,priority=20,ip,reg0=0x2/0xf,nw_dst=10.0.0.0/8 actions=load:4->NXM_NX_REG7[],resubmit(,3)
table=1,priority=19,tcp,metadata=0x5,tp_dst=22 actions=drop
table=1,priority=18,dl_src=00:00:00:00:00:01 actions=output:2
table=2,priority=1,arp,arp_op=1,nw_src=10.0.0.0/8 actions=output:3
table=2,priority=3,arp,arp_op=2 actions=output:4
table=3,reg7=0x3,tcp,tp_dst=80 actions=output:NXM_NX_REG7[]
table=3,priority=1 actions=output:NXM_NX_REG7[]
""",
        [
            f"in_port={port} {kind}"
            for port in (1, 2, 3)
            for kind in (
                "tcp ip_dst=10.1.2.3 tp_dst=80",
                "tcp ip_dst=10.2.2.3 tp_dst=22",
                "tcp ip_dst=11.2.2.3 tp_dst=22",
                "udp ip_dst=10.1.2.3 tp_dst=53",
                "arp arp_op=1 arp_spa=10.0.0.9",
                "arp arp_op=1 arp_spa=11.0.0.9",
                "arp arp_op=2",
                "ipv6 eth_src=00:00:00:00:00:01",
            )
        ],
    ),
    "copies": (
        f"""table=0,ip actions=move:NXM_OF_ETH_SRC[0..15]->NXM_NX_REG0[0..15],{MOVED},resubmit(,1)
table=1,ip,reg0=0x1/0xff actions=output:2
table=1,priority=9,ip,nw_dst=10.0.0.0/8 actions=output:3
""",
        [
            f"in_port={INPUT} tcp eth_src=00:00:00:00:00:{host:02x} ip_src={net}.0.0.1 ip_dst=9.9.9.{host}"
            for host in (1, 2, 3)
            for net in (10, 11)
        ],
    ),
    "switch of Faucet": (
        f"""table=0,priority=20480,in_port=1,vlan_tci=0x0000/0x1fff actions={TAGGED},goto_table:1
table=0,priority=20479,in_port=3,dl_vlan=100 actions=goto_table:1
table=0,priority=0 actions=drop
table=1,priority=20490,dl_type=0x9000 actions=drop
table=1,priority=20480,dl_src=ff:ff:ff:ff:ff:ff actions=drop
table=1,priority=8191,in_port=1,dl_vlan=100,dl_src=0e:00:00:00:01:01 actions=goto_table:2
table=1,priority=4096,dl_vlan=100 actions=CONTROLLER:96,goto_table:2
table=2,priority=8192,dl_vlan=100,dl_dst=0e:00:00:00:01:01 actions=pop_vlan,output:1
table=2,priority=0 actions=goto_table:3
table=3,priority=8192,dl_vlan=100,dl_dst={MULTICAST} actions=output:3,pop_vlan,output:1
table=3,priority=0 actions=drop
""",
        [
            f"in_port={port} ip eth_src=0e:00:00:00:01:0{source} eth_dst={target}{tag}"
            for port, tag in ((1, ""), (2, ""), (3, " dl_vlan=100"), (3, " dl_vlan=5"))
            for source in (1, 2)
            for target in ("0e:00:00:00:01:01", "0e:00:00:00:01:02", "01:00:5e:00:00:01")
        ],
    ),
    "stack": (
        f"""table=0,arp,arp_op=1,arp_tpa=10.0.0.2 actions={ANSWER},resubmit(,1)
table=1,arp,arp_tpa=10.0.0.1 actions=output:2
table=1,priority=1 actions=output:3
""",
        [
            f"in_port={INPUT} arp arp_op={op} arp_spa=10.0.0.{own_values} arp_tpa=10.0.0.2 "
            f"eth_src={HOST}:0{own_values}"
            for op in (1, 2)
            for own_values in (1, 5)
        ],
    ),
    "another port of input": (
        """table=0,ip actions=resubmit(3,1),output:4
table=0,arp actions=resubmit(,1)
table=1,in_port=3,ip,nw_src=1.0.0.0/8 actions=output:2
table=1,in_port=1 actions=output:1
""",
        [f"in_port={port} {kind}" for port in (1, 2) for kind in (*SOURCES, "arp")],
    ),
    "controller": (
        """dl_type=0x88cc,dl_dst=01:23:20:00:00:01 actions=CONTROLLER:65535
priority=32769,arp,dl_dst=02:00:00:00:be:ef actions=CONTROLLER:65535
""",
        [
            f"in_port=1 eth_type={kind} eth_dst={host}"
            for kind in ("0x88cc", "0x0806", "0x0800")
            for host in ("01:23:20:00:00:01", "02:00:00:00:be:ef", "00:00:00:00:00:01")
        ],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_entries_of_all_are_those_of_open_vswitch(switch: Switch, case: str) -> None:
    """Rules as a switch prints them: the bits of every entry of `all`, and whether it drops."""
    require_same_entries(switch, *CASES[case])


def require_same_entries(switch: Switch, text: str, headers: list[str]) -> None:
    switch.set_rules(text)
    rules, fields = read_rules(text, "rules", [translate_header(header) for header in headers])
    flows = pd.DataFrame({"header": [translate_header(header) for header in headers]})
    problem = FlowTables(rules=rules, fields=fields, flows=flows)
    layout = problem.layout
    masks = layout.to_numbers(MASKS_OF_MISSES["all"](problem)(problem.headers))
    names = [problem.actions[number] for number in classify_headers(problem, problem.headers)]
    cubes = set()
    for number, mask, name, header in zip(
        layout.to_numbers(problem.headers), masks, names, headers, strict=True
    ):
        packet = ",".join(format_cube(layout, number, layout.find_present(number)))
        megaflow = read_megaflow(switch.run("ovs-appctl", "ofproto/trace", BRIDGE, packet), layout)
        seen = ~unseen(layout, number)
        assert layout.format_mask(mask & seen) == layout.format_mask(megaflow.mask & seen), (
            f"{header}\n{text}"
        )
        is_drop = name.split()[-1] == "drop"
        assert is_drop == (megaflow.actions == "drop") or outputs_to_input(name, header), f"{header}\n{text}"
        cubes.add((number & mask, mask))
    plan = SYSTEM.design("all").run(problem).plan
    assert len(plan.megaflows) == len(cubes)


@pytest.mark.parametrize(
    "seed", [*range(30), *(pytest.param(seed, marks=pytest.mark.exhaustive) for seed in range(30, 60))]
)
def test_entries_of_random_tables_are_those_of_open_vswitch(switch: Switch, seed: int) -> None:
    """Random matches, registers, changes and lookups, no two rules of a table with the same priority."""
    random = np.random.default_rng(seed)
    lines = []
    for table in range(3):
        priorities = random.permutation(90)[: int(random.integers(2, 8))] + 1
        lines += [f"table={table},priority={priority},{draw_rule(table, random)}" for priority in priorities]
    require_same_entries(switch, "\n".join(lines) + "\n", [draw_header(random) for _ in range(15)])


def draw_rule(table: int, random: np.random.Generator) -> str:  # noqa: C901
    """Return a match and actions of OpenFlow, which fit together."""
    kind = str(random.choice(["", "ip", "tcp", "udp", "arp"], p=[0.15, 0.25, 0.35, 0.15, 0.1]))
    parts = [kind] if kind else []
    if random.random() < 0.3:
        parts.append(f"in_port={random.integers(1, 4)}")
    if random.random() < 0.2:
        parts.append(f"dl_dst=00:00:00:00:00:0{random.integers(1, 3)}")
    if kind and random.random() < 0.6:
        parts.append(
            f"nw_{random.choice(['src', 'dst'])}={draw_address(random)}/{random.choice([8, 16, 24, 32])}"
        )
    if kind in ("tcp", "udp") and random.random() < 0.6:
        parts.append(f"tp_dst={random.choice(['80', '443', '22', '0x50/0xfff0', '0x400/0xfc00'])}")
    if table and random.random() < 0.5:
        parts.append(f"reg0={random.integers(0, 3)}/0x3")
    if table and random.random() < 0.2:
        parts.append(f"metadata={random.integers(0, 2)}")
    actions = []
    for _ in range(int(random.integers(0, 3))):
        choices = [f"load:{random.integers(0, 4)}->NXM_NX_REG0[0..1]", "load:1->OXM_OF_METADATA[]"]
        choices += ["mod_dl_dst:00:00:00:00:00:02", "move:NXM_OF_ETH_SRC[0..1]->NXM_NX_REG0[0..1]"]
        if kind in ("ip", "tcp", "udp"):
            choices += ["dec_ttl", "mod_nw_dst:10.1.1.1", "move:NXM_OF_IP_SRC[0..1]->NXM_NX_REG0[0..1]"]
        if kind == "tcp":
            choices += ["mod_tp_dst:80"]
        actions.append(str(random.choice(choices)))
    ends = ["output:4", "output:3", "drop"]
    if table < 2:
        ends += [f"resubmit(,{table + 1})"] * 3 + ["output:4,resubmit(,2)"]
    end = str(random.choice(ends))
    actions = [end] if end == "drop" else [*actions, end]
    return ",".join([*parts, "actions=" + ",".join(actions)])


def draw_address(random: np.random.Generator) -> str:
    return (
        f"{random.choice([10, 11])}.{random.choice([0, 1])}.{random.choice([0, 1])}.{random.integers(1, 4)}"
    )


def draw_header(random: np.random.Generator) -> str:
    """Return a packet that such rules may match."""
    kind = str(random.choice(["tcp", "udp", "icmp", "arp"], p=[0.5, 0.25, 0.1, 0.15]))
    names = ("arp_spa", "arp_tpa") if kind == "arp" else ("ip_src", "ip_dst")
    result = [f"in_port={random.integers(1, 4)} {kind}"]
    result += [
        f"eth_src=00:00:00:00:00:0{random.integers(0, 4)} eth_dst=00:00:00:00:00:0{random.integers(1, 3)}"
    ]
    result += [f"{name}={draw_address(random)}" for name in names]
    if kind != "arp":
        result.append(f"nw_ttl={random.choice([1, 2, 3, 64])}")
    if kind in ("tcp", "udp"):
        result.append(f"tp_src=9 tp_dst={random.choice([80, 443, 22, 1025, 95])}")
    return " ".join(result)


def unseen(layout: Layout, header: int) -> int:
    """Return the bits of a tag of VLAN where a packet has none: a trace does not show them."""
    result = layout.full_mask(["vlan_tci"]) if "vlan_tci" in layout.by_name else 0
    return result if header & result == 0 else 0


def outputs_to_input(name: str, header: str) -> bool:
    """Return whether all outputs are to the port of input, which Open vSwitch leaves out."""
    port = header.split()[0].removeprefix("in_port=")
    return all(share == f"out:{port}" for share in name.split() if share.startswith("out:"))
