"""Bad tables of a switch, and what their messages say."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

from planner.contract.notes import observe_notes
from planner.errors import InputError
from planner_models.flowtables import FlowTables, problem
from planner_models.flowtables.problem.adjustments import adjust
from tests.models.flowtables.switches import make

FLOWS = pd.DataFrame({"header": ["tcp ip_dst=10.0.0.1 tp_dst=80"]})


def refuse(rules: list[tuple[Any, ...]], **tables: pd.DataFrame) -> tuple[str, ...]:
    columns = ["priority", "match", "action", "table"][: len(rules[0])]
    with pytest.raises(InputError) as error:
        FlowTables.from_tables({"rules": pd.DataFrame(rules, columns=columns), "flows": FLOWS, **tables})
    return error.value.faults


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ((1, "tp_dst=80", "drop"), "matches a port, must also match a protocol with ports: tcp, udp, sctp"),
        ((1, "icmp tp_dst=80", "drop"), "matches a port, must also match a protocol with ports"),
        ((1, "ip_src=10.0.0.0/33", "drop"), "prefix length 33 of ip_src must be at most 32"),
        ((1, "tcp_dst=443:80", "drop"), "range 443:80 of tp_dst ends before it starts"),
        ((1, "tcp_dst=70000", "drop"), "70000 does not fit into the 16 bits of tp_dst"),
        ((1, "ip_scr=10.0.0.1", "drop"), "there is no field 'ip_scr'; did you mean 'ip_src'?"),
        ((1, "icpm", "drop"), "'icpm' is no field with a value, and no protocol; did you mean 'icmp'?"),
        ((1, "ip_src=10.0.0.300", "drop"), "'10.0.0.300' is no value of ip_src"),
        ((1, "ip_src=10.0.0.0/255.0.255.0", "drop"), "field ip_src is matched by prefixes"),
        ((1, "tcp udp", "drop"), "'tcp' and 'udp' have different values of ip_proto"),
    ],
)  # fmt: skip
def test_bad_matches_are_named(rule: tuple[Any, ...], message: str) -> None:
    [fault] = refuse([rule])
    assert fault.startswith(f"rules row 1: match '{rule[1]}': {message}"), fault


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ([(1, "", "dorp")], "rules row 1: action 'dorp' is no action; did you mean 'drop'?"),
        ([(1, "", "out:")], "rules row 1: action 'out:' must name a port, such as out:1"),
        (
            [(1, "", "goto:1", 0), (1, "", "goto:0", 1)],
            "rules: packets loop through table 0, must come to an end",
        ),
        ([(1, "", "goto:7", 0)], "rules row 1: action 'goto:7' goes to a table without rules; valid: 0"),
        (
            [(5, "ip_dst=10.0.0.0/8", "drop"), (5, "ip_src=9.0.0.0/8", "out:1")],
            "rules row 2: overlaps row 1 of the same priority 5 with another action, 'out:1' and 'drop'",
        ),
    ],
)
def test_bad_actions_and_overlaps_are_named(rules: list[tuple[Any, ...]], message: str) -> None:
    assert refuse(rules) == (message,)


def test_bad_headers_costs_and_fields_are_named() -> None:
    flows = pd.DataFrame({"header": ["tcp", "ip_dst=10.0.0.0/8", "tcp_dst=1:2"]})
    assert refuse([(1, "", "drop")], flows=flows) == (
        "flows row 2: header 'ip_dst=10.0.0.0/8': a header has one value for each field; ip_dst has a mask",
        "flows row 3: header 'tcp_dst=1:2': a header has one value for each field, not a range",
    )
    [fault] = refuse([(1, "", "drop")], costs=pd.DataFrame({"probe_ns": [-1.0]}))
    assert fault == "costs row 1: probe_ns is -1.0, must be at least 0"
    fields = pd.DataFrame([("x", 129, "l2"), ("y", 8, "l5")], columns=["field", "bits", "stage"])
    assert len(refuse([(1, "", "drop")], fields=fields)) == 2


def test_no_rules_are_one_entry() -> None:
    switch = FlowTables(rules=pd.DataFrame({"priority": [], "match": [], "action": []}), flows=FLOWS)
    assert switch.size() == {"rules": 0, "entries": 0, "connections": 1}


def test_adjustments_change_costs_and_connections() -> None:
    switch = problem.generators.small()
    changed = adjust(switch, upcall_us=30.0, flow_limit=5, first_connections=20)
    assert (changed.cost("upcall_us"), changed.cost("probe_ns"), changed.most_entries) == (30.0, 147.0, 5)
    assert len(changed.flows) == 20


def test_fields_of_headers_that_no_rule_matches_are_named_and_not_used() -> None:
    notes: list[str] = []
    headers = [
        "in_port=3 tcp ip_src=1.0.0.1 nw_dst=2.0.0.2 tcp_dst=80",
        "eth_dst=00:00:00:00:00:01 ip_dst=2.0.0.2",
    ]
    with observe_notes(notes.append):
        problem = make([(1, "ip_dst=2.0.0.0/8", "out:1")], headers, fields=None)
    assert notes == ["flows: in_port, eth_dst: no rule matches it, so that it is not used"]
    assert problem.layout.to_numbers(problem.headers)[0] == problem.layout.parse_header(
        "tcp ip_src=1.0.0.1 ip_dst=2.0.0.2 tcp_dst=80"
    )
    with pytest.raises(InputError, match="there is no field 'ip_dts'; did you mean 'ip_dst'"):
        make([(1, "ip_dst=2.0.0.0/8", "out:1")], ["ip_dts=2.0.0.2"], fields=None)


def test_a_change_of_a_field_that_is_none_is_said() -> None:
    notes: list[str] = []
    with observe_notes(notes.append):
        make([(1, "ip_dst=2.0.0.0/8", "set:dec_ttl out:1")], ["ip_dst=2.0.0.2"], fields=None)
    assert len(notes) == 1
    assert notes[0].startswith("warning: rules: actions change or read nw_ttl, no field here")
