"""Design `all` against Open vSwitch itself, megaflow by megaflow, and rules through its own tools."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
import pytest

from planner_models.flowtables import FlowTables
from planner_models.flowtables.designs.tuple_space import consult, make_tuple_space
from planner_models.flowtables.plan.check import classify_headers, follow
from planner_models.flowtables.problem import generators
from planner_models.flowtables.problem.fields import ARP, WITH_PORTS
from planner_models.flowtables.problem.openflow import format_cube, format_rules, read_megaflow, read_rules
from tests.models.flowtables.open_vswitch import BRIDGE, IS_THERE, Switch, start_switch

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not IS_THERE, reason="needs Debian's openvswitch-switch (PLANNER_OVS: where it is unpacked)"
    ),
]
PORTS = 4
PACKETS = 60
LEAST_EQUAL = 0.5


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
    ("make", "least_equal"),
    [
        (partial(generators.table_1, connections=PACKETS), 1.0),
        (partial(generators.acl, rules=100, connections=PACKETS), LEAST_EQUAL),
        (partial(generators.firewall, rules=100, connections=PACKETS), LEAST_EQUAL),
        (generators.small, LEAST_EQUAL),
    ],
    ids=["table_1", "acl", "firewall", "two tables"],
)
def test_megaflows_of_open_vswitch(
    switch: Switch, make: Callable[[], FlowTables], least_equal: float
) -> None:
    """Its actions are ours, its megaflows pass our check, and most match the bits of `all`.

    Open vSwitch tracks prefixes of ports for each tuple, `all` for each table.
    """
    problem = make()
    switch.set_rules(format_rules(problem))
    layout = problem.layout
    space = make_tuple_space(problem, is_staged=True)
    masks = layout.to_numbers(consult(problem.headers, problem.entries, space, True, True))
    actions = classify_headers(problem, problem.headers)
    rows = range(0, len(masks), max(1, len(masks) // PACKETS))
    traced, equal = 0, 0
    for row in rows:
        text = describe(problem, layout.to_numbers(problem.headers[row : row + 1])[0])
        if text is None:
            continue
        found = read_megaflow(switch.trace(text), layout)
        action = found.actions if found.actions == "drop" else f"out:{found.actions}"
        assert action == problem.actions[actions[row]], text
        assert follow(problem, *layout.to_words([found.value, found.mask])) == actions[row], text
        traced, equal = traced + 1, equal + (found.mask == masks[row])
    assert traced > PACKETS / 2
    assert equal >= least_equal * traced


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
