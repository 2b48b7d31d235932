"""Evaluated entries against a plain interpreter and all packets of a small space, one by one."""

from __future__ import annotations

import re
from itertools import product

import numpy as np
import pytest

from planner.errors import InputError
from planner_models.flowtables.problem.evaluation.bits import LAYOUT, get_field
from planner_models.flowtables.problem.evaluation.groups import read_groups
from planner_models.flowtables.problem.evaluation.interpreter import Evaluation, Run, Visit
from planner_models.flowtables.problem.evaluation.reading import read_header, read_switch
from tests.models.flowtables.evaluated_tables import GROUPS, Log, Plain, draw_header, draw_table, read_packet

PACKETS = 60


def log_of(visits: list[Visit]) -> Log:
    """Return outputs of the entries of a packet with the changes before them."""
    log: list[tuple[object, ...]] = []
    for visit in visits:
        now = {name: get_field(visit.header, name) for name in ("eth_dst", "ip_dst", "nw_ttl")}
        for word in visit.entry.action.split():
            kind, _, value = word.partition(":")
            if kind == "change":
                name, _, number = value.partition("=")
                now[name] = read_packet(f"{name}={number}")[name]
            elif kind == "out":
                log.append((int(value), *now.values()))
            elif kind == "controller":
                log.append(("controller",))
            elif kind == "ct" and value != "clear":
                log.append(("ct", *now.values()))
    return tuple(log)


@pytest.mark.parametrize("seed", range(25))
def test_actions_are_those_of_a_plain_interpreter(seed: int) -> None:
    random = np.random.default_rng(seed)
    text = draw_table(random)
    plain = Plain(text)
    evaluation = Evaluation(read_switch(text, "rules", read_groups(GROUPS, "groups"), "groups"))
    for header in [draw_header(random) for _ in range(PACKETS)]:
        ours = log_of(evaluation.follow(read_header(header)))
        theirs = tuple(
            ("ct", *entry[1:]) if str(entry[0]).startswith("ct(") else entry
            for entry in plain.run(read_packet(header) | {"after": 0x21 if "+new" in header else 0x22})
        )
        assert ours == theirs, f"{header}\n{text}"


@pytest.mark.parametrize("seed", range(8))
def test_all_packets_of_an_entry_have_its_action(seed: int) -> None:
    """Brute force: each packet of a small space is evaluated alone, and met by each entry that holds it."""
    random = np.random.default_rng(100 + seed)
    switch = read_switch(draw_table(random), "rules", read_groups(GROUPS, "groups"), "groups")
    headers = [
        read_header(
            f"in_port={port} {kind} ip_src={source} ip_dst={target} nw_ttl={ttl} tp_dst={number} "
            f"eth_dst=00:00:00:00:00:0{host}"
        )
        for port, kind, source, target, ttl, number, host in product(
            (1, 2), ("tcp", "udp"), ("10.0.0.1", "11.0.0.2"), ("10.0.0.0", "10.128.0.0", "11.0.0.0"), (1, 64),
            (80, 443, 95), (1, 2),
        )
    ]  # fmt: skip
    alone = [Run(switch, header, with_learning=False).evaluate() for header in headers]
    for entry in dict.fromkeys(alone):
        for header, other in zip(headers, alone, strict=True):
            if header & entry.mask == entry.value:
                assert other.action == entry.action
                assert other == entry


def test_a_rule_of_three_clauses_needs_each_of_them() -> None:
    text = """priority=5,ip,nw_src=10.0.0.1,actions=conjunction(7,1/3)
priority=5,ip,nw_dst=10.0.0.2,actions=conjunction(7,2/3),conjunction(8,1/2)
priority=5,tcp,tp_dst=80,actions=conjunction(7,3/3)
priority=5,udp,actions=conjunction(8,2/2)
priority=5,conj_id=7,ip,actions=output:2
priority=4,ip,nw_dst=10.0.0.2,actions=output:3
"""
    evaluation = Evaluation(read_switch(text, "rules", {}, ""))
    actions = {
        header: evaluation.follow(read_header(header))[0].entry.action
        for header in (
            "tcp ip_src=10.0.0.1 ip_dst=10.0.0.2 tp_dst=80",
            "tcp ip_src=10.0.0.9 ip_dst=10.0.0.2 tp_dst=80",
            "udp ip_src=10.0.0.1 ip_dst=10.0.0.2 tp_dst=80",
        )
    }
    assert list(actions.values()) == ["out:2", "out:3", "out:3"]


