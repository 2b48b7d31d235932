"""Dumps of a datapath: entries of Open vSwitch 3.1 that were recorded, and lines made for the purpose."""

from __future__ import annotations

from pathlib import Path

import pytest

from planner.errors import InputError
from planner_models.flowtables import SYSTEM, check
from planner_models.flowtables.problem.evaluation.bits import LAYOUT, field_mask
from planner_models.flowtables.problem.evaluation.datapath import read_dump
from planner_models.flowtables.problem.evaluation.interpreter import Evaluation
from planner_models.flowtables.problem.evaluation.reading import read_switch
from planner_models.flowtables.problem.readers import read_datapath

FOLDER = Path(__file__).parents[5] / "data/scenarios/flowtables/datapath"
RULES = """priority=100,ip,nw_src=10.0.0.0/26 actions=conjunction(1,1/2)
priority=100,ip,nw_src=10.0.0.128/28 actions=conjunction(1,1/2),conjunction(2,1/2)
priority=100,tcp,tp_dst=80 actions=conjunction(1,2/2)
priority=100,tcp,tp_dst=443 actions=conjunction(1,2/2),conjunction(2,2/2)
priority=100,udp,tp_dst=53 actions=conjunction(2,2/2)
priority=100,conj_id=1,ip actions=output:2
priority=100,conj_id=2,ip actions=output:3
priority=50,ip,nw_dst=10.1.0.0/16 actions=output:4
priority=50,arp actions=output:4
priority=10,tcp,tp_dst=22 actions=drop
priority=0 actions=drop
"""
LINES = """flow-dump from pmd on cpu core: 2
ufid:51be9c55-3607-478d-83d3-7257b2ee8ba2, recirc_id(0x5),dp_hash(0x3/0xf),in_port(p7),\
ct_state(+new-est+trk),\
eth(src=50:54:00:00:00:09,dst=50:54:00:00:00:0a/00:00:00:00:00:00),eth_type(0x8100),vlan(vid=5,pcp=0/0x0),\
encap(eth_type(0x0800),ipv4(src=10.0.0.2/255.255.255.254,proto=6,tos=0/0,frag=no),tcp(dst=82/0xfffe)), \
packets:9, bytes:1180, used:1.660s, flags:SP., actions:ct(commit,zone=5),4
flow-dump from pmd on cpu core: 4
recirc_id(0x5),dp_hash(0x3/0xf),in_port(7),ct_state(+new-est+trk),\
eth(src=50:54:00:00:00:09),eth_type(0x8100),vlan(vid=5,pcp=0/0x0),encap(eth_type(0x0800),ipv4(src=10.0.0.2/255.255.255.254,proto=6,frag=no),\
tcp(dst=82/0xfffe)), packets:3, bytes:0, used:never, actions:ct(commit,zone=5),4
recirc_id(0),in_port(7),eth_type(0x0806),arp(sip=1.2.3.4,op=1/0xff), packets:0, actions:drop
"""


def test_recorded_entries_are_those_that_the_rules_make() -> None:
    dump = read_dump((FOLDER / "flows.txt").read_text(), "flows.txt")
    evaluation = Evaluation(read_switch(RULES, "rules", {}, ""))
    assert len(dump.rules) == 55
    for match, action in zip(dump.rules["match"], dump.rules["action"], strict=True):
        [(value, mask)] = LAYOUT.parse(match)
        [visit] = evaluation.follow(value)
        recorded = mask | field_mask("recirc_id")
        assert LAYOUT.format_mask(visit.entry.mask) == LAYOUT.format_mask(recorded), match
        assert visit.entry.action == action


def test_parts_of_keys_are_read_and_threads_are_joined() -> None:
    dump = read_dump(
        LINES, "dump", "  lookups: hit:90 missed:10 lost:2\n  masks: hit:120 total:2\n  port 7: p7 (tap)\n"
    )
    assert dump.rules["match"].tolist() == [
        (
            "recirc_id=0x5 dp_hash=0x3/0xf in_port=7 ct_state=0x21/0x23 eth_src=50:54:00:00:00:09 "
            "eth_type=0x800 vlan_tci=0x1005/0x1fff ip_src=10.0.0.2/31 ip_proto=6 nw_frag=0 tp_dst=82/15"
        ),
        "recirc_id=0x0 in_port=7 eth_type=0x806 arp_op=1/0xff arp_spa=1.2.3.4",
    ]
    assert dump.rules["action"].tolist() == ["datapath:ct(commit,zone=5) out:4", "drop"]
    assert dump.installed["packets"].tolist() == [12.0, 0.0]
    assert dump.flows["packets"].tolist() == [12.0, 1.0]
    assert dump.statistics is not None
    assert dump.statistics.iloc[0].to_dict() == {
        "hits": 90.0, "missed": 10.0, "lost": 2.0, "mask_hits": 120.0, "masks": 2.0,
    }  # fmt: skip


def test_designs_start_from_the_entries_of_a_datapath() -> None:
    problem = read_datapath(path=FOLDER / "flows.txt", statistics=FOLDER / "show.txt")
    plans = {}
    for design in ("all", "least_specific", "pool"):
        plans[design] = SYSTEM.design(design).run(problem).plan
        assert plans[design] is not None
        assert not len(check(problem, plans[design]))
    assert len(plans["all"].megaflows) == 55
    assert len(plans["least_specific"].megaflows) <= 55


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            "recirc_id(0),in_port(1)",
            "dump row 1: has no packets and actions, must be a line of dpctl",
        ),
        (
            "in_prt(1), packets:1, bytes:2, used:never, actions:1",
            "key 'in_prt' is not modelled; did you mean 'in_port'",
        ),
        ("in_port(1),ipv4(srk=1.1.1.1), packets:1, actions:1", r"'srk=1.1.1.1' of ipv4\(\) is not modelled"),
        ("tunnel(tun_id=1,geneve({class=1})), packets:1, actions:1", r"of tunnel\(\) is not modelled"),
        ("ct_state(+nwe), packets:1, actions:1", "ct_state has no flag 'nwe'; did you mean 'new'"),
        ("eth_type(0x99999), packets:1, actions:1", "does not fit into the 16 bits of eth_type"),
        ("ipv4(frag=maybe), packets:1, actions:1", "'maybe' is no value of frag"),
        ("", "dump: has no entries, must be output of ovs-appctl dpctl/dump-flows"),
    ],
)
def test_what_is_no_entry_is_refused_with_its_row(line: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_dump(line + "\n", "dump")