def test_a_group_of_weights_has_hashes_in_their_shares() -> None:
    text = "group_id=1,type=select,bucket=weight:1,actions=output:2,"
    text += "bucket=weight:3,watch_port:3,actions=output:3\n"
    groups = read_groups(text, "groups")
    assert [groups[1].hashes.count(index) for index in (0, 1)] == [4, 12]
    switch = read_switch("actions=group:1\n", "rules", groups, "groups")
    ports = {}
    for number in range(1, 33):
        visits = Evaluation(switch).follow(read_header(f"tcp dp_hash={number}"))
        assert LAYOUT.format_mask(visits[1].entry.mask).split()[:2] == ["recirc_id", "dp_hash/0xf"]
        ports[number % 16] = visits[1].entry.action
    assert sorted(ports.values()) == ["out:2"] * 4 + ["out:3"] * 12
    switch.down = frozenset({3})
    assert Evaluation(switch).follow(read_header("tcp dp_hash=3"))[1].entry.action == "out:2"


def test_a_learned_rule_forwards_what_comes_back() -> None:
    text = """table=0,priority=9 actions=resubmit(,9),resubmit(,1)
table=1 actions=learn(table=9,NXM_OF_ETH_DST[]=NXM_OF_ETH_SRC[],output:NXM_OF_IN_PORT[]),output:7
"""
    switch = read_switch(text, "rules", {}, "")
    learning = Evaluation(switch, with_learning=True)
    learning.follow(read_header("in_port=3 eth_src=00:00:00:00:00:05"))
    [visit] = learning.follow(read_header("in_port=4 eth_dst=00:00:00:00:00:05"))
    assert visit.entry.action == "out:3 out:7"
    assert LAYOUT.format_mask(visit.entry.mask) == "recirc_id in_port eth_src eth_dst eth_type"


def test_a_translated_connection_has_its_new_address_when_it_comes_back() -> None:
    text = """table=0,ip actions=ct(commit,table=1,nat(dst=10.9.0.1:8080))
table=1,tcp,nw_dst=10.9.0.1,tp_dst=8080 actions=output:2
"""
    evaluation = Evaluation(read_switch(text, "rules", {}, ""))
    visits = evaluation.follow(read_header("tcp ip_dst=10.0.0.1 tp_dst=80"))
    assert visits[-1].entry.action == "out:2"
    visits = evaluation.follow(read_header("tcp ip_dst=10.0.0.1 tp_dst=80 ct_state=+est+trk"))
    assert visits[-1].entry.action == "drop"


@pytest.mark.parametrize(
    ("text", "groups", "message"),
    [
        ("ip actions=ct(tabel=1)\n", "", r"rules row 1: ct has no option 'tabel=1'; did you mean 'table'"),
        (
            "ip actions=group:7\n",
            "",
            "rules row 1: action group:7 needs groups: give the output of ovs-ofctl dump",
        ),
        ("ip actions=group:7\n", "group_id=8,type=all\n", "rules row 1: group 7 is not in groups; valid: 8"),
        ("ip actions=conjunction(1,3/2)\n", "", r"has clause 3 of 2, must be 1 to the count"),
        ("ip actions=conjunction(1,1/2),output:2\n", "", r"has actions beside conjunction\(\)"),
        ("ip actions=ct(commit),write_actions(output:1)\n", "", "write_actions needs action sets"),
        (
            "ip actions=ct_clear,set_mpls_label:9999999\n",
            "",
            "mpls_label is '9999999', must be a number from 0 to 1048575",
        ),
        ("ip actions=ct(table=999)\n", "", "table is '999', must be a number from 0 to 254"),
        ("ip actions=learn(delete_learned)\n", "", "learn has 'delete_learned', which is not modelled"),
        ("conj_id=1,pi actions=drop\n", "", "rules row 1: there is no field 'pi' that is read"),
        ("ip actions=ct_clear\nip actions=drop\n", "", "rules row 2: has the match and priority of row 1"),
        ("ip actions=ct_clear\n", "group_id=1,type=any\n", "groups row 1: type is 'any', must be one of"),
        (
            "ip actions=ct_clear\n",
            "group_id=1,type=all,bucket=actions=output:1,output:2\n",
            "has 2 actions that forward a packet",
        ),
    ],
)
def test_what_is_not_modelled_is_refused_with_its_row(text: str, groups: str, message: str) -> None:
    with pytest.raises(InputError) as error:
        read_switch(text, "rules", read_groups(groups, "groups"), "groups" if groups else "")
    assert re.search(message, str(error.value))


def test_packets_that_come_back_without_an_end_are_refused() -> None:
    evaluation = Evaluation(read_switch("ip actions=ct(table=0)\n", "rules", {}, ""))
    with pytest.raises(InputError, match="a packet comes back more than 32 times"):
        evaluation.follow(read_header("ip"))
    evaluation = Evaluation(read_switch("ip actions=ct_clear,resubmit(,0)\n", "rules", {}, ""))
    with pytest.raises(InputError, match="packets loop through table 0"):
        evaluation.follow(read_header("ip"))
